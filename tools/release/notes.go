package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// printNotes prints what the changelog has of a version.
func printNotes(changelog, version string, out io.Writer) error {
	if version == "" {
		return errors.New("notes: name a version, such as v1.2.3, or Unreleased")
	}
	text, err := os.ReadFile(changelog) //nolint:gosec // the repository's own
	if err != nil {
		return err
	}
	notes, err := notesOf(string(text), version)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, notes)
	return err
}

// notesOf returns what is below the heading of a version: "## v1.2.3" or
// "## v1.2.3 (2026-11-30)". Its error lists the versions that there are.
func notesOf(changelog, version string) (string, error) {
	var notes, known []string
	found := false
	for line := range strings.Lines(changelog) {
		line = strings.TrimRight(line, "\n")
		if heading, is := strings.CutPrefix(line, "## "); is {
			if found {
				break
			}
			name, _, _ := strings.Cut(heading, " ")
			known = append(known, name)
			found = name == version
			continue
		}
		if found {
			notes = append(notes, line)
		}
	}
	text := strings.TrimSpace(strings.Join(notes, "\n"))
	switch {
	case !found:
		return "", fmt.Errorf("the changelog has no %q; it has %s", version, strings.Join(known, ", "))
	case text == "":
		return "", fmt.Errorf("the changelog says nothing of %q", version)
	default:
		return text, nil
	}
}
