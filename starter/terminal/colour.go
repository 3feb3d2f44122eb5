package terminal

import (
	"slices"
	"strings"
)

// The colours, as every terminal since ECMA-48 knows them.
const (
	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// Paint gives a cell the colour of what it says, in the columns whose words have one.
func Paint(head, cell string) string {
	if !slices.Contains([]string{"PHASE", "HEALTH", "READY"}, head) {
		return cell
	}
	switch cell {
	case "Running", "healthy", "yes":
		return green + cell + plain
	case "Blocked", "unhealthy", "no":
		return red + cell + plain
	case "Pending", "Provisioning", "Replacing", "Deleting", "Gone":
		return yellow + cell + plain
	default:
		return cell
	}
}

// Diff gives the lines of a unified difference their colours.
func (s Screen) Diff(text string) string {
	if !s.Colour {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		colour := map[byte]string{'+': green, '-': red, '@': yellow}[line[0]]
		if colour == "" {
			b.WriteString(line)
			continue
		}
		b.WriteString(colour + strings.TrimSuffix(line, "\n") + plain + "\n")
	}
	return b.String()
}
