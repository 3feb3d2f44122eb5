package kvmlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// bootWithin bounds a host's start on a busy machine.
	bootWithin = time.Minute
	lookEvery  = 50 * time.Millisecond

	hostNamespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
		syscall.CLONE_NEWIPC
)

// Host is a machine with libvirtd and sshd. Its guests are in a network of its own, to
// which a route leads.
type Host struct {
	Name    string // kvm1
	Address string // host:port of sshd
	Guests  string // the network of its guests, as 10.79.1.0/24
	Dir     string // its files, seen from outside
	PID     int    // its first process
	Number  int    // from 1
}

func newHost(number int) *Host {
	name := "kvm" + strconv.Itoa(number)
	return &Host{
		Name: name, Number: number, Dir: filepath.Join(base, name),
		Address: net.JoinHostPort(link(number, 2), "22"), Guests: guests(number, 0) + "/24", //nolint:mnd // the far end
	}
}

// link is an address on the way to a host: 1 is the near end, 2 the far one.
func link(number, end int) string { return fmt.Sprintf("10.78.%d.%d", number, end) }

// guests is an address in the network of a host's guests.
func guests(number, n int) string { return fmt.Sprintf("10.79.%d.%d", number, n) }

// boot starts the host and waits until libvirt answers there.
func (h *Host) boot() error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	cmd := again(stageHost, hostNamespaces)
	cmd.Env = append(cmd.Env, hostEnv+"="+string(text))
	log, err := os.Create(h.file("host.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	h.PID = cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return errors.Join(h.plug(), h.await(ended))
}

// plug connects the host with the rest of the lab.
func (h *Host) plug() error {
	pid := strconv.Itoa(h.PID)
	for _, args := range [][]string{
		{"ip", "link", "add", h.Name, "type", "veth", "peer", "name", "eth0", "netns", pid},
		{"ip", "address", "add", link(h.Number, 1) + "/30", "dev", h.Name},
		{"nsenter", "-t", pid, "-n", "ip", "address", "add", link(h.Number, 2) + "/30", "dev", "eth0"},
		{"nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", "up"},
	} {
		if err := run(args[0], args[1:]...); err != nil {
			return err
		}
	}
	if err := h.Heal(); err != nil {
		return err
	}
	return run("nsenter", "-t", pid, "-n", "ip", "route", "add", "default", "via", link(h.Number, 1))
}

// Cut takes the host, and its guests, off the network. What runs there runs on.
func (h *Host) Cut() error { return run("ip", "link", "set", h.Name, "down") }

// Heal ends what Cut did.
func (h *Host) Heal() error {
	return errors.Join(run("ip", "link", "set", h.Name, "up"),
		run("ip", "route", "replace", h.Guests, "via", link(h.Number, 2)))
}

// await waits until libvirt and sshd answer.
func (h *Host) await(ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), bootWithin)
	defer cancel()
	for {
		err := errors.Join(h.active(ctx, "pool-list", Pool), h.active(ctx, "net-list", Network))
		if err == nil {
			err = answers(ctx, h.Address)
		}
		if err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended: %w: %s", err, h.logs())
		case <-ctx.Done():
			return fmt.Errorf("it is not ready within %s: %w: %s", bootWithin, err, h.logs())
		case <-time.After(lookEvery):
		}
	}
}

// active is nil where libvirt lists the name as running.
func (h *Host) active(ctx context.Context, list, name string) error {
	out, err := h.Virsh(ctx, list, "--name")
	if err == nil && !slices.Contains(strings.Fields(out), name) {
		err = fmt.Errorf("%s shows no %q", list, name)
	}
	return err
}

func answers(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// logs is what the host's programs have said.
func (h *Host) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(h.file("*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file) //nolint:gosec // its own
		_, _ = fmt.Fprintf(&all, "\n%s:\n%s", filepath.Base(file), text)
	}
	return all.String()
}

// Path is where a file of the host is seen from outside.
func (h *Host) Path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(h.PID), "root", name)
}

// Run runs a command on the host and returns what it prints.
func (h *Host) Run(ctx context.Context, stdin io.Reader, command ...string) (string, error) {
	args := append([]string{"-t", strconv.Itoa(h.PID), "-m", "-n", "-p", "-u", "-i", "--"}, command...)
	cmd := exec.CommandContext(ctx, "nsenter", args...) //nolint:gosec // a test's own command
	var errs strings.Builder
	cmd.Stdin, cmd.Stderr = stdin, &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}

// Virsh asks libvirt on the host, past every provider.
func (h *Host) Virsh(ctx context.Context, args ...string) (string, error) {
	return h.Run(ctx, nil, append([]string{"virsh", "-q", "-c", "qemu:///system"}, args...)...)
}

// Domains are the names of all domains, running or not.
func (h *Host) Domains(ctx context.Context) ([]string, error) {
	out, err := h.Virsh(ctx, "list", "--all", "--name")
	return strings.Fields(out), err
}

// Volumes are the names of all volumes of the pool.
func (h *Host) Volumes(ctx context.Context) ([]string, error) {
	if _, err := h.Virsh(ctx, "pool-refresh", Pool); err != nil {
		return nil, err
	}
	out, err := h.Virsh(ctx, "vol-list", Pool)
	var names []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	return names, err
}

// run runs a command of the lab's own.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput() //nolint:noctx,gosec // short, and from this package
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
