package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The header of a libvirt packet: length, program, version, procedure, type, serial, status.
const (
	headerSize = 28
	packetMax  = 32 << 20 // libvirt's own limit

	typeReply  = 1
	typeStream = 3

	statusOK       = 0
	statusContinue = 2

	procConnectOpen = 1
)

// endedMax is how many ended streams are remembered; what is late for one comes within moments.
const endedMax = 1024

// errNotLibvirt is what a first packet without libvirt's shape is called.
var errNotLibvirt = errors.New("what answers is not libvirt")

// frames reads libvirt's packets from a stream of bytes and passes on those that libvirt's
// client can bear: it takes every length for true and allocates it, and when something comes
// for a stream that it has given up, such as after an upload that was refused half-way, it
// waits for ever with its lock held.
type frames struct {
	from    io.Reader
	header  [headerSize]byte
	unread  []byte // of the header
	payload int    // bytes that follow it
	ended   map[int32]bool
	order   []int32 // of ended, the oldest first
	opened  bool    // libvirt has answered to the opening
	count   func()  // is told of every packet
}

func newFrames(from io.Reader, count func()) *frames {
	return &frames{from: from, ended: map[int32]bool{}, count: count}
}

// Read fills p with no more than the rest of one packet.
func (f *frames) Read(p []byte) (n int, err error) {
	for len(f.unread) == 0 && f.payload == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.unread) > 0 {
		n = copy(p, f.unread)
		f.unread = f.unread[n:]
		return n, nil
	}
	n, err = f.from.Read(p[:min(len(p), f.payload)])
	f.payload -= n
	if f.payload > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads the header of the next packet, and all of it where nobody waits for it.
func (f *frames) next() error {
	if n, err := io.ReadFull(f.from, f.header[:]); err != nil {
		if n >= 4 && !plausible(f.header[:]) {
			return notLibvirt(f.header[:n])
		}
		return err
	}
	if !plausible(f.header[:]) {
		return notLibvirt(f.header[:])
	}
	f.count()
	f.payload = int(f.word(0)) - headerSize
	if f.late() {
		n, err := io.CopyN(io.Discard, f.from, int64(f.payload))
		f.payload -= int(n)
		return err
	}
	f.unread = f.header[:]
	return nil
}

// late reports whether a packet is for a stream that has ended, and remembers those that end.
func (f *frames) late() bool {
	kind, status := f.word(4), f.word(6)
	serial := int32(f.word(5)) //nolint:gosec // it is the number that the client has chosen
	if kind == typeReply && f.word(3) == procConnectOpen && status == statusOK {
		f.opened = true
	}
	if f.ended[serial] {
		return kind == typeReply || kind == typeStream
	}
	if kind == typeStream && (status != statusContinue || f.payload == 0) {
		f.remember(serial)
	}
	return false
}

func (f *frames) remember(serial int32) {
	if len(f.order) == endedMax {
		delete(f.ended, f.order[0])
		f.order = f.order[1:]
	}
	f.ended[serial] = true
	f.order = append(f.order, serial)
}

func (f *frames) word(i int) uint32 { return binary.BigEndian.Uint32(f.header[4*i:]) }

func plausible(header []byte) bool {
	length := binary.BigEndian.Uint32(header)
	return length >= headerSize && length <= packetMax
}

func notLibvirt(begin []byte) error { return fmt.Errorf("%w: it begins with %q", errNotLibvirt, begin) }
