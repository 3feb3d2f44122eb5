//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// endsWithin is longer than a worker gives its activities.
	endsWithin = 75 * time.Second
	quoted     = 3000 // bytes of a log in an error
)

// errEnded is a program that has ended by itself: waiting for what it does is over.
var errEnded = errors.New("it has ended by itself")

// program is one process, which can be ended in any way and started again. The kernel
// ends it with the namespaces of the run.
type program struct {
	name  string
	argv  []string
	log   string
	user  *syscall.Credential // nil: as this process
	cmd   *exec.Cmd
	ended chan struct{}
	spent time.Duration // of processor time, before the last start
}

func newProgram(dir, name string, argv ...string) *program {
	return &program{name: name, argv: argv, log: filepath.Join(dir, name+".log")}
}

func (p *program) start() error {
	if p.cmd != nil {
		p.spent += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.cmd, p.ended = exec.Command(p.argv[0], p.argv[1:]...), make(chan struct{}) //nolint:gosec,noctx // ended below
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir, p.cmd.Env = out, out, "/", []string{"PATH=" + os.Getenv("PATH")}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.user}
	if err := errors.Join(p.cmd.Start(), out.Close()); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(p.cmd, p.ended)
	return nil
}

// alive returns an error with the last words of a program that has ended by itself.
func (p *program) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s: %w (%s); %s", p.name, errEnded, p.cmd.ProcessState, p.lastWords())
	default:
		return nil
	}
}

func (p *program) lastWords() string {
	text, _ := os.ReadFile(p.log)
	return "its last words:\n" + strings.TrimSpace(string(text[max(0, len(text)-quoted):]))
}

// kill ends a program as a crash does.
func (p *program) kill() error {
	if err := p.alive(); err != nil {
		return err
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// stop ends a program as a supervisor does, and returns how long that took. One that
// does not call that a success is an error.
func (p *program) stop() (time.Duration, error) {
	if err := p.alive(); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-p.ended:
		if !p.cmd.ProcessState.Success() {
			return 0, fmt.Errorf("%s: after SIGTERM it has ended with %s; %s", p.name, p.cmd.ProcessState, p.lastWords())
		}
		return time.Since(begun), nil
	case <-time.After(endsWithin):
		return 0, errors.Join(fmt.Errorf("%s has not ended within %s of SIGTERM", p.name, endsWithin), p.kill())
	}
}
