package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checked is the version of binaries that nobody gets.
const checked = "v0.0.0-check"

// check builds each command twice for this platform, from two copies of the tree in
// folders with other names, the second one with nothing compiled before, and compares.
func check(ctx context.Context, root string, say io.Writer) (err error) {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(scratch)) }()
	files, err := tracked(ctx, root)
	if err != nil {
		return err
	}
	builds := []struct {
		folder string
		more   []string
	}{
		{folder: filepath.Join(scratch, "a")},
		{filepath.Join(scratch, "b", "with a longer name"), []string{
			"GOCACHE=" + filepath.Join(scratch, "cache"), "HOME=" + scratch, "TZ=Pacific/Auckland", "LANG=C",
		}},
	}
	sums := map[string][]string{}
	for _, b := range builds {
		if err := copyTo(b.folder, root, files); err != nil {
			return err
		}
		for _, command := range commands() {
			sum, err := built(ctx, job{root: b.folder, version: checked, say: say, more: moduleCache(ctx, b.more)}, command)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(say, "%s  %s\n", sum, command)
			sums[command] = append(sums[command], sum)
		}
	}
	return agree(sums, say)
}

// built makes a binary of this platform, and returns its checksum.
func built(ctx context.Context, j job, command string) (string, error) {
	binary := filepath.Join(j.root, "made-"+command)
	if err := compile(ctx, j, command, here(), binary); err != nil {
		return "", err
	}
	said, err := asked(ctx, binary)
	if err != nil || said != j.version {
		return "", errors.Join(fmt.Errorf("%s says version %q, not %q", command, said, j.version), err)
	}
	return sumOf(binary)
}

// moduleCache keeps the modules where they are when HOME is another one.
func moduleCache(ctx context.Context, more []string) []string {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return more
	}
	return append(more, "GOMODCACHE="+strings.TrimSpace(string(cache)))
}

// agree fails where builds of one command differ.
func agree(sums map[string][]string, say io.Writer) error {
	var faults []error
	for command, found := range sums {
		for _, sum := range found[1:] {
			if sum != found[0] {
				faults = append(faults, fmt.Errorf("%s: two builds of the same tree differ: %s and %s", command, found[0], sum))
			}
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	_, err := fmt.Fprintf(say, "release: binaries=%d builds=2 different=0\n", len(sums))
	return err
}

// tracked are the files that git knows and that are there, relative to root.
func tracked(ctx context.Context, root string) ([]string, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []string
	for _, file := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(root, file)); err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files, nil
}

func copyTo(folder, root string, files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file)) //nolint:gosec // of the repository
		if err != nil {
			return err
		}
		to := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(to), folderMode); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, fileMode); err != nil { //nolint:gosec // a copy
			return err
		}
	}
	return nil
}

// removeAll also removes what a compiler has made unwritable.
func removeAll(folder string) error {
	_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, folderMode) //nolint:gosec // on its way out
		}
		return nil
	})
	return os.RemoveAll(folder)
}
