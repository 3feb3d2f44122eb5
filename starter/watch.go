package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/starter/terminal"
)

// watchPause is between two looks of --watch.
const watchPause = 2 * time.Second

// phaseGone is shown of a proxy that was there at the look before.
const phaseGone v1.Phase = "Gone"

// watch shows what look finds, again and again, until it is interrupted: on a terminal
// as one table that is drawn anew, elsewhere as a line for each proxy that has changed.
func (a *app) watch(ctx context.Context, look func(context.Context) ([]v1.Proxy, error)) error {
	ticks, end := a.Every(watchPause)
	defer end()
	var w watched
	for {
		err := a.watchOnce(ctx, &w, look)
		switch {
		case ctx.Err() != nil:
			return nil // being interrupted is how it ends
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// watched is what the looks before came to.
type watched struct {
	proxies []v1.Proxy
	fault   string
	drawn   bool
}

// watchOnce goes on where the fleet cannot be reached just now, and says so once.
func (a *app) watchOnce(ctx context.Context, w *watched, look func(context.Context) ([]v1.Proxy, error)) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a.step("looking again")
	proxies, err := look(bounded)
	a.step("")
	fault := ""
	switch {
	case err != nil && !errors.Is(err, fleet.ErrUnavailable):
		return err
	case err != nil:
		fault, proxies = oneLine(err.Error()), w.proxies
	}
	was := *w
	*w = watched{proxies: proxies, fault: fault, drawn: true}
	if v := a.view(); v.Width > 0 {
		return a.print(drawn(v, *w, !was.drawn))
	}
	if fault != "" && fault != was.fault {
		a.teller.aside(func() { _, err = fmt.Fprintf(a.Err, "starter: %s; looking again\n", fault) })
		return err
	}
	return a.print(changedLines(a.view(), was, *w))
}

// drawn is a table over what stands on a terminal; no more of it than there are lines.
func drawn(v view, w watched, first bool) string {
	text := table(v, w.proxies)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if most := max(v.Height-3, 1); v.Height > 0 && len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	text = strings.Join(lines, "") + "\n\n" + v.Cut("every "+watchPause.String()+"; Ctrl-C ends it") + "\n"
	if w.fault != "" {
		text = strings.TrimSuffix(text, "\n") + "\n" + v.Cut(w.fault) + "\n"
	}
	start := terminal.Home
	if first {
		start = terminal.Blank
	}
	return start + strings.ReplaceAll(text, "\n", terminal.EndOfLine+"\n") + terminal.Rest
}

// changedLines has the proxies that are not as they were, without a head after the first
// time. It is pure.
func changedLines(v view, was, is watched) string {
	before := map[[2]string]v1.Proxy{}
	for _, p := range was.proxies {
		before[[2]string{p.Metadata.Namespace, p.Metadata.Name}] = p
	}
	var changed []v1.Proxy
	for _, p := range is.proxies {
		key := [2]string{p.Metadata.Namespace, p.Metadata.Name}
		if old, there := before[key]; !there || !reflect.DeepEqual(old, p) {
			changed = append(changed, p)
		}
		delete(before, key)
	}
	for _, p := range was.proxies { // in their order
		if _, gone := before[[2]string{p.Metadata.Namespace, p.Metadata.Name}]; gone {
			p.Status = v1.ProxyStatus{Phase: phaseGone}
			changed = append(changed, p)
		}
	}
	switch {
	case !was.drawn:
		return table(v, changed)
	case len(changed) == 0:
		return ""
	}
	_, rows, _ := strings.Cut(table(v, changed), "\n")
	return rows
}
