package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// standardInput is the name of a file that is none.
const standardInput = "-"

// readFiles reads every file before anything is applied.
func (a *app) readFiles(o applyOptions, namespaceGiven bool) ([]v1.Proxy, error) {
	files, err := expand(o.files, o.recursive)
	if err != nil {
		return nil, err
	}
	var all []placed
	for _, file := range files {
		some, err := a.readFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for _, p := range all {
		if namespaceGiven && p.Metadata.Namespace != a.namespace {
			return nil, usagef("%s: metadata.namespace: %q of %q is not the namespace that -n names, %q",
				p.place, p.Metadata.Namespace, p.Metadata.Name, a.namespace)
		}
	}
	return proxiesOf(all), checkOnce(all)
}

func (a *app) readFile(file string) ([]placed, error) {
	if file == standardInput {
		return decodePlaced("standard input", a.In, a.namespace)
	}
	r, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return decodePlaced(file, r, a.namespace)
}

// expand puts the files of a folder in its place.
func expand(names []string, recursive bool) (files []string, _ error) {
	for i, name := range names {
		if name == standardInput {
			if slices.Contains(names[:i], name) {
				return nil, usagef("-f -: the standard input can be read once only")
			}
			files = append(files, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		found, err := filesIn(name, recursive)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// filesIn are the files of a folder that can hold Proxies, in the order of their names.
func filesIn(folder string, recursive bool) (files []string, _ error) {
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil, path == folder:
			return err
		case d.IsDir() && (isHidden(d) || !recursive):
			return fs.SkipDir
		case !d.IsDir() && !isHidden(d) && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		more := ""
		if !recursive {
			more = "; -R looks into the folders in it, too"
		}
		return nil, fmt.Errorf("%s: has no file that ends in .yaml, .yml or .json%s", folder, more)
	}
	return files, err
}

func isHidden(d fs.DirEntry) bool { return strings.HasPrefix(d.Name(), ".") }
