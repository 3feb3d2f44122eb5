package config

import (
	"fmt"
	"strconv"
	"time"
)

// Feedback is what reports of clients lead to. The role api sends it along with them.
type Feedback struct {
	BanFor    time.Duration // how long an egress IP is left out for a domain
	Window    time.Duration // how long a report counts against a proxy
	ReplaceAt int           // domains that ban a proxy; 0: never
	HoldAt    int           // domains on which it is slow; 0: never
	HoldFor   time.Duration
	Budget    int // holds and replacements of a provider within an hour
	Floor     int // percent of a provider's proxies that stay usable
}

// The most that a workflow keeps.
const (
	mostBan       = 7 * 24 * time.Hour
	mostWindow    = 24 * time.Hour
	mostThreshold = 32
	mostBudget    = 60
	leastFeedback = time.Minute
)

// feedbackSettings say what reports of clients lead to.
func feedbackSettings() []setting {
	return []setting{
		{
			"feedback.banFor", "feedback-ban-for", "1h", "how long an egress IP is left out for a domain that was reported to " +
				"ban it; 1m to 168h",
			func(c *Config, v string) error { return setSpan(&c.Feedback.BanFor, v, mostBan) },
		},
		{
			"feedback.budget", "feedback-budget", "6", "holds and replacements of a provider's proxies within an hour that " +
				"reports may lead to; 0 to 60",
			func(c *Config, v string) error { return setUpTo(&c.Feedback.Budget, v, mostBudget) },
		},
		{
			"feedback.floor", "feedback-floor", "80", "percent of a provider's proxies that stay usable whatever is reported, " +
				"and at least one; 0 to 100",
			func(c *Config, v string) error { return setUpTo(&c.Feedback.Floor, v, 100) },
		},
		{
			"feedback.holdAt", "feedback-hold-at", "5", "domains on which a proxy was reported to time out or be slow that " +
				"have it held; 0 is never, and 32 the most",
			func(c *Config, v string) error { return setUpTo(&c.Feedback.HoldAt, v, mostThreshold) },
		},
		{
			"feedback.holdFor", "feedback-hold-for", "5m", "how long such a hold lasts; 1m to 24h",
			func(c *Config, v string) error { return setSpan(&c.Feedback.HoldFor, v, mostWindow) },
		},
		{
			"feedback.replaceAt", "feedback-replace-at", "5", "domains that were reported to ban a proxy, or to ask it for a " +
				"captcha, that have it replaced; 0 is never, and 32 the most",
			func(c *Config, v string) error { return setUpTo(&c.Feedback.ReplaceAt, v, mostThreshold) },
		},
		{
			"feedback.window", "feedback-window", "15m", "how long a report counts against a proxy; 1m to 24h",
			func(c *Config, v string) error { return setSpan(&c.Feedback.Window, v, mostWindow) },
		},
	}
}

func setSpan(to *time.Duration, text string, most time.Duration) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < leastFeedback || d > most {
		return fmt.Errorf("%q is not a duration within %s to %s, such as 15m", text, leastFeedback, most)
	}
	*to = d
	return nil
}

func setUpTo(to *int, text string, most int) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("%q is not a whole number within 0 to %d", text, most)
	}
	*to = n
	return nil
}
