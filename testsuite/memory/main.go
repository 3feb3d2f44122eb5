//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/temporalserver"
)

const (
	mebibyte = 1 << 20
	limit    = 128 * mebibyte // bytes
	within   = 30 * time.Minute
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == contained {
		fmt.Fprintln(os.Stderr, "memory:", enter(os.Args[2], os.Args[3:])) // it returns only with an error
		os.Exit(1)
	}
	size := flag.Int("proxies", 2000, "how many proxies; the limit is meant for 2000")
	flag.Parse()
	if *size < lostOf {
		fmt.Fprintf(os.Stderr, "memory: -proxies: %d is less than %d\n", *size, lostOf)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := play(ctx, *size)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// play runs one life and prints the outcome as the last line. A run that fails keeps its
// files.
func play(ctx context.Context, size int) (err error) {
	dir, err := os.MkdirTemp("", "memory-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "memory: the files of this run stay in", dir)
		}
	}()
	begun := time.Now()
	m, err := measure(ctx, dir, size)
	if err != nil {
		return err
	}
	fmt.Printf("took %s; %s\n", time.Since(begun).Round(time.Second), m)
	fmt.Printf("memory: proxies=%d limit=%dMiB rss_max=%dMiB ok\n", size, limit/mebibyte, m.Most/mebibyte)
	return nil
}

// measure starts everything around the worker, and the worker, and lets it live.
func measure(ctx context.Context, dir string, size int) (m measured, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %s; many major_faults above "+
		"are a lack of memory, and few of them a machine that others use", within))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
	}()
	server, err := temporalserver.NewAlone(dir)
	if err != nil {
		return m, err
	}
	if err := server.Open(ctx); err != nil {
		return m, err
	}
	defer func() {
		_, ended := server.Stop()
		err = errors.Join(err, ended)
	}()
	cloud, err := newCloud(ctx, size)
	if err != nil {
		return m, err
	}
	root, err := devserver.Root()
	if err != nil {
		return m, err
	}
	b, err := newBox(dir, filepath.Join(root, "bin", "worker-static"))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	w := &world{cloud: cloud, box: b, begun: time.Now(), size: size}
	if err := w.start(ctx, server.Address); err != nil {
		return m, err
	}
	defer b.end()
	go w.watch(ctx)
	return w.live(ctx)
}
