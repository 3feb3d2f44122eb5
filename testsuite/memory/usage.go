//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ticks is how many of the kernel's clock ticks a second has, on every Linux that Go runs on.
const ticks = 100

// usage is what a process takes, as the kernel counts it; sizes in bytes.
type usage struct {
	rss, most   int64 // resident now, and the most that was
	own, files  int64 // of rss: its own memory, and pages of files such as its binary
	majorFaults int64 // pages that were read from the disk: those of a binary that does not fit are, again and again
	user, kern  time.Duration
}

func (u usage) String() string {
	return fmt.Sprintf("rss=%s rss_max=%s own=%s files=%s major_faults=%d user=%s kernel=%s",
		mib(u.rss), mib(u.most), mib(u.own), mib(u.files), u.majorFaults, u.user, u.kern)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1fMiB", float64(bytes)/mebibyte) }

// usage reads it. A process that has ended has none.
func (b *box) usage() (usage, error) {
	status, err := b.proc("status")
	if err != nil {
		return usage{}, err
	}
	stat, err := b.proc("stat")
	if err != nil {
		return usage{}, err
	}
	return usageOf(status, stat)
}

// usageOf reads /proc/PID/status and /proc/PID/stat.
func usageOf(status, stat string) (u usage, err error) {
	var faults []error
	number := func(what, text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", what, err))
		}
		return n
	}
	for name, to := range map[string]*int64{
		"VmRSS:": &u.rss, "VmHWM:": &u.most, "RssAnon:": &u.own, "RssFile:": &u.files,
	} {
		*to = number(name, field(status, name)) << 10
	}
	// The name of the program is in brackets, and may have blanks.
	words := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const majflt, utime, stime = 9, 11, 12
	if len(words) <= stime {
		return u, fmt.Errorf("/proc/PID/stat has %d fields after the name", len(words))
	}
	u.majorFaults = number("majflt", words[majflt])
	u.user = time.Duration(number("utime", words[utime])) * time.Second / ticks
	u.kern = time.Duration(number("stime", words[stime])) * time.Second / ticks
	return u, errors.Join(faults...)
}

// watch prints now and then how far things are, until ctx ends.
func (w *world) watch(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for begun := time.Now(); ; {
		select {
		case now := <-tick.C:
			u, err := w.box.usage()
			if err != nil {
				return // it has ended, which others tell
			}
			fmt.Printf("%s: instances=%d %s\n", now.Sub(begun).Round(time.Second), len(w.cloud.Instances()), u)
		case <-ctx.Done():
			return
		}
	}
}
