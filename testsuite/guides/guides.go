// Package guides reads what docs/ says about providers, so that its tests can hold it
// against the code: the questionnaire against each guide, the samples against the
// registry, and docs/adding-a-provider.md against the provider that it builds. It
// imports the contract, the registry and the list of types. Start reading at Answers;
// profiles.go asks every type for its profile.
package guides

import (
	"regexp"
	"strings"
)

// Answer is a row of a table: its first cell, and the rest of it.
type Answer struct {
	Heading string // of the second level, above the row
	Entry   string
	Text    string // what the other cells say
}

// entryForm is the first cell of an entry. Names of keys, in backticks, and words of
// other tables that begin with a capital or have a space are none.
var entryForm = regexp.MustCompile(`^[a-z][a-z-]*$`)

// Answers returns the rows of a Markdown text that can be answers, in their order.
func Answers(text string) []Answer {
	var answers []Answer
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, is := strings.CutPrefix(line, "## "); is {
			heading = title
		}
		cells := cells(line)
		if len(cells) < 2 || !entryForm.MatchString(cells[0]) || isHead(cells[0]) {
			continue
		}
		answers = append(answers, Answer{Heading: heading, Entry: cells[0], Text: strings.Join(cells[1:], ": ")})
	}
	return answers
}

// isHead reports whether a first cell is the head of a table of answers.
func isHead(cell string) bool { return cell == "entry" || cell == "axis" }

// cells splits a row; nil for what is none.
func cells(line string) []string {
	inside, is := strings.CutPrefix(line, "|")
	if !is {
		return nil
	}
	parts := strings.Split(strings.TrimSuffix(inside, "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// Block is a fenced block of code.
type Block struct {
	Language string
	File     string // the second word of the fence; empty: of no file
	Code     string // with a newline at its end
}

// Blocks returns the fenced blocks of a Markdown text, in their order. A fence is
// three backticks at the beginning of a line, after spaces where it is in a list: these
// are taken away from what is within.
func Blocks(text string) []Block {
	const fence = "```"
	var blocks []Block
	var open *Block
	indent := 0
	for line := range strings.Lines(text) {
		inner := strings.TrimLeft(line, " ")
		info, is := strings.CutPrefix(inner, fence)
		switch {
		case is && open != nil:
			blocks, open = append(blocks, *open), nil
		case is:
			language, file, _ := strings.Cut(strings.TrimSpace(info), " ")
			open, indent = &Block{Language: language, File: file}, len(line)-len(inner)
		case open != nil:
			open.Code += line[min(indent, len(line)-len(inner)):]
		}
	}
	return blocks
}
