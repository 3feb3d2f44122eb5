package main

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	workers = 2
	// A worker lives this long before it is killed, and is missed this long after.
	shortestLife, longestLife = 3 * time.Second, 9 * time.Second
	longestAbsence            = 1500 * time.Millisecond
)

// slot keeps one worker process running, and kills it again and again.
type slot struct {
	args   []string
	log    string
	random *rand.Rand
	kills  *atomic.Int64
}

func newSlot(i int, dir string, args []string, random *rand.Rand, kills *atomic.Int64) *slot {
	return &slot{
		args: args, random: random, kills: kills, log: filepath.Join(dir, "worker-"+strconv.Itoa(i)+".log"),
	}
}

// run keeps a worker running until ctx ends. Until calm is closed it dies at random
// moments; then it is left alone.
func (s *slot) run(ctx context.Context, calm <-chan struct{}) error {
	for ctx.Err() == nil {
		if err := s.live(ctx, calm); err != nil {
			return err
		}
		select {
		case <-time.After(s.between(0, longestAbsence)):
		case <-calm:
		case <-ctx.Done():
		}
	}
	return nil
}

// live runs one worker until it is killed or ends by itself.
func (s *slot) live(ctx context.Context, calm <-chan struct{}) error {
	p, err := s.start()
	if err != nil {
		return err
	}
	defer p.end()
	select {
	case <-time.After(s.between(shortestLife, longestLife)):
		if p.up.Load() {
			s.kills.Add(1)
		}
		return nil
	case <-calm:
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return nil
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	return nil
}

func (s *slot) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// process is one worker.
type process struct {
	cmd   *exec.Cmd
	up    atomic.Bool
	ended chan struct{}
}

// start runs this program as a worker. Its standard input is a pipe that ends with us.
func (s *slot) start() (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p := &process{cmd: exec.Command(self, s.args...), ended: make(chan struct{})} //nolint:noctx,gosec // ended by end
	p.cmd.Stderr = log
	if _, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	said, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			p.up.Store(p.up.Load() || lines.Text() == upLine)
		}
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// end kills the worker as a crash does, and waits until it is gone.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}
