package providers

import (
	"fmt"
	"regexp"
	"strings"
)

// IDSeparator is between the location and the name of an ID. Contract §6.
const IDSeparator = "/"

// longestFileName is shorter than what file systems take, since more is put around it.
const longestFileName = 128

var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckLocation returns an error about a configured location that no ID could hold. It
// names the key of the configuration, such as "hosts[1].name", and the value.
func CheckLocation(key, value string) error {
	switch {
	case value == "":
		return fmt.Errorf(`%s: "" is empty, and is the first half of every ID`, key)
	case strings.Contains(value, IDSeparator):
		return fmt.Errorf("%s: %q holds %q, which separates location and name in an ID", key, value, IDSeparator)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '\x7f' }):
		return fmt.Errorf("%s: %q holds a space or a control character, which no ID may", key, value)
	default:
		return nil
	}
}

// CheckFileName returns an error about a configured word, such as the key of an image
// catalogue, that is not safe as the name of a file or a volume: it could lead out of
// its folder, be hidden, or be taken for an option. It names the key and the value.
func CheckFileName(key, value string) error {
	if len(value) > longestFileName || !fileName.MatchString(value) {
		return fmt.Errorf("%s: %q is not safe as a file name: 1 to %d of a-z, A-Z, 0-9, '.', '_' and '-', "+
			"beginning with a letter or digit", key, value, longestFileName)
	}
	return nil
}
