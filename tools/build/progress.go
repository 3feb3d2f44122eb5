package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// reportEvery is often enough for a person not to wonder.
const reportEvery = 10 * time.Second

// report says that a tool is being built, how long that takes and then, every so
// often, that it still is. The returned function ends it with the outcome.
func report(to io.Writer, t tool, every time.Duration) (done func(error)) {
	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began).Round(time.Second) }
	fmt.Fprintf(to, "building %s, as pinned in tools/%s: about %s on two cores, and only this once\n",
		t.name, t.module, t.takes)
	stop := make(chan struct{})
	var lines sync.WaitGroup
	lines.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				fmt.Fprintf(to, "  still building %s: %s\n", t.name, elapsed())
			}
		}
	})
	return func(err error) {
		close(stop)
		lines.Wait()
		if err == nil {
			fmt.Fprintf(to, "built %s in %s\n", t.name, elapsed())
		}
	}
}
