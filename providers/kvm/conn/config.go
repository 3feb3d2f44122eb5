package conn

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path"
	"time"
)

// Bridge is how the bytes get from sshd to libvirt's socket.
type Bridge string

// The two bridges. A key that may forward can reach every socket that its user can; a key
// with a forced command reaches libvirt's socket alone, which is the least that works. For
// that one, authorized_keys begins its line with
//
//	restrict,command="nc -N -U /run/libvirt/libvirt-sock"
//
// where -N lets nc end with the connection, and not stay on the host for ever. Either way, who
// may write to that socket is root on the host.
const (
	BridgeForward Bridge = "forward" // a direct-streamlocal@openssh.com channel to Socket
	BridgeCommand Bridge = "command" // a session that runs Command, or what the key forces
)

// Config says how one host is reached. Zero durations and counts get the defaults below.
type Config struct {
	Host    string // its name in log lines, spans and errors
	Address string // host:port of its sshd
	User    string

	// Both files are read for every new connection.
	KeyFile        string // a private key without a passphrase, not readable by others
	KnownHostsFile string // in the format of OpenSSH; hashed names and authorities are fine

	Bridge  Bridge // "" is BridgeForward
	Socket  string // "" is DefaultSocket
	Command string // for BridgeCommand; "" is "nc -N -U " and the socket
	URI     string // "" is DefaultURI

	DialTimeout       time.Duration // for all of TCP, SSH, authentication, bridge and libvirt
	KeepaliveInterval time.Duration // between two questions to sshd
	KeepaliveTimeout  time.Duration // how long it may stay silent when it is asked
	PingTimeout       time.Duration // the same for libvirt, which is asked when a caller has left
	StuckAfter        time.Duration // how long a call may go on without its caller
	CloseTimeout      time.Duration // for libvirt's goodbye
	MaxAbandoned      int           // calls without a caller; a quarter of it on one connection
}

// The defaults of a Config.
const (
	DefaultSocket = "/run/libvirt/libvirt-sock"
	DefaultURI    = "qemu:///system"

	DefaultDialTimeout       = 15 * time.Second
	DefaultKeepaliveInterval = 15 * time.Second
	DefaultKeepaliveTimeout  = 15 * time.Second
	DefaultPingTimeout       = 10 * time.Second
	DefaultStuckAfter        = 30 * time.Second
	DefaultCloseTimeout      = time.Second
	DefaultMaxAbandoned      = 32
)

// Validate names the first field that cannot be right. It reads no file and dials nothing.
func (c Config) Validate() error {
	for _, field := range []struct{ name, value string }{
		{"host", c.Host}, {"user", c.User}, {"keyFile", c.KeyFile}, {"knownHostsFile", c.KnownHostsFile},
	} {
		if field.value == "" {
			return fmt.Errorf("%s must be set", field.name)
		}
	}
	if _, port, err := net.SplitHostPort(c.Address); err != nil || port == "" {
		return fmt.Errorf("address %q must be host:port, as in 192.0.2.5:22", c.Address)
	}
	if c.Socket != "" && !path.IsAbs(c.Socket) {
		return fmt.Errorf("socket %q must be an absolute path on the host, as in %s", c.Socket, DefaultSocket)
	}
	switch c.Bridge {
	case "", BridgeForward:
		if c.Command != "" {
			return errors.New("command is for bridge: command only")
		}
	case BridgeCommand:
	default:
		return fmt.Errorf("bridge %q must be %s or %s", c.Bridge, BridgeForward, BridgeCommand)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Bridge = cmp.Or(c.Bridge, BridgeForward)
	c.Socket = cmp.Or(c.Socket, DefaultSocket)
	c.Command = cmp.Or(c.Command, "nc -N -U "+c.Socket)
	c.URI = cmp.Or(c.URI, DefaultURI)
	c.DialTimeout = cmp.Or(c.DialTimeout, DefaultDialTimeout)
	c.KeepaliveInterval = cmp.Or(c.KeepaliveInterval, DefaultKeepaliveInterval)
	c.KeepaliveTimeout = cmp.Or(c.KeepaliveTimeout, DefaultKeepaliveTimeout)
	c.PingTimeout = cmp.Or(c.PingTimeout, DefaultPingTimeout)
	c.StuckAfter = cmp.Or(c.StuckAfter, DefaultStuckAfter)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, DefaultCloseTimeout)
	c.MaxAbandoned = cmp.Or(c.MaxAbandoned, DefaultMaxAbandoned)
	return c
}
