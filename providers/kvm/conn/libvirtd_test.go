package conn_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"
	"testing"
)

// The procedures and words of libvirt's protocol that the tests need.
const (
	programRemote = 0x20008086

	procOpen      = 1
	procClose     = 2
	procLookup    = 23
	procAuthList  = 66
	procVersion   = 157
	procVolUpload = 208

	typeCall, typeReply, typeStream                = 0, 1, 3
	statusOK, statusError, statusContinue          = 0, 1, 2
	codeNoDomain, codeSystemError, codeAuthRefused = 42, 38, 45
)

// packet is one of libvirt's.
type packet struct {
	proc, kind   uint32
	serial       int32
	status       uint32
	payload      []byte
	announcedLen uint32 // a lie; 0 for the truth
}

func (p packet) bytes() []byte {
	length := uint32(28 + len(p.payload))
	if p.announcedLen != 0 {
		length = p.announcedLen
	}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.BigEndian, []uint32{
		length, programRemote, 1, p.proc, p.kind, uint32(p.serial), p.status,
	})
	b.Write(p.payload)
	return b.Bytes()
}

func readPacket(from io.Reader) (p packet, err error) {
	var header [7]uint32
	if err := binary.Read(from, binary.BigEndian, &header); err != nil {
		return p, err
	}
	p = packet{proc: header[3], kind: header[4], serial: int32(header[5]), status: header[6]}
	p.payload = make([]byte, header[0]-28)
	_, err = io.ReadFull(from, p.payload)
	return p, err
}

func (p packet) reply(status uint32, payload ...byte) packet {
	return packet{proc: p.proc, kind: typeReply, serial: p.serial, status: status, payload: payload}
}

func (p packet) stream(status uint32, payload ...byte) packet {
	return packet{proc: p.proc, kind: typeStream, serial: p.serial, status: status, payload: payload}
}

func xdr(values ...any) []byte {
	var b bytes.Buffer
	for _, value := range values {
		if s, ok := value.(string); ok {
			_ = binary.Write(&b, binary.BigEndian, uint32(len(s)))
			b.WriteString(s)
			b.Write(make([]byte, (4-len(s)%4)%4))
			continue
		}
		_ = binary.Write(&b, binary.BigEndian, value)
	}
	return b.Bytes()
}

// libvirtError is the payload of an answer that says no.
func libvirtError(code uint32, message string) []byte {
	return xdr(code, uint32(7), uint32(1), message, uint32(2))
}

// libvirtd answers what the connection itself asks; tests say what becomes of the rest.
type libvirtd struct {
	mu     sync.Mutex
	frozen chan struct{} // answers nothing while it is open; nil for never
	on     map[uint32]func(packet, func(packet))
	seen   map[uint32]int // calls by procedure
}

func newLibvirtd() *libvirtd {
	return &libvirtd{on: map[uint32]func(packet, func(packet)){}, seen: map[uint32]int{}}
}

// handle says how calls of a procedure, and what streams in for them, are answered.
func (d *libvirtd) handle(proc uint32, answer func(p packet, send func(packet))) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on[proc] = answer
}

// freeze stops it as SIGSTOP would; the function that is returned wakes it.
func (d *libvirtd) freeze() (thaw func()) {
	frozen := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = frozen
	return sync.OnceFunc(func() { close(frozen) })
}

func (d *libvirtd) calls(proc uint32) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[proc]
}

// serve is one client, until it leaves.
func (d *libvirtd) serve(client io.ReadWriteCloser) {
	defer func() { _ = client.Close() }()
	var sending sync.Mutex
	send := func(p packet) {
		sending.Lock()
		defer sending.Unlock()
		_, _ = client.Write(p.bytes())
	}
	for {
		p, err := readPacket(client)
		if err != nil {
			return
		}
		d.mu.Lock()
		if p.kind == typeCall {
			d.seen[p.proc]++
		}
		frozen, answer := d.frozen, d.on[p.proc]
		d.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		if answer == nil {
			answer = usual
		}
		answer(p, send)
	}
}

func usual(p packet, send func(packet)) {
	switch p.proc {
	case procAuthList:
		send(p.reply(statusOK, xdr(uint32(1), uint32(0))...))
	case procVersion, procHypervisor:
		send(p.reply(statusOK, xdr(uint64(9_000_000))...))
	case procLookup:
		send(p.reply(statusError, libvirtError(codeNoDomain, "Domain not found")...))
	default:
		send(p.reply(statusOK))
	}
}

// hold answers a procedure when it is told to, with a version, each call from a goroutine of
// its own; one that is told nothing hangs for as long as its client is there.
func (d *libvirtd) hold(t *testing.T, proc uint32) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	d.handle(proc, func(p packet, send func(packet)) {
		go func() {
			<-gate
			send(p.reply(statusOK, xdr(uint64(1_002_003))...))
		}()
	})
	return release
}
