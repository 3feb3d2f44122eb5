package v1

import "time"

// Duration is a time.Duration as Go writes it: "90s", "1h30m". It is kept as text,
// so that Validate can name the field that holds a wrong one.
type Duration string

// Or returns the duration, or fallback where none is set. It is only called after
// Validate, so what does not parse counts as not set.
func (d Duration) Or(fallback time.Duration) time.Duration {
	if parsed, err := time.ParseDuration(string(d)); err == nil {
		return parsed
	}
	return fallback
}

// validate returns nil for no duration and for one that is not negative.
func (d Duration) validate(field string) error {
	if d == "" {
		return nil
	}
	parsed, err := time.ParseDuration(string(d))
	switch {
	case err != nil:
		return &FieldError{field, show(string(d)), `is not a duration such as "90s" or "1h30m"`}
	case parsed < 0:
		return &FieldError{field, show(string(d)), "is negative"}
	default:
		return nil
	}
}
