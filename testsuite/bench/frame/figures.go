package frame

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Must is a limit; the zero value is none.
type Must struct {
	of    what
	least bool
	limit float64
}

type what string

const (
	ofRatio what = "ratio"
	ofValue what = "figure"
)

// RatioAtLeast demands so many times the baseline, or more.
func RatioAtLeast(limit float64) Must { return Must{ofRatio, true, limit} }

// RatioAtMost demands so many times the baseline, or less.
func RatioAtMost(limit float64) Must { return Must{ofRatio, false, limit} }

// AtLeast demands a figure of so much or more.
func AtLeast(limit float64) Must { return Must{ofValue, true, limit} }

// AtMost demands a figure of so much or less.
func AtMost(limit float64) Must { return Must{ofValue, false, limit} }

// String is the limit as it is printed, such as "ratio >= 0.7"; empty for none.
func (m Must) String() string {
	if m == (Must{}) {
		return ""
	}
	sign := "<="
	if m.least {
		sign = ">="
	}
	return fmt.Sprintf("%s %s %s", m.of, sign, strconv.FormatFloat(m.limit, 'g', -1, 64))
}

// holds reports whether a limit is kept. What is no number keeps none.
func (m Must) holds(value, ratio float64) bool {
	is := value
	if m.of == ofRatio {
		is = ratio
	}
	switch {
	case m == (Must{}):
		return true
	case m.least:
		return is >= m.limit
	default:
		return is <= m.limit
	}
}

// Median returns the middle of some numbers, and NaN of none.
func Median(of []float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(of))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile returns the least number that so many percent are not above, and NaN of none.
func Percentile(of []float64, percent float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(of))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// spread is the least and the most.
func spread(of []float64) [2]float64 { return [2]float64{slices.Min(of), slices.Max(of)} }

// Ratio divides, and is NaN where there is no baseline.
func Ratio(value, baseline float64) float64 {
	if baseline == 0 {
		return math.NaN()
	}
	return value / baseline
}

// Slope returns the rise of the line through some points that fits best, by least
// squares; NaN where fewer than two x differ.
func Slope(x, y []float64) float64 {
	meanX, meanY := mean(x), mean(y)
	var over, under float64
	for i := range x {
		over += (x[i] - meanX) * (y[i] - meanY)
		under += (x[i] - meanX) * (x[i] - meanX)
	}
	if under == 0 {
		return math.NaN()
	}
	return over / under
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}

// Exponent is how a figure grows with the size: 0 stays the same, 1 grows as the size
// does, 2 as its square. NaN where that cannot be told.
func Exponent(sizes, values []float64) float64 {
	x, y := make([]float64, len(sizes)), make([]float64, len(values))
	for i := range sizes {
		if sizes[i] <= 0 || values[i] <= 0 {
			return math.NaN()
		}
		x[i], y[i] = math.Log(sizes[i]), math.Log(values[i])
	}
	return Slope(x, y)
}

// Timed returns how long something took, in seconds.
func Timed(do func() error) (seconds float64, err error) {
	begun := time.Now()
	err = do()
	return time.Since(begun).Seconds(), err
}
