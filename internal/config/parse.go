package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxPort = 65535

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParsePort returns a port, 0 included, or an error that says what is wrong with
// the text and leaves naming the key to the caller.
func ParsePort(text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", text)
	case n < 0 || n > maxPort:
		return 0, fmt.Errorf("%q is not within 0 to %d", text, maxPort)
	default:
		return n, nil
	}
}

func setPort(to *int, text string) error {
	n, err := ParsePort(text)
	*to = n
	return err
}

// auto is a number that the worker finds out.
const auto = "auto"

// setCount takes a number of at least so much, or auto, which is 0.
func setCount(to *int, text string, least int) error {
	if text == auto {
		*to = 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return fmt.Errorf("%q is neither %s nor a whole number of at least %d", text, auto, least)
	}
	*to = n
	return nil
}

// leastPoll keeps a fleet from asking its backends without a pause.
const leastPoll = time.Second

func setPoll(to *time.Duration, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < leastPoll {
		return fmt.Errorf("%q is not a duration of at least %s, such as 2m", text, leastPoll)
	}
	*to = d
	return nil
}

func setNonEmpty(to *string, text string) error {
	if text == "" {
		return errors.New(`"" is empty`)
	}
	*to = text
	return nil
}

func setLabel(to *string, text string) error {
	if text == "" {
		return errors.New("is required: a DNS label that names this installation, such as \"prod\"")
	}
	if !dnsLabel.MatchString(text) {
		return fmt.Errorf("%q is not a DNS label: 1 to 63 of a-z, 0-9 and -, "+
			"beginning and ending with a letter or digit", text)
	}
	*to = text
	return nil
}

// tag is what a name of a build may be in images and in Temporal alike.
var tag = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// setTag takes the empty text for none.
func setTag(to *string, text string, allowed *regexp.Regexp, is string) error {
	if text != "" && !allowed.MatchString(text) {
		return fmt.Errorf("%q is not %s", text, is)
	}
	*to = text
	return nil
}

func setFormat(to *string, text string) error {
	if text != FormatText && text != FormatJSON {
		return fmt.Errorf("%q is neither %q nor %q", text, FormatText, FormatJSON)
	}
	*to = text
	return nil
}

func setLevel(to *slog.Level, text string) error {
	if err := to.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("%q is not a level: debug, info, warn or error, or one with an offset such as debug-4", text)
	}
	return nil
}

// setOrigins takes origins as browsers write them: no wildcard, no path.
func setOrigins(to *[]string, text string) error {
	var origins []string
	for origin := range strings.SplitSeq(text, ",") {
		origin = strings.TrimSpace(origin)
		if origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin ||
			strings.Contains(u.Host, "*") {
			return fmt.Errorf("%q is not an origin, such as https://temporal.example or http://127.0.0.1:8233", origin)
		}
		origins = append(origins, origin)
	}
	*to = origins
	return nil
}

func setRoles(to *[]Role, text string) error {
	var roles []Role
	for name := range strings.SplitSeq(text, ",") {
		role := Role(strings.TrimSpace(name))
		switch role {
		case RoleWorker, RoleAPI, RoleOutside:
			roles = append(roles, role)
		default:
			return fmt.Errorf("%q is none of %q, %q and %q", role, RoleWorker, RoleAPI, RoleOutside)
		}
	}
	if slices.Contains(roles, RoleWorker) && slices.Contains(roles, RoleOutside) {
		return fmt.Errorf("%q holds %q and %q: the second prober runs where no client of the proxies is, and a worker is one",
			text, RoleWorker, RoleOutside)
	}
	slices.Sort(roles)
	*to = slices.Compact(roles)
	return nil
}

// setPage takes the address of a web page that others are below: no query, no fragment.
func setPage(to *string, text string) error {
	if text == "" {
		*to = ""
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("%q is not the address of a page, such as https://temporal.example or http://127.0.0.1:8233", text)
	}
	*to = strings.TrimRight(text, "/")
	return nil
}
