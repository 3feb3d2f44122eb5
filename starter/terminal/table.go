package terminal

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	gap = 2 // cells between two columns
	// proseFloor is what a sentence is cut down to before a column is left out for it.
	proseFloor = 24
	// floor is what anything is cut down to.
	floor = 4
	mark  = "…" // of what was cut
)

// prose are the columns that hold sentences: they are cut first.
func prose() []string {
	return []string{"MESSAGE", "DETAIL", "ERROR", "PROOF", "FOUND", "NOTICED", "LABELS"}
}

// expendable are the columns that are left out where room is short, the first ones first.
func expendable() []string {
	return []string{"LABELS", "INSTANCE", "PLACEMENT", "EGRESS", "NEXT", "AGE", "CLASS", "KIND", "PROVIDER", "ADDRESS"}
}

// ruler measures as terminals do, whatever the locale.
func ruler() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Table aligns rows, the first of which is the head; an empty cell becomes "-". No line
// is wider than the screen: sentences are cut, then columns left out, then all is cut.
func (s Screen) Table(indent string, rows [][]string) string {
	t := table{indent: indent, paint: s.Colour}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Clean(cell)
			if cells[i] == "" {
				cells[i] = "-"
			}
		}
		t.rows = append(t.rows, cells)
	}
	t.measure()
	if s.Width > 0 {
		t.fit(s.Width)
	}
	return t.text()
}

// table is one on its way to a screen.
type table struct {
	indent string
	paint  bool
	rows   [][]string
	widths []int // of the columns, in cells
}

func (t *table) measure() {
	t.widths = make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], ruler().StringWidth(cell))
		}
	}
}

// fit makes every line at most width cells wide.
func (t *table) fit(width int) {
	t.indent = t.indent[:min(len(t.indent), max(width-1, 0))]
	t.cut(width, proseFloor, prose())
	for _, name := range expendable() {
		if t.width() <= width {
			return
		}
		t.leaveOut(name)
		t.measure()
		t.cut(width, proseFloor, prose())
	}
	t.cut(width, floor, nil)
	for t.width() > width && len(t.widths) > 1 { // a sliver: the first columns say most
		t.leaveOut(t.rows[0][len(t.rows[0])-1])
		t.measure()
		t.cut(width, floor, nil)
	}
	t.cut(width, 1, nil)
}

// width is that of the widest line.
func (t *table) width() int {
	all := len(t.indent) + gap*(len(t.widths)-1)
	for _, w := range t.widths {
		all += w
	}
	return all
}

// cut narrows the widest of the named columns, or of all for none, until the table fits
// or they are down to least.
func (t *table) cut(width, least int, names []string) {
	for over := t.width() - width; over > 0; over = t.width() - width {
		widest := -1
		for i, w := range t.widths {
			if (names == nil || slices.Contains(names, t.rows[0][i])) && w > least && (widest < 0 || w > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// leaveOut removes a column; the last one that is left stays.
func (t *table) leaveOut(name string) {
	i := slices.Index(t.rows[0], name)
	if i < 0 || len(t.rows[0]) == 1 {
		return
	}
	for n, row := range t.rows {
		if i < len(row) {
			t.rows[n] = slices.Delete(row, i, i+1)
		}
	}
}

func (t *table) text() string {
	var b strings.Builder
	for n, row := range t.rows {
		var line strings.Builder
		blanks := len(t.indent)
		for i, cell := range row {
			cell = ruler().Truncate(cell, t.widths[i], mark)
			line.WriteString(strings.Repeat(" ", blanks))
			line.WriteString(t.painted(n, t.rows[0][i], cell))
			blanks = t.widths[i] - ruler().StringWidth(cell) + gap
		}
		b.WriteString(line.String() + "\n")
	}
	return b.String()
}

// painted is a cell in its colour, if it has one.
func (t *table) painted(row int, head, cell string) string {
	switch {
	case !t.paint:
		return cell
	case row == 0:
		return bold + cell + plain
	default:
		return Paint(head, cell)
	}
}
