package alerts_test

import (
	"regexp"
	"strings"
)

var block = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// commands are what a page says to run, one each, in its order; the scene runs them.
func commands(page string) (all []string) {
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.TrimSpace(found[1]))
	}
	return all
}
