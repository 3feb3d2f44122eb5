// Package snippets runs what docs/using-proxies.md tells people to paste, to the letter,
// against the fleet of `make run`: a block without a test fails, unless the page says
// that nobody runs it. It imports only the standard library. Start reading at Read;
// world_test.go has the machine on which the blocks run.
package snippets

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// NotRun is the line that readers see above a block that no test runs.
const NotRun = "Not run by our tests."

// Snippet is a fenced block of a page.
type Snippet struct {
	Name string // of its marker
	Run  bool   // false: the page says that no test runs it
	Text string // what is inside of the fence, with a newline at its end
}

// marker is the line before a fence, such as <!-- snippet: curl --> or
// <!-- snippet: scrapy, not run -->.
var marker = regexp.MustCompile(`^<!-- snippet: ([a-z-]+)(, not run)? -->$`)

const fence = "```"

// Read returns the blocks of a Markdown text in their order. Every fence has to have a
// marker on the line before it, and every marker a fence; no name comes twice. Above the
// marker of a block that is not run there is a paragraph that ends in NotRun.
func Read(text string) ([]Snippet, error) {
	r := reader{seen: map[string]bool{}}
	for number, line := range strings.Split(text, "\n") {
		if err := r.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
	}
	if r.open || r.next != nil {
		return nil, errors.New("the last block does not end")
	}
	return r.done, nil
}

// reader is what is known after some lines.
type reader struct {
	done []Snippet
	seen map[string]bool
	said string   // the last line of text that is not empty
	next *Snippet // after a marker
	open bool     // within a fence
}

func (r *reader) line(line string) error {
	switch {
	case r.open && line == fence:
		r.done, r.next, r.open = append(r.done, *r.next), nil, false
	case r.open:
		r.next.Text += line + "\n"
	case strings.HasPrefix(line, fence):
		if r.next == nil {
			return errors.New("a block without a marker: say which test runs it, or that none does")
		}
		r.open = true
	case r.next != nil:
		return fmt.Errorf("the marker %q is not right before a block", r.next.Name)
	case strings.HasPrefix(line, "<!-- snippet"):
		return r.mark(line)
	case line != "":
		r.said = line
	}
	return nil
}

func (r *reader) mark(line string) error {
	parts := marker.FindStringSubmatch(line)
	if parts == nil {
		return fmt.Errorf("%q is no marker: <!-- snippet: name --> or <!-- snippet: name, not run -->", line)
	}
	name, run := parts[1], parts[2] == ""
	switch {
	case r.seen[name]:
		return fmt.Errorf("the marker %q comes twice", name)
	case run == strings.HasSuffix(r.said, NotRun):
		return fmt.Errorf("the marker %q and the words above it disagree on whether it is run: %q", name, NotRun)
	}
	r.seen[name], r.next = true, &Snippet{Name: name, Run: run}
	return nil
}
