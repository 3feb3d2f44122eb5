package conn

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// How much of a command's complaints is kept, and how long its end is waited for.
const (
	complaintMax = 300
	exitWait     = time.Second
)

// errNoCommand is sshd's refusal to run anything.
var errNoCommand = errors.New("sshd would not run the command")

// bridge opens the way to libvirt's socket.
func (h *Host) bridge(client *ssh.Client) (io.ReadWriteCloser, error) {
	if h.config.Bridge == BridgeCommand {
		return newCommand(client, h.config.Command)
	}
	return client.Dial("unix", h.config.Socket)
}

// command is a program on the host that passes bytes on.
type command struct {
	io.Reader
	io.WriteCloser
	session    *ssh.Session
	complaints *bounded
	exited     chan struct{}
	exit       error
}

func newCommand(client *ssh.Client, line string) (*command, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	c := &command{session: session, complaints: &bounded{}, exited: make(chan struct{})}
	session.Stderr = c.complaints
	c.WriteCloser, _ = session.StdinPipe() // both fail only when they are called twice
	c.Reader, _ = session.StdoutPipe()
	if err := session.Start(line); err != nil {
		_ = session.Close()
		if strings.HasPrefix(err.Error(), "ssh: command ") { // it has no type; a loss reads otherwise
			err = fmt.Errorf("%w: %w", errNoCommand, err)
		}
		return nil, err
	}
	go func() {
		c.exit = session.Wait()
		close(c.exited)
	}()
	return c, nil
}

// Read says at the end why the command has ended.
func (c *command) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-c.exited:
		return 0, fmt.Errorf("the command ended: %w", c.ended())
	case <-time.After(exitWait):
		return 0, err
	}
}

func (c *command) ended() error {
	err := c.exit
	if err == nil {
		err = io.EOF
	}
	if said := c.complaints.String(); said != "" {
		return fmt.Errorf("%w: it said %q", err, said)
	}
	return err
}

// Close ends the session.
func (c *command) Close() error { return c.session.Close() }

// bounded keeps the beginning of what is written to it.
type bounded struct {
	mu   sync.Mutex
	kept []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, p[:min(len(p), complaintMax-len(b.kept))]...)
	return len(p), nil
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}
