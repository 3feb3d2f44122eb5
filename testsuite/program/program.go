// Package program runs what a suite needs as processes of their own, which it ends in any
// way and starts again. Start reading at New.
package program

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

// ErrEnded is a program that has ended by itself: waiting for what it does is over.
var ErrEnded = errors.New("it has ended by itself")

// Program is one process at a time. Nothing of the caller's environment but PATH reaches it.
type Program struct {
	Name  string
	Argv  []string
	User  *syscall.Credential // nil: as this process
	Spent time.Duration       // of processor time, before the last start
	log   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// New returns a program whose log is in the folder, under its name. It is not started.
func New(dir, name string, argv ...string) *Program {
	return &Program{Name: name, Argv: argv, log: filepath.Join(dir, name+".log")}
}

// Start starts it; its log goes on where it ended. The caller ends it.
func (p *Program) Start() error {
	if p.cmd != nil {
		p.Spent += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.cmd, p.ended = exec.Command(p.Argv[0], p.Argv[1:]...), make(chan struct{}) //nolint:gosec,noctx // ended below
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir, p.cmd.Env = out, out, "/", []string{"PATH=" + os.Getenv("PATH")}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.User}
	if err := errors.Join(p.cmd.Start(), out.Close()); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(p.cmd, p.ended)
	return nil
}

// PID is the process, once it is started.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Alive returns ErrEnded, with the last words of a program that has ended by itself.
func (p *Program) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s: %w (%s); %s", p.Name, ErrEnded, p.cmd.ProcessState, p.lastWords())
	default:
		return nil
	}
}

func (p *Program) lastWords() string {
	text, _ := os.ReadFile(p.log)
	return "its last words:\n" + strings.TrimSpace(string(text[max(0, len(text)-quoted):]))
}

// Kill ends a program as a crash does. One that has ended by itself is an error.
func (p *Program) Kill() error {
	if err := p.Alive(); err != nil {
		return err
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// Stop ends a program as a supervisor does, and returns how long that took. One that has
// ended by itself is an error, and so is one that calls it no success, or has to be killed.
func (p *Program) Stop() (time.Duration, error) {
	if err := p.Alive(); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-p.ended:
		if !p.cmd.ProcessState.Success() {
			return 0, fmt.Errorf("%s: after SIGTERM it has ended with %s; %s", p.Name, p.cmd.ProcessState, p.lastWords())
		}
		return time.Since(begun), nil
	case <-time.After(endsWithin):
		return 0, errors.Join(fmt.Errorf("%s has not ended within %s of SIGTERM", p.Name, endsWithin), p.Kill())
	}
}
