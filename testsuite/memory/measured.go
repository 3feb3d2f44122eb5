//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/egressfleet/egressfleet/testsuite/usage"
)

// measured is what the worker took, from its start on.
type measured struct {
	usage.Usage
	collections int64 // of garbage
	paused      string
	faults      int64 // calls of the backend that met a trouble
	lists       int   // of all proxies, that were answered while instances were lost
}

func (m measured) String() string {
	return fmt.Sprintf("%s collections=%d gc_paused=%ss backend_faults=%d lists=%d",
		m.Usage, m.collections, m.paused, m.faults, m.lists)
}

// reckon reads the figures. A backend without any trouble would prove too little.
func (w *world) reckon(ctx context.Context, m *measured) (err error) {
	if err := w.box.alive(); err != nil {
		return err
	}
	if m.Usage, err = w.box.usage(); err != nil {
		return err
	}
	metrics, err := ask(ctx, http.MethodGet, w.stats+"/metrics", "")
	if err != nil {
		return err
	}
	m.faults = w.cloud.met.Load()
	m.paused = field(metrics, "go_gc_duration_seconds_sum")
	m.collections, err = strconv.ParseInt(field(metrics, "go_gc_duration_seconds_count"), 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("go_gc_duration_seconds_count: %w", err)
	case m.Most > limit:
		return fmt.Errorf("the worker took %d bytes, and the limit is %d: it was not in the control group", m.Most, limit)
	case m.faults == 0:
		return errors.New("this run proves too little: the backend never failed")
	case m.lists == 0:
		return errors.New("this run proves too little: the list of all was never answered")
	}
	return nil
}

// look tells how much there is on the way.
func (w *world) look(ctx context.Context, what string) error {
	metrics, err := ask(ctx, http.MethodGet, w.stats+"/metrics", "")
	if err != nil {
		return errors.Join(err, w.box.alive())
	}
	used, err := w.box.usage()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s heap=%s goroutines=%s collections=%s\n", what, used,
		field(metrics, "go_memstats_heap_inuse_bytes"), field(metrics, "go_goroutines"),
		field(metrics, "go_gc_duration_seconds_count"))
	return nil
}

// confined returns an error unless the process is what the image promises.
func (b *box) confined() error {
	status, err := b.proc("status")
	if err != nil {
		return err
	}
	mounts, err := b.proc("mounts")
	if err != nil {
		return err
	}
	groups, err := b.proc("cgroup")
	if err != nil {
		return err
	}
	gomem, err := b.limitOfHeap()
	if err != nil {
		return err
	}
	var faults []error
	for what, holds := range map[string]bool{
		"runs as the user of the image": field(status, "Uid:") == strconv.Itoa(nobody),
		"has no capability":             strings.Trim(field(status, "CapEff:"), "0") == "",
		"can gain no right":             field(status, "NoNewPrivs:") == "1",
		"has a root that is read-only":  rootIsReadOnly(mounts),
		"is in the control group":       strings.Contains(groups, b.group[strings.LastIndex(b.group, "/"):]),
		"leaves its binary room":        gomem > 0 && gomem+b.program <= limit,
	} {
		if !holds {
			faults = append(faults, fmt.Errorf("it is not so that the worker %s", what))
		}
	}
	return errors.Join(faults...)
}

func rootIsReadOnly(mounts string) bool {
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[1] == "/" {
			return strings.HasPrefix(fields[3]+",", "ro,")
		}
	}
	return false
}

// field is the first word after a name at the beginning of a line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			return words[1]
		}
	}
	return ""
}

// limitOfHeap is what the worker says at its start that it has set.
func (b *box) limitOfHeap() (int64, error) {
	text, err := os.ReadFile(b.log)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		var said struct{ MemoryLimit int64 }
		if json.Unmarshal(line, &said) == nil && said.MemoryLimit != 0 {
			return said.MemoryLimit, nil
		}
	}
	return 0, errors.New("the worker did not say how it bounds its heap")
}
