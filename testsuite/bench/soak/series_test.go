package soak

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
)

// over is half an hour of samples of a thing, as a function of the seconds.
func over(value func(at float64) float64) *series {
	s := &series{}
	for at := 10.0; at <= 1800; at += 10 {
		s.add(at, value(at))
	}
	return s
}

// broken are the figures that do not hold when one thing is as it is given, and the others
// do not move.
func broken(t *testing.T, name string, s *series) (figures []string) {
	t.Helper()
	all := map[string]*series{}
	for _, other := range watched {
		all[other] = over(func(float64) float64 { return 100 })
	}
	all[name] = s
	part := frame.Part{
		Name: "soak", Sizes: []int{size}, Runs: 1, Figures: flatness(true, size),
		Open: func(context.Context, int) (frame.Scene, error) {
			return frame.Scene{Run: func(context.Context, int) (frame.Samples, error) { return samplesOf(all), nil }}, nil
		},
	}
	results, err := frame.Measure(t.Context(), part, frame.Choice{Say: io.Discard})
	require.NoError(t, err)
	require.Len(t, results, 2*len(watched))
	for _, r := range results {
		require.NotEmpty(t, r.Must, r.Bench)
		if !r.OK {
			figures = append(figures, r.Bench)
		}
	}
	return figures
}

func TestWhatGrowsIsFoundAndWhatIsOnlyNoisyIsNot(t *testing.T) {
	t.Parallel()
	noise := func() func() float64 {
		r := rand.New(rand.NewPCG(1, 2))
		return func() float64 { return 2*r.Float64() - 1 }
	}
	by := func(least float64) func(float64) float64 { return func(at float64) float64 { return 600 + at*least } }
	for name, c := range map[string]struct {
		value func(float64) float64
		want  []string
	}{
		"it stays":                    {by(0), nil},
		"it gets less":                {by(-0.1), nil},
		"one goroutine for each make": {by(0.29), []string{"soak goroutines", "soak goroutines growth"}},
		"slowly, by a seventh":        {by(0.09), []string{"soak goroutines growth"}},
		"below what is noise":         {by(0.02), nil},
		"a leak in noise": {func() func(float64) float64 {
			n := noise()
			return func(at float64) float64 { return 600 + 0.29*at + 120*n() }
		}(), []string{"soak goroutines", "soak goroutines growth"}},
		"noise of a fifth, around the same": {func() func(float64) float64 {
			n := noise()
			return func(float64) float64 { return 600 + 120*n() }
		}(), nil},
		"it warms up": {func(at float64) float64 { return 600 * (1 - math.Exp(-at/120)) }, nil},
		"it doubles in the warm-up, and stays": {func(at float64) float64 {
			return 600 * (1 + math.Min(at/600, 1))
		}, nil},
		"one step after the warm-up": {func(at float64) float64 {
			if at < 1200 {
				return 600
			}
			return 700
		}, []string{"soak goroutines", "soak goroutines growth"}},
		"a saw that comes down again": {func(at float64) float64 { return 600 + 100*math.Mod(at, 120)/120 }, nil},
		"one peak": {func(at float64) float64 {
			return map[bool]float64{true: 6000, false: 600}[at == 1500]
		}, nil},
		"there is none": {func(float64) float64 {
			return math.NaN()
		}, []string{"soak goroutines", "soak goroutines growth"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, broken(t, goroutines, over(c.value)))
		})
	}
	for _, name := range watched {
		require.Len(t, broken(t, name, over(by(20))), 2, name)
		require.Len(t, broken(t, name, nil), 2, "%s was never seen", name)
		require.Len(t, broken(t, name, &series{[]float64{10}, []float64{600}}), 2, "%s was seen once", name)
	}
}

func TestHowLongASoakLasts(t *testing.T) {
	t.Parallel()
	d, err := lasting("")
	require.NoError(t, err)
	require.Equal(t, 30*time.Minute, d)
	d, err = lasting("5m")
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, d)
	for _, bad := range []string{"5", "2m", "-5m", "long"} {
		_, err := lasting(bad)
		require.ErrorContains(t, err, "SOAK=", bad)
	}
	for _, f := range flatness(false, size) {
		require.Empty(t, f.Must, "a look is not judged")
	}
}
