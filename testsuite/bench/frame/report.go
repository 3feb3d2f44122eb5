package frame

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Number is one that may not be known, which JSON writes as null.
type Number float64

// MarshalJSON writes at most six digits: no clock here is better.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.known() {
		return []byte("null"), nil
	}
	short, err := strconv.ParseFloat(n.text(), 64)
	if err != nil {
		return nil, err
	}
	return json.Marshal(short)
}

func (n Number) known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

const digits = 6

func (n Number) text() string { return strconv.FormatFloat(float64(n), 'g', digits, 64) }

// String is for people, who see three or four digits of it.
func (n Number) String() string {
	switch v := math.Abs(float64(n)); {
	case !n.known():
		return "–"
	case v == 0 || v >= 1000:
		return strconv.FormatFloat(float64(n), 'f', 0, 64)
	default:
		return strconv.FormatFloat(float64(n), 'g', 4, 64)
	}
}

// Result is one figure at one size, or its growth.
type Result struct {
	Bench    string    `json:"bench"` // the part and the figure
	Size     int       `json:"size"`  // 0: the growth over all sizes, an exponent
	Figure   Number    `json:"figure"`
	Baseline Number    `json:"baseline"`
	Ratio    Number    `json:"ratio"`
	Must     string    `json:"must"`
	OK       bool      `json:"ok"`
	Unit     string    `json:"unit"`
	Runs     int       `json:"runs"`
	Spread   [2]Number `json:"spread"` // of the ratio, or of the figure where there is no baseline
}

// judge makes a result of what the runs of one size measured.
func judge(part string, size int, f Figure, samples []Sample) Result {
	var values, baselines, ratios []float64
	for _, s := range samples {
		values, baselines = append(values, s.Value), append(baselines, s.Baseline)
		ratios = append(ratios, Ratio(s.Value, s.Baseline))
	}
	value, baseline, ratio := Median(values), Median(baselines), Median(ratios)
	around := spread(ratios)
	if baseline == 0 {
		baseline, around = math.NaN(), spread(values)
	}
	r := Result{
		Bench: part + " " + f.Name, Size: size, Unit: f.Unit, Runs: len(samples), OK: true,
		Figure: Number(value), Baseline: Number(baseline), Ratio: Number(ratio),
		Spread: [2]Number{Number(around[0]), Number(around[1])},
	}
	if f.At == 0 || f.At == size {
		r.Must, r.OK = f.Must.String(), f.Must.holds(value, ratio)
	}
	return r
}

// growths are the exponents of every figure, where there are sizes enough to tell.
func growths(p Part, all []Result) (out []Result) {
	const least = 3
	for _, f := range p.Figures {
		var sizes, values, baselines []float64
		for _, r := range all {
			if r.Bench == p.Name+" "+f.Name {
				sizes = append(sizes, float64(r.Size))
				values, baselines = append(values, float64(r.Figure)), append(baselines, float64(r.Baseline))
			}
		}
		if len(sizes) < least {
			continue
		}
		value := Exponent(sizes, values)
		out = append(out, Result{
			Bench: p.Name + " " + f.Name + ", growth", Unit: "exponent", Runs: len(sizes),
			Figure: Number(value), Baseline: Number(Exponent(sizes, baselines)),
			Ratio: Number(math.NaN()), Spread: [2]Number{Number(math.NaN()), Number(math.NaN())},
			Must: f.Growth.String(), OK: f.Growth.holds(value, math.NaN()),
		})
	}
	return out
}

// Print writes a table for people and then one line of JSON for each result, and returns
// how many limits were judged and how many of them do not hold.
func Print(out io.Writer, results []Result) (judged, broken int, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "bench\tsize\tfigure\tbaseline\tratio\tspread\tmust\t")
	for _, r := range results {
		verdict := ""
		if r.Must != "" {
			judged++
			verdict = "ok"
		}
		if !r.OK {
			broken++
			verdict = "DOES NOT HOLD"
		}
		size := strconv.Itoa(r.Size)
		if r.Size == 0 {
			size = ""
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s %s\t%s\t%s\t%s\t%s\t%s\n", r.Bench, size, r.Figure, r.Unit, r.Baseline, r.Ratio,
			between(r.Spread), r.Must, verdict)
	}
	if err := table.Flush(); err != nil {
		return judged, broken, err
	}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, r := range results {
		if err := lines.Encode(r); err != nil {
			return judged, broken, err
		}
	}
	return judged, broken, nil
}

func between(s [2]Number) string {
	if !s[0].known() || !s[1].known() {
		return ""
	}
	return s[0].String() + " to " + s[1].String()
}
