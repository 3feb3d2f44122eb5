//go:build linux

package kubelab

import (
	"context"
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
	// ends bounds how long a process may take to end by itself.
	ends = 10 * time.Second
	// tail is how much of a log an error quotes.
	tail = 4 << 10
)

// process is one program that was started here, and that ends with this process.
type process struct {
	name, log string
	cmd       *exec.Cmd
	ended     chan struct{}
	err       error // how it ended; read it after ended
}

// run starts a program whose output goes to a file in dir.
func run(dir, name string, argv ...string) (*process, error) {
	return launch(dir, name, exec.Command(argv[0], argv[1:]...)) //nolint:gosec,noctx // stop ends it
}

func launch(dir, name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), cmd: cmd, ended: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A group of its own keeps a Ctrl-C of the terminal for the suite, which stops all
	// in order.
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { p.err = cmd.Wait(); close(p.ended) }()
	return p, nil
}

// stop asks a process to end, and insists after a while. It may have ended before.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be over
	select {
	case <-p.ended:
	case <-time.After(ends):
		p.kill()
	}
}

// kill ends a process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be over
	<-p.ended
}

// until waits for a condition, and gives up when the process ends or time is over.
// The condition's last error says what was missing.
func (p *process) until(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %w\n%s", p.name, p.err, p.quote())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w\n%s", p.name, context.Cause(ctx), err, p.quote())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// quote is the end of the log.
func (p *process) quote() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-tail):]))
}
