package soak

import (
	"math"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
)

// warmUp is the part of a soak that is not judged: caches fill, and lives that all began
// at once come apart.
const warmUp = 1.0 / 3

// series is one thing over time.
type series struct {
	at    []float64 // seconds since the begin
	value []float64
}

func (s *series) add(at, value float64) {
	s.at, s.value = append(s.at, at), append(s.value, value)
}

// settled is what comes after the warm-up.
func (s series) settled() series {
	if len(s.at) == 0 {
		return s
	}
	begins := s.at[len(s.at)-1] * warmUp
	for i, at := range s.at {
		if at >= begins {
			return series{s.at[i:], s.value[i:]}
		}
	}
	return series{}
}

// blocks are the parts of a series whose medians the line goes through: a single peak moves
// none of them.
const blocks = 10

// growth is how much the line through the medians of all blocks rises from the first sample
// to the last, as a part of the median. NaN of too few.
func (s series) growth() float64 {
	if len(s.at) < blocks {
		return math.NaN()
	}
	var at, value []float64
	for i := range blocks {
		from, to := i*len(s.at)/blocks, (i+1)*len(s.at)/blocks
		at, value = append(at, frame.Median(s.at[from:to])), append(value, frame.Median(s.value[from:to]))
	}
	lasted := s.at[len(s.at)-1] - s.at[0]
	return frame.Ratio(frame.Slope(at, value)*lasted, frame.Median(s.value))
}

// halves is the median of the second half beside that of the first.
func (s series) halves() frame.Sample {
	middle := len(s.value) / 2
	return frame.Sample{Value: frame.Median(s.value[middle:]), Baseline: frame.Median(s.value[:middle])}
}

// What is watched. Each has to be flat.
const (
	rss         = "rss"
	goroutines  = "goroutines"
	descriptors = "descriptors"
	history     = "history"
)

// units are of everything that is watched.
var units = map[string]string{rss: "B", goroutines: "goroutines", descriptors: "files", history: "events"}

// watched is the order in which it is told.
var watched = []string{rss, goroutines, descriptors, history}

// flat is how much more is noise, as a part of what there is.
const flat = 0.1

// flatness is what two figures of each series say about it.
func flatness(judged bool, size int) (figures []frame.Figure) {
	for _, name := range watched {
		half, rise := frame.RatioAtMost(1+flat), frame.AtMost(flat)
		if !judged {
			half, rise = frame.Must{}, frame.Must{}
		}
		figures = append(figures,
			// Beside it the first half of what is judged.
			frame.Figure{Name: name, Unit: units[name], Must: half, At: size},
			frame.Figure{Name: name + " growth", Unit: "of it", Must: rise, At: size})
	}
	return figures
}

// samplesOf measures the figures of flatness.
func samplesOf(all map[string]*series) frame.Samples {
	samples := frame.Samples{}
	for _, name := range watched {
		s := series{}
		if has := all[name]; has != nil {
			s = has.settled()
		}
		samples[name], samples[name+" growth"] = s.halves(), frame.Sample{Value: s.growth()}
	}
	return samples
}
