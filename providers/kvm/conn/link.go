package conn

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
	"golang.org/x/crypto/ssh"
)

// pingProgress is how much must have been written for a silent connection to count as busy.
const pingProgress = 64 << 10

// link is one connection. It ends once, for one cause; what waits on it is woken by that.
type link struct {
	config  Config
	tcp     *counted
	client  *ssh.Client
	wire    *wire
	libvirt *libvirt.Libvirt

	done  chan struct{} // closed at the end
	once  sync.Once
	cause error // read it when done is closed

	// Of the Host, under its lock.
	calls     int  // whose callers wait
	abandoned int  // whose callers have left
	retired   bool // takes no more calls, and ends with the last of calls

	pinging sync.Mutex
}

func newLink(config Config, tcp *counted, client *ssh.Client) *link {
	return &link{config: config, tcp: tcp, client: client, done: make(chan struct{})}
}

// end closes the TCP connection under everything: no goodbye can hang.
func (l *link) end(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.done)
		_ = l.tcp.Close()
	})
}

func (l *link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// watch ends the link when its connection does, or when sshd is silent.
func (l *link) watch() {
	go func() { l.end(fmt.Errorf("ssh ended: %w", cmp.Or(l.client.Wait(), io.EOF))) }()
	go func() {
		for {
			select {
			case <-l.done:
				return
			case <-time.After(l.config.KeepaliveInterval):
			}
			if !l.sshdAnswers() {
				l.end(fmt.Errorf("sshd was silent for %s", l.config.KeepaliveTimeout))
			}
		}
	}()
}

// sshdAnswers asks what OpenSSH's client asks. A refusal is an answer, and so is anything else
// that comes meanwhile: behind much data an answer may be late.
func (l *link) sshdAnswers() bool {
	reply := make(chan error, 1)
	go func() {
		_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
		reply <- err
	}()
	for {
		before := l.tcp.read.Load()
		select {
		case err := <-reply:
			return err == nil
		case <-time.After(l.config.KeepaliveTimeout):
			if l.tcp.read.Load() == before {
				return false
			}
		}
	}
}

// check ends the link when libvirt is silent. It asks for a number that libvirt knows by heart.
// A packet of any kind, or an upload that goes on, counts as an answer.
func (l *link) check() {
	if !l.pinging.TryLock() {
		return // another one is asking
	}
	defer l.pinging.Unlock()
	reply := make(chan struct{})
	go func() {
		defer close(reply)
		_, _ = l.libvirt.ConnectGetLibVersion() // an error is an answer, too
	}()
	for {
		packets, written := l.wire.packets.Load(), l.wire.written.Load()
		select {
		case <-reply:
			return
		case <-l.done:
			return
		case <-time.After(l.config.PingTimeout):
			if l.wire.packets.Load() == packets && l.wire.written.Load() < written+pingProgress {
				l.end(fmt.Errorf("libvirt was silent for %s", l.config.PingTimeout))
				return
			}
		}
	}
}

// goodbye lets libvirt know, so that it logs no error, and ends the link with or without its
// answer. A link whose calls hang is not asked for manners.
func (l *link) goodbye(polite bool) {
	if !polite {
		l.end(net.ErrClosed)
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		_ = l.libvirt.Disconnect()
	}()
	select {
	case <-said:
	case <-l.done:
	case <-time.After(l.config.CloseTimeout):
	}
	l.end(net.ErrClosed)
}
