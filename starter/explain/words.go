package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

const (
	day = 24 * time.Hour
	// mostQuoted is how much of a message is quoted, in runes.
	mostQuoted = 400
)

// long is a length of time in words, of the largest unit that says it to about a half.
func long(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return count(int(d/time.Second), "second")
	case d < 2*time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 2*day:
		return count(int(d/time.Hour), "hour")
	default:
		return count(int(d/day), "day")
	}
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// quoted is a sentence that tells what somebody else wrote; empty for nothing.
func quoted(who, text string) string {
	text = clean(text)
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" %s: “%s”.", who, text)
}

// clean is a message in one line, without what a terminal would obey, and without what
// the workflow adds of its own about the next attempt: that is told better elsewhere.
func clean(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, own := range []string{"; next attempt at ", "; no more calls until ", "; looking again until "} {
		text, _, _ = strings.Cut(text, own)
	}
	runes := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text))
	if len(runes) > mostQuoted {
		return string(runes[:mostQuoted]) + "…"
	}
	return string(runes)
}
