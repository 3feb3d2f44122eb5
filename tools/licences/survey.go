package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are the licences that a binary under Apache-2.0 can hold with no more duty
// than to bring their texts along, which a release does. None is copyleft.
func allowed() []string {
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
}

// unlicensed are modules that have no file with a licence and are taken all the same,
// with the reason. One that gets a file leaves this list.
func unlicensed() map[string]string {
	return map[string]string{
		"github.com/nexus-rpc/nexus-proto-annotations": "v0.1.0 has no file with a licence. Temporal's API (MIT) requires " +
			"it, of the same authors; it is one generated file. Ask them before you publish binaries.",
	}
}

// licensed is a module with the licences that were found in its files.
type licensed struct {
	path  string
	names []string // SPDX, sorted
	texts []string // the files', in the order of their paths
}

// survey reads the licence of every module that a binary holds. Its error names each
// module that has none, or one that is not allowed.
func survey(ctx context.Context, root string) ([]licensed, error) {
	modules, err := linked(ctx, root)
	if err != nil {
		return nil, err
	}
	reader, err := assets.DefaultClassifier()
	if err != nil {
		return nil, err
	}
	var found []licensed
	var faults []error
	for _, m := range modules {
		l, err := read(m, reader)
		if err == nil {
			err = judge(l)
		}
		faults = append(faults, err)
		found = append(found, l)
	}
	return found, errors.Join(faults...)
}

// read classifies the files of one module.
func read(m module, reader *classifier.Classifier) (licensed, error) {
	l := licensed{path: m.path}
	for _, file := range m.files {
		text, err := os.ReadFile(file) //nolint:gosec // of the module cache
		if err != nil {
			return l, err
		}
		names := namesIn(text, reader)
		if len(names) == 0 {
			return l, fmt.Errorf("%s: no licence that is known is in %s: read it, and tell tools/licences of it", m.path, file)
		}
		l.names = append(l.names, names...)
		l.texts = append(l.texts, string(text))
	}
	slices.Sort(l.names)
	l.names = slices.Compact(l.names)
	return l, nil
}

// namesIn are the licences whose whole text is there.
func namesIn(text []byte, reader *classifier.Classifier) []string {
	var names []string
	for _, match := range reader.Match(text).Matches {
		if match.MatchType == "License" {
			names = append(names, match.Name)
		}
	}
	return names
}

// judge returns nil for a module that may be in a binary.
func judge(l licensed) error {
	_, excused := unlicensed()[l.path]
	switch {
	case len(l.names) == 0 && !excused:
		return fmt.Errorf("%s: has no file with a licence: nobody may use it without one", l.path)
	case len(l.names) > 0 && excused:
		return fmt.Errorf("%s: has a licence now: take it out of unlicensed in tools/licences", l.path)
	}
	for _, name := range l.names {
		if !slices.Contains(allowed(), name) {
			return fmt.Errorf("%s: %s is not one of %s: do without the module, or say in tools/licences why it may be",
				l.path, name, strings.Join(allowed(), ", "))
		}
	}
	return nil
}

// pageOf has no versions: it changes with the licences, and not with every update.
func pageOf(found []licensed) string {
	var b strings.Builder
	b.WriteString("# Licences\n\n")
	b.WriteString("What the published binaries hold of others, on any platform, and under which licence. " +
		"`make licences` writes this page from\nthe files in the modules themselves, and fails on a licence " +
		"that is not one of " +
		strings.Join(allowed(), ", ") + ".\n`make dist` puts their texts beside the binaries. egressfleet itself is under " +
		"[Apache-2.0](../LICENSE).\n\n")
	b.WriteString("| module | licence |\n|---|---|\n")
	for _, l := range found {
		fmt.Fprintf(&b, "| %s | %s |\n", l.path, cmp.Or(strings.Join(l.names, ", "), "**none**: "+unlicensed()[l.path]))
	}
	return b.String()
}

// textOf has each text once, below the modules that it is of.
func textOf(found []licensed) string {
	of := map[string][]string{}
	for _, l := range found {
		for _, text := range l.texts {
			if text = strings.TrimSpace(text); !slices.Contains(of[text], l.path) {
				of[text] = append(of[text], l.path)
			}
		}
	}
	var parts []string
	for text, paths := range of {
		parts = append(parts, strings.Join(paths, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n"+strings.Repeat("-", 80)+"\n\n") //nolint:mnd // a line across
}
