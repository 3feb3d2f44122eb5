// Package frame runs benches: it measures each part at several sizes, several times,
// beside a baseline of the same run, and judges what came of it by the limit that the
// part states. It imports nothing of ours. Start reading at Part; figures.go is the
// arithmetic, report.go what is printed.
package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Part measures one thing.
type Part struct {
	Name  string // what `make bench-NAME` runs
	About string // one sentence
	// Sizes rise, and are at least three; limits are usually about the last one. What comes in
	// one size has that alone, and no growth.
	Sizes []int
	// OneSize says why a part has one size alone; empty for all others.
	OneSize string
	// Runs of each size; 0 is five. What takes long may run once.
	Runs    int
	Figures []Figure
	// Open prepares a size for all of its runs.
	Open func(ctx context.Context, size int) (Scene, error)
}

// Figure is one thing that every run of a part measures.
type Figure struct {
	Name string
	Unit string // of the value and of the baseline
	// Must is what the figure has to reach at the size At, 0 is every one. The zero Must
	// demands nothing.
	Must Must
	At   int
	// Growth is what the exponent of its growth has to reach: 0 is flat, 1 grows as the
	// size does. The zero one demands nothing.
	Growth Must
}

// Scene is one size of a part, ready to be measured.
type Scene struct {
	// Run measures once, and returns one sample for each figure of the part. number
	// counts from 0; Turns takes it.
	Run   func(ctx context.Context, number int) (Samples, error)
	Close func() error // may be nil
}

// Samples are what one run measured, by the name of the figure.
type Samples map[string]Sample

// Sample is one measurement, and that of the baseline beside it; 0 where there is none.
type Sample struct{ Value, Baseline float64 }

// usualRuns is how often a size is measured.
const usualRuns = 5

// Turns runs the baseline and the subject one after the other, and lets the other one
// begin in every second run: whatever else the machine does hits both.
func Turns(number int, baseline, subject func() error) error {
	first, second := baseline, subject
	if number%2 == 1 {
		first, second = subject, baseline
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

// Choice is what a run of the benches is asked for beyond its parts.
type Choice struct {
	Sizes []int     // in the place of those of the parts; nil: theirs
	Runs  int       // in the place of those of the parts; 0: theirs
	Say   io.Writer // progress
}

// Measure runs a part and returns what it came to, size by size, and then the growth.
// With an error come the sizes before it.
func Measure(ctx context.Context, p Part, c Choice) ([]Result, error) {
	if len(c.Sizes) == 0 {
		c.Sizes = p.Sizes
	}
	if c.Runs == 0 {
		c.Runs = p.Runs
	}
	if c.Runs == 0 {
		c.Runs = usualRuns
	}
	var all []Result
	for _, size := range c.Sizes {
		runs, err := measureSize(ctx, p, size, c)
		if err != nil { // what was measured before is told
			return all, fmt.Errorf("%s at %d: %w", p.Name, size, err)
		}
		for _, f := range p.Figures {
			all = append(all, judge(p.Name, size, f, samplesOf(runs, f.Name)))
		}
	}
	return append(all, growths(p, all)...), nil
}

func measureSize(ctx context.Context, p Part, size int, c Choice) (runs []Samples, err error) {
	scene, err := p.Open(ctx, size)
	if err != nil {
		return nil, err
	}
	if scene.Close != nil {
		defer func() { err = errors.Join(err, scene.Close()) }()
	}
	for number := range c.Runs {
		begun := time.Now()
		samples, err := scene.Run(ctx, number)
		if err != nil {
			return nil, err
		}
		if err := complete(p, samples); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(c.Say, "%s at %d: run %d of %d took %s\n", p.Name, size, number+1, c.Runs,
			time.Since(begun).Round(time.Millisecond))
		runs = append(runs, samples)
	}
	return runs, nil
}

// complete returns an error unless each figure was measured, and nothing else: what is
// left out would hold whatever it must.
func complete(p Part, samples Samples) error {
	for _, f := range p.Figures {
		if _, measured := samples[f.Name]; !measured {
			return fmt.Errorf("figure %q was not measured", f.Name)
		}
	}
	if len(samples) != len(p.Figures) {
		return fmt.Errorf("%d figures were measured, and %d are in the table", len(samples), len(p.Figures))
	}
	return nil
}

func samplesOf(runs []Samples, figure string) []Sample {
	out := make([]Sample, len(runs))
	for i, run := range runs {
		out[i] = run[figure]
	}
	return out
}
