package frame

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMiddleOfNumbers(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 3, Median([]float64{9, 1, 3}), 0)
	require.InDelta(t, 2.5, Median([]float64{4, 1, 2, 3}), 0, "of an even number, between the two")
	require.True(t, math.IsNaN(Median(nil)))
}

func TestAPercentileIsOneOfTheNumbers(t *testing.T) {
	t.Parallel()
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	require.InDelta(t, 99, Percentile(hundred, 99), 0)
	require.InDelta(t, 1, Percentile(hundred, 0), 0)
	require.InDelta(t, 7, Percentile([]float64{7}, 99), 0)
	require.True(t, math.IsNaN(Percentile(nil, 99)))
}

func TestARatioNeedsABaseline(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 0.5, Ratio(2, 4), 0)
	require.True(t, math.IsNaN(Ratio(2, 0)))
}

func TestTheSlopeIsThatOfTheBestLine(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, Slope([]float64{0, 1, 2}, []float64{1, 3, 5}), 1e-9)
	require.InDelta(t, 0, Slope([]float64{0, 1, 2, 3}, []float64{1, 2, 2, 1}), 1e-9)
	require.True(t, math.IsNaN(Slope([]float64{1, 1}, []float64{1, 2})))
}

func TestTheExponentSaysHowAFigureGrows(t *testing.T) {
	t.Parallel()
	sizes := []float64{10, 100, 1000}
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"flat":         {[]float64{7, 7, 7}, 0},
		"as the size":  {[]float64{20, 200, 2000}, 1},
		"as its root":  {[]float64{10, math.Sqrt(1000), 100}, 0.5},
		"as a square":  {[]float64{1, 100, 10000}, 2},
		"it gets less": {[]float64{100, 10, 1}, -1},
	} {
		require.InDelta(t, c.want, Exponent(sizes, c.values), 1e-9, name)
	}
	require.True(t, math.IsNaN(Exponent(sizes, []float64{0, 1, 2})))
}

func TestALimitHoldsOrDoesNot(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	for name, c := range map[string]struct {
		must         Must
		value, ratio float64
		want         bool
		text         string
	}{
		"no limit":                  {Must{}, none, none, true, ""},
		"the ratio is enough":       {RatioAtLeast(0.7), 0, 0.7, true, "ratio >= 0.7"},
		"the ratio is too small":    {RatioAtLeast(0.7), 9, 0.699, false, "ratio >= 0.7"},
		"no ratio is never enough":  {RatioAtLeast(0.7), 9, none, false, "ratio >= 0.7"},
		"the ratio is little":       {RatioAtMost(2), 9, 2, true, "ratio <= 2"},
		"the ratio is too much":     {RatioAtMost(2), 0, 2.01, false, "ratio <= 2"},
		"no ratio is never little":  {RatioAtMost(2), 0, none, false, "ratio <= 2"},
		"the figure is little":      {AtMost(1), 1, 9, true, "figure <= 1"},
		"the figure is too much":    {AtMost(1), 1.1, 0, false, "figure <= 1"},
		"no figure is never little": {AtMost(1), none, 0, false, "figure <= 1"},
		"the figure is enough":      {AtLeast(200), 200, 0, true, "figure >= 200"},
		"the figure is too small":   {AtLeast(200), 199, 300, false, "figure >= 200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.must.holds(c.value, c.ratio))
			require.Equal(t, c.text, c.must.String())
		})
	}
}

func TestAResultIsTheMedianOfItsRuns(t *testing.T) {
	t.Parallel()
	f := Figure{Name: "rate", Unit: "1/s", Must: RatioAtLeast(0.7), At: 100}
	// The medians are 20 and 30, but the ratio is that of each run by itself.
	samples := []Sample{{10, 20}, {20, 25}, {80, 100}, {20, 30}, {5, 50}}
	r := judge("discovery", 100, f, samples)
	require.Equal(t, "discovery rate", r.Bench)
	require.InDelta(t, 20, float64(r.Figure), 0)
	require.InDelta(t, 30, float64(r.Baseline), 0)
	require.InDelta(t, 2.0/3, float64(r.Ratio), 1e-9)
	require.Equal(t, [2]Number{0.1, 0.8}, r.Spread)
	require.Equal(t, "ratio >= 0.7", r.Must)
	require.False(t, r.OK)
	require.Equal(t, 5, r.Runs)

	small := judge("discovery", 10, f, samples)
	require.Empty(t, small.Must, "the limit is about another size")
	require.True(t, small.OK)

	f.At = 0
	require.False(t, judge("discovery", 10, f, samples).OK, "without a size it is about all of them")
}

func TestAFigureWithoutABaselineIsJudgedByItself(t *testing.T) {
	t.Parallel()
	r := judge("refresh", 10, Figure{Name: "time", Unit: "s", Must: AtMost(1)}, []Sample{{0.5, 0}, {0.9, 0}, {2, 0}})
	require.True(t, r.OK)
	require.InDelta(t, 0.9, float64(r.Figure), 0)
	require.False(t, r.Baseline.known())
	require.False(t, r.Ratio.known())
	require.Equal(t, [2]Number{0.5, 2}, r.Spread)
}

