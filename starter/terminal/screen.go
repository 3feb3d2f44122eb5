// Package terminal is what the command line knows of the place that it writes to: how
// wide it is, whether colours may be used, and tables that never wrap there. It imports
// nothing of ours. Start reading at Screen.
package terminal

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Screen is where a text is shown. The zero one is a file or a pipe, which takes lines
// of any length and no colour.
type Screen struct {
	Width  int // in cells; 0: without bound
	Height int // in lines; 0: without bound
	Colour bool
}

// usualWidth is that of a terminal which does not tell its own.
const usualWidth = 80

// Of returns the screen behind a file, which may be none. NO_COLOR that is not empty,
// and TERM=dumb, leave colours out.
func Of(f *os.File, getenv func(string) string) Screen {
	if !Is(f) {
		return Screen{}
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width, height = usualWidth, 0
	}
	return Screen{Width: width, Height: height, Colour: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Is reports whether a file is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Clean returns text in one line and without what a terminal would obey: a backend's
// message may hold anything.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
}

// What moves a terminal's cursor and removes what stands there.
const (
	Erase     = "\r\x1b[K"       // this line
	EndOfLine = "\x1b[K"         // the rest of this line
	Home      = "\x1b[H"         // to the first cell
	Rest      = "\x1b[J"         // everything from here
	Blank     = "\x1b[2J" + Home // everything
)

// Cut returns text that stays in one line: the last cell is left free, where some
// terminals wrap.
func (s Screen) Cut(text string) string {
	if s.Width == 0 {
		return text
	}
	return ruler().Truncate(text, max(s.Width-1, 0), mark)
}
