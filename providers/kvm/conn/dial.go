package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/egressfleet/egressfleet/providers"
)

// DialFunc opens a TCP connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dial opens a connection to libvirt, within ctx. Whoever calls it ends the link.
func (h *Host) dial(ctx context.Context) (*link, error) {
	began := time.Now()
	l, err := h.open(ctx)
	log := providers.Logger(ctx)
	host, took := slog.String("host", h.config.Host), slog.Duration("took", time.Since(began))
	if err != nil {
		log.LogAttrs(ctx, providers.LevelOutcome, "host cannot be reached", host, took, slog.Any("error", err))
		return nil, err
	}
	log.LogAttrs(ctx, providers.LevelDetail, "host is connected", host, took,
		slog.String("address", h.config.Address), slog.String("bridge", string(h.config.Bridge)))
	return l, nil
}

func (h *Host) open(ctx context.Context) (*link, error) {
	creds, err := h.credentials()
	if err != nil {
		return nil, err
	}
	tcp, err := h.dialTCP(ctx, "tcp", h.config.Address)
	if err != nil {
		return nil, h.failed(ctx, StageDial, Unreachable, err)
	}
	// Nothing that follows knows a context: what is stuck is woken by the end of its connection.
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	defer stop()
	l, err := h.upon(ctx, tcp, creds)
	if err == nil && !stop() { // ctx ended in the last moment
		l.end(net.ErrClosed)
		err = h.failed(ctx, StageLibvirt, Timeout, ctx.Err())
	}
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return l, nil
}

// upon makes a link of a TCP connection, which the caller closes when that fails.
func (h *Host) upon(ctx context.Context, tcp net.Conn, creds credentials) (*link, error) {
	socket := &counted{Conn: tcp}
	client, err := h.handshake(ctx, socket, creds)
	if err != nil {
		return nil, err
	}
	bridge, err := h.bridge(client)
	if err != nil {
		return nil, h.noBridge(ctx, err)
	}
	l := newLink(h.config, socket, client)
	l.wire = newWire(bridge, l.end)
	l.libvirt = libvirt.NewWithDialer(l.wire)
	err = l.libvirt.ConnectToURI(libvirt.ConnectURI(h.config.URI))
	close(l.wire.ready)
	if err != nil {
		return nil, h.noLibvirt(ctx, l, err)
	}
	l.watch()
	return l, nil
}

func (h *Host) handshake(ctx context.Context, socket net.Conn, creds credentials) (*ssh.Client, error) {
	stage, refused := StageHandshake, error(nil)
	conn, channels, requests, err := ssh.NewClientConn(socket, h.config.Address, &ssh.ClientConfig{
		User: h.config.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(creds.signer)},
		HostKeyCallback: func(name string, remote net.Addr, key ssh.PublicKey) error {
			refused = creds.check(name, remote, key)
			stage = StageAuth
			return refused
		},
		HostKeyAlgorithms: creds.algorithms,
	})
	negotiation, disagree := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	switch {
	case err == nil:
		return ssh.NewClient(conn, channels, requests), nil
	case refused != nil:
		return nil, h.wrongHostKey(refused)
	case disagree && negotiation.What == "host key":
		return nil, h.wrongHostKey(err)
	case stage == StageAuth && strings.Contains(err.Error(), "unable to authenticate"): // it has no type
		return nil, h.failedFor(ctx, StageAuth, Unauthorized, h.loginHint(creds.signer), err)
	}
	return nil, h.failed(ctx, stage, SSHHandshakeFailed, err)
}

func (h *Host) wrongHostKey(err error) error {
	var lines []string
	if mismatch, ok := errors.AsType[*knownhosts.KeyError](err); ok {
		if len(mismatch.Want) == 0 {
			return h.unknownHostKey()
		}
		for _, want := range mismatch.Want {
			lines = append(lines, fmt.Sprint(want.Line))
		}
	}
	where := h.config.KnownHostsFile
	if len(lines) > 0 {
		where += " line " + strings.Join(lines, ", ")
	}
	return &Error{h.config.Host, StageHostKey, HostKeyMismatch, "the host was set up anew, or somebody else answers: " +
		"compare with the keys on its console before you replace " + where + " by what ssh-keyscan prints", err}
}

func (h *Host) loginHint(signer ssh.Signer) string {
	return fmt.Sprintf("is the public half of %s (%s) in authorized_keys of %s?",
		h.config.KeyFile, ssh.FingerprintSHA256(signer.PublicKey()), h.config.User)
}

// noBridge tells a channel that is not allowed from one behind which nobody is.
func (h *Host) noBridge(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*ssh.OpenChannelError](err)
	switch {
	case errors.Is(err, errNoCommand):
		return h.failedFor(ctx, StageForward, ForwardRefused, h.bridgeHint(), err)
	case !ok:
		return h.failed(ctx, StageForward, ConnectionLost, err)
	case refused.Reason == ssh.Prohibited || refused.Reason == ssh.UnknownChannelType:
		return h.failedFor(ctx, StageForward, ForwardRefused, h.bridgeHint(), err)
	}
	// OpenSSH gives one answer for a missing socket and for one that the user must not reach.
	return h.failedFor(ctx, StageForward, LibvirtUnreachable, fmt.Sprintf(
		"does libvirtd listen at %s, may %s write to it, and does sshd allow it (AllowStreamLocalForwarding)?",
		h.config.Socket, h.config.User), err)
}

func (h *Host) bridgeHint() string {
	if h.config.Bridge == BridgeCommand {
		return "sshd allows the key no session, or no command; is bridge: forward meant?"
	}
	return "sshd allows the key no forwarding: AllowStreamLocalForwarding and the key's options say so; " +
		"a key with a forced command needs bridge: command"
}

// noLibvirt passes on what libvirt has answered, and says of all else why there is no answer.
func (h *Host) noLibvirt(ctx context.Context, l *link, err error) error {
	if answered(err) {
		return err
	}
	select {
	case <-l.done:
		err = l.cause
	case <-ctx.Done():
	case <-time.After(settle):
	}
	return h.failedFor(ctx, StageLibvirt, LibvirtUnreachable, fmt.Sprintf("is libvirtd behind %s?", h.behind()), err)
}

func (h *Host) behind() string {
	if h.config.Bridge == BridgeCommand {
		return fmt.Sprintf("the command %q, or the one that the key forces", h.config.Command)
	}
	return h.config.Socket
}

// answered reports whether an error is libvirt's own.
func answered(err error) bool {
	_, is := errors.AsType[libvirt.Error](err)
	return is || errors.Is(err, libvirt.ErrUnsupported)
}

// failed is failedFor without a hint.
func (h *Host) failed(ctx context.Context, stage Stage, reason Reason, err error) error {
	return h.failedFor(ctx, stage, reason, "", err)
}

// failedFor is the error of a stage; the end of ctx is the reason where it has ended.
func (h *Host) failedFor(ctx context.Context, stage Stage, reason Reason, hint string, err error) error {
	switch ended := ctx.Err(); {
	case ended == nil:
		return &Error{h.config.Host, stage, reason, hint, err}
	case errors.Is(ended, context.DeadlineExceeded):
		return &Error{h.config.Host, stage, Timeout, "", ended}
	default:
		return &Error{h.config.Host, stage, Canceled, "", ended}
	}
}
