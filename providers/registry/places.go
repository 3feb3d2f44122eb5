package registry

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostLinks is how many symbolic links a path may have, as on Linux.
const mostLinks = 40

// placesOf returns the directory entries that decide what a path leads to: every
// symbolic link on its way and the file itself, or the first that is not there. A
// mounted Secret changes by one of its links, and the file's own folder stays silent.
func placesOf(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	var places []string
	at, rest := string(filepath.Separator), parts(path)
	for links := 0; len(rest) > 0 && links < mostLinks; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return append(places, next)
		case info.Mode()&os.ModeSymlink != 0:
			places = append(places, next)
			at, rest = follow(next, rest)
			links++
		case len(rest) == 0:
			places = append(places, next)
		default:
			at = next
		}
	}
	return places
}

// follow returns where a walk goes on behind a link.
func follow(link string, rest []string) (at string, more []string) {
	target, err := os.Readlink(link)
	if err != nil {
		return link, nil
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	return string(filepath.Separator), append(parts(target), rest...)
}

func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.Clean(path), string(filepath.Separator)),
		func(part string) bool { return part == "" })
}

// places are the entries for all of the files.
func (f files) places() []string {
	var all []string
	for _, path := range f {
		all = append(all, placesOf(path)...)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}
