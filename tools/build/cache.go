package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	executable = 0o755
	// abandoned is the age at which an unfinished build is certainly nobody's: the
	// longest takes minutes.
	abandoned = 24 * time.Hour
	// unfinished begins the name of every directory that is being built in.
	unfinished = "unfinished-"
)

// build makes cached, or leaves nothing. Of several builds of a tool at once, in other
// processes, too, one compiles and the others take what it has made.
func build(ctx context.Context, t tool, at places, cached string) (err error) {
	if err := os.MkdirAll(at.cache, executable); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(at.cache, t.name+".lock"), func() {
		_, _ = fmt.Fprintf(at.say, "somebody else is building %s: waiting for it\n", t.name)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(cached); err == nil {
		return nil
	}
	return buildAlone(ctx, t, at, cached)
}

// buildAlone builds in a directory of its own and renames what came out of it, so that
// a build that was killed leaves nothing that would be taken for a tool.
func buildAlone(ctx context.Context, t tool, at places, cached string) (err error) {
	forget(at.cache)
	dir, err := os.MkdirTemp(at.cache, unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made := filepath.Join(dir, t.name)
	done := report(at.say, t, reportEvery)
	err = compile(ctx, t, at.root, made)
	done(err)
	if err != nil {
		return err
	}
	return os.Rename(made, cached)
}

// compile shows the compiler's words only when it fails.
func compile(ctx context.Context, t tool, root, to string) error {
	args := append([]string{"build", "-o", to}, t.flags()...)
	compiler := exec.CommandContext(ctx, "go", append(args, t.pkg)...) //nolint:gosec // from the table of tools
	compiler.Dir, compiler.Env = filepath.Join(root, "tools", t.module), environment()
	words, err := compiler.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("the build was stopped: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("go build in tools/%s: %w\n%s", t.module, err, words)
	}
	return nil
}

// forget removes what builds that were killed have left.
func forget(cache string) {
	dirs, _ := filepath.Glob(filepath.Join(cache, unfinished+"*"))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(dir) // the next build tries again
		}
	}
}

// install copies a tool to a path, atomically and only if it is not there yet: the
// old one may be running. It is a copy, so that nobody who writes into bin/ changes
// the cache.
func install(from, to string) (err error) {
	source, err := os.Open(from) //nolint:gosec // from the cache
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(to); err == nil && same(info, there) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), executable); err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }() // it is gone after the rename
	_, copied := io.Copy(fresh, source)
	if err := errors.Join(copied, fresh.Chmod(executable), fresh.Close()); err != nil {
		return err
	}
	if err := os.Chtimes(fresh.Name(), time.Time{}, info.ModTime()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), to)
}

// same reports whether a file in bin/ is the copy of a cached one.
func same(cached, there os.FileInfo) bool {
	return cached.Size() == there.Size() && cached.ModTime().Equal(there.ModTime())
}
