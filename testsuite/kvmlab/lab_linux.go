package kvmlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

const (
	// labEnv holds the Lab as JSON: a test may run its own program again, and that
	// process finds the same hosts.
	labEnv = "KVMLAB"
	// base is where only this run has something mounted.
	base = "/mnt/kvmlab"
	// path is where Debian keeps daemons and tools.
	path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

	// TargetIP is where a test may listen for what guests ask for: every guest's way leads
	// there, by an address that is kept for documentation. Port 443 is nobody else's.
	TargetIP = "203.0.113.2"
	// Network is what the guests of each host are in.
	Network = "default"
	// Pool is where they have their disks.
	Pool = "default"

	// Links are the addresses of the machine on the ways to its hosts.
	Links = "10.78.0.0/16"
	// PoolPath is the folder of Pool on each host.
	PoolPath = "/var/lib/libvirt/images"
	// hosts is how many there are.
	hosts = 2
)

// Lab is what a run has. The zero value is of no use; see Current.
type Lab struct {
	Hosts []*Host
	Keys  Keys
}

// Keys are files for an SSH client. Every host takes them alike.
type Keys struct {
	KnownHosts string
	Root       string // of the user root, who may forward to any socket
	Bridge     string // of the user BridgeUser; whatever it asks for, it gets libvirt's socket
	Stranger   string // of nobody
}

// BridgeUser has no right but to write to libvirt's socket, which is as much as root.
const BridgeUser = "egress"

// Current is the lab of this run. The test fails where its TestMain does not call Main.
func Current(t *testing.T) *Lab {
	t.Helper()
	lab, err := current()
	if err != nil {
		t.Fatal(err)
	}
	return lab
}

var current = sync.OnceValues(func() (*Lab, error) {
	text, ok := os.LookupEnv(labEnv)
	if !ok {
		return nil, errors.New("there is no lab: TestMain must call kvmlab.Main")
	}
	lab := new(Lab)
	if err := json.Unmarshal([]byte(text), lab); err != nil {
		return nil, fmt.Errorf("%s: %w", labEnv, err)
	}
	return lab, nil
})

// runInside starts the lab, unless a process above has, and runs the tests.
func runInside(m *testing.M) (int, error) {
	if _, there := os.LookupEnv(labEnv); there {
		return m.Run(), nil
	}
	if err := errors.Join(CheckNeeds(), os.Setenv("PATH", path+":"+os.Getenv("PATH"))); err != nil {
		return 0, err
	}
	lab, err := start()
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(lab)
	if err != nil {
		return 0, err
	}
	if err := os.Setenv(labEnv, string(text)); err != nil {
		return 0, err
	}
	return m.Run(), nil // the hosts end with the namespaces
}

// start makes the network, the keys and the hosts, and waits until libvirt answers on each.
func start() (*Lab, error) {
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // QEMU has a user of its own
		return nil, err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"address", "add", TargetIP + "/32", "dev", "lo"},
	} {
		if err := run("ip", args...); err != nil {
			return nil, err
		}
	}
	lab := new(Lab)
	for i := range hosts {
		lab.Hosts = append(lab.Hosts, newHost(i+1))
	}
	var err error
	if lab.Keys, err = makeKeys(filepath.Join(base, "keys"), lab.Hosts); err != nil {
		return nil, err
	}
	return lab, lab.each(func(h *Host) error { return errors.Join(h.prepare(lab.Keys), h.boot()) })
}

// each does something on all hosts at once.
func (l *Lab) each(do func(*Host) error) error {
	faults := make([]error, len(l.Hosts))
	var all sync.WaitGroup
	for i, h := range l.Hosts {
		all.Go(func() {
			if err := do(h); err != nil {
				faults[i] = fmt.Errorf("host %s: %w", h.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}
