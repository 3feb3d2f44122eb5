package page

import (
	"fmt"
	"time"
)

// Moment is a time as it is shown; the zero one is none.
type Moment struct {
	At   string // RFC 3339, for machines and on hover
	Text string // "3 min ago", "in 20 s"
}

// momentOf says how far away a time is.
func momentOf(now, at time.Time) Moment {
	if at.IsZero() {
		return Moment{}
	}
	m := Moment{At: at.UTC().Format(time.RFC3339)}
	switch since := now.Sub(at); {
	case since < 0:
		m.Text = "in " + roughly(-since)
	case since < time.Second:
		m.Text = "now"
	default:
		m.Text = roughly(since) + " ago"
	}
	return m
}

const day = 24 * time.Hour

// roughly is a duration in its largest unit.
func roughly(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= unit.of {
			return fmt.Sprintf("%d %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d s", max(1, d/time.Second))
}
