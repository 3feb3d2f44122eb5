package terminal

import "strings"

// Paragraph is a text in lines of at most width cells, broken between words; a word that
// is longer has a line of its own. What begins the first line indents the others.
func (s Screen) Paragraph(head, text string, width int) string {
	indent := strings.Repeat(" ", ruler().StringWidth(head))
	line, used := head, len(indent)
	empty := true
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		cells := ruler().StringWidth(word)
		if !empty && used+1+cells > width {
			b.WriteString(line + "\n")
			line, used, empty = indent, len(indent), true
		}
		if !empty {
			line, used = line+" ", used+1
		}
		line, used, empty = line+word, used+cells, false
	}
	return b.String() + line + "\n"
}
