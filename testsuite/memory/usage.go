//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/usage"
)

// usage reads it. A process that has ended has none.
func (b *box) usage() (usage.Usage, error) {
	status, err := b.proc("status")
	if err != nil {
		return usage.Usage{}, err
	}
	stat, err := b.proc("stat")
	if err != nil {
		return usage.Usage{}, err
	}
	return usage.Parse(status, stat)
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