func TestBothTakeTurnsInBeginning(t *testing.T) {
	t.Parallel()
	var order strings.Builder
	for number := range 4 {
		require.NoError(t, Turns(number,
			func() error { order.WriteString("b"); return nil },
			func() error { order.WriteString("s"); return nil }))
	}
	require.Equal(t, "bssbbssb", order.String())
	fault := errors.New("no")
	require.ErrorIs(t, Turns(0, func() error { return nil }, func() error { return fault }), fault)
	require.ErrorIs(t, Turns(1, func() error { return fault }, func() error { return nil }), fault)
}

// linear is a part whose figure is twice the size, and its baseline the size.
func linear(f ...Figure) Part {
	return Part{
		Name: "linear", Sizes: []int{1, 10, 100}, Figures: f,
		Open: func(_ context.Context, size int) (Scene, error) {
			return Scene{Run: func(context.Context, int) (Samples, error) {
				return Samples{"time": {2 * float64(size), float64(size)}}, nil
			}}, nil
		},
	}
}

func TestAPartIsMeasuredAtEverySizeAndItsGrowthIsTold(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	part := linear(Figure{Name: "time", Must: AtMost(20), Growth: AtMost(0.9)})
	results, err := Measure(t.Context(), part, Choice{Say: &said})
	require.NoError(t, err)
	require.Len(t, results, 4)
	require.Equal(t, []int{1, 10, 100, 0}, []int{results[0].Size, results[1].Size, results[2].Size, results[3].Size})
	require.Equal(t, []bool{true, true, false, false}, []bool{results[0].OK, results[1].OK, results[2].OK, results[3].OK})
	require.InDelta(t, 1, float64(results[3].Figure), 1e-9)
	require.Equal(t, "linear time, growth", results[3].Bench)
	require.Equal(t, 15, strings.Count(said.String(), "\n"), "five runs of each size")

	some, err := Measure(t.Context(), linear(Figure{Name: "time"}), Choice{Sizes: []int{5, 6}, Runs: 2, Say: io.Discard})
	require.NoError(t, err)
	require.Len(t, some, 2, "two sizes tell no growth")
	require.Equal(t, 2, some[0].Runs)
}

func TestAFigureThatIsNotMeasuredIsAFault(t *testing.T) {
	t.Parallel()
	_, err := Measure(t.Context(), linear(Figure{Name: "time"}, Figure{Name: "memory"}), Choice{Say: io.Discard})
	require.EqualError(t, err, `linear at 1: figure "memory" was not measured`)
	_, err = Measure(t.Context(), linear(), Choice{Say: io.Discard})
	require.EqualError(t, err, "linear at 1: 1 figures were measured, and 0 are in the table")
}

func TestASceneIsClosedWhateverCameOfIt(t *testing.T) {
	t.Parallel()
	fault, closing := errors.New("it broke"), errors.New("it stays open")
	p := linear(Figure{Name: "time"})
	p.Open = func(context.Context, int) (Scene, error) {
		return Scene{
			Run:   func(context.Context, int) (Samples, error) { return nil, fault },
			Close: func() error { return closing },
		}, nil
	}
	_, err := Measure(t.Context(), p, Choice{Say: io.Discard})
	require.ErrorIs(t, err, fault)
	require.ErrorIs(t, err, closing)
}

func TestWhatIsPrinted(t *testing.T) {
	t.Parallel()
	results := []Result{
		judge("discovery", 10, Figure{Name: "rate", Unit: "1/s", Must: RatioAtLeast(0.7)}, []Sample{{1234567, 1000000}}),
		judge("discovery", 10, Figure{Name: "refresh", Unit: "s", Must: AtMost(1)}, []Sample{{1.5, 0}}),
		judge("discovery", 10, Figure{Name: "bytes", Unit: "B"}, []Sample{{0.1234567, 0}}),
	}
	var out bytes.Buffer
	judged, broken, err := Print(&out, results)
	require.NoError(t, err)
	require.Equal(t, 2, judged)
	require.Equal(t, 1, broken)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 7)
	require.Regexp(t, `^bench +size +figure +baseline +ratio +spread +must +$`, lines[0])
	require.Regexp(t, `^discovery rate +10 +1234567 1/s +1000000 +1.235 +1.235 to 1.235 +ratio >= 0.7 +ok$`, lines[1])
	require.Regexp(t, `^discovery refresh +10 +1.5 s +– +– +1.5 to 1.5 +figure <= 1 +DOES NOT HOLD$`, lines[2])
	require.JSONEq(t, `{"bench": "discovery rate", "size": 10, "figure": 1234570, "baseline": 1000000, "ratio": 1.23457,
		"must": "ratio >= 0.7", "ok": true, "unit": "1/s", "runs": 1, "spread": [1.23457, 1.23457]}`, lines[4])
	require.JSONEq(t, `{"bench": "discovery refresh", "size": 10, "figure": 1.5, "baseline": null, "ratio": null,
		"must": "figure <= 1", "ok": false, "unit": "s", "runs": 1, "spread": [1.5, 1.5]}`, lines[5])
	require.True(t, json.Valid([]byte(lines[6])))
}
