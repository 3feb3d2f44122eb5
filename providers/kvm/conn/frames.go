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

	procConnectOpen    = 1
	procVolumeUpload   = 208
	procVolumeDownload = 209
)

// endedMax is how many ended streams are remembered; what is late for one comes within moments.
const endedMax = 1024

// errEarly is what too much of a stream is called whose call was not answered yet.
var errEarly = errors.New("libvirt sends a stream without an answer to its call")

// errNotLibvirt is what a first packet without libvirt's shape is called.
var errNotLibvirt = errors.New("what answers is not libvirt")

// frames reads libvirt's packets from a stream of bytes and passes on those that libvirt's
// client can bear: it takes every length for true and allocates it, and when something comes
// for a stream that it has given up, such as after an upload that was refused half-way, it
// waits for ever with its lock held. Nor can it tell an answer from a stream: a busy libvirtd
// begins a download before it answers to the call, and the answer is then taken for its end.
type frames struct {
	from    io.Reader
	header  header
	unread  []byte             // of the header, or of whole packets
	payload int                // bytes that follow it
	flowing map[int32]bool     // streams whose call was answered
	early   map[int32][]packet // what came before the answer
	waiting int                // bytes in early
	ended   map[int32]bool
	order   []int32 // of ended, the oldest first
	opened  bool    // libvirt has answered to the opening
	count   func()  // is told of every packet
}

type header [headerSize]byte

// packet is a whole one.
type packet struct {
	header  header
	payload []byte
}

func newFrames(from io.Reader, count func()) *frames {
	return &frames{
		from: from, ended: map[int32]bool{}, flowing: map[int32]bool{}, early: map[int32][]packet{}, count: count,
	}
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
	h := f.header
	f.payload = h.payload()
	switch {
	case f.late(h):
		n, err := io.CopyN(io.Discard, f.from, int64(f.payload))
		f.payload -= int(n)
		return err
	case h.streams() && h.kind() == typeStream && !f.flowing[h.serial()]:
		return f.hold(h)
	case h.streams() && h.kind() == typeReply:
		return f.flow(h)
	}
	f.note(h)
	f.unread = f.header[:]
	return nil
}

// hold keeps a packet of a stream until its call is answered.
func (f *frames) hold(h header) error {
	if f.waiting += f.payload; f.waiting > packetMax {
		return errEarly
	}
	p, err := f.whole(h)
	f.early[h.serial()] = append(f.early[h.serial()], p)
	return err
}

// flow passes on the answer to a call that has a stream, and then what came before it. A call
// that is refused has none.
func (f *frames) flow(h header) error {
	answer, err := f.whole(h)
	if err != nil {
		return err
	}
	f.flowing[h.serial()] = h.status() == statusOK
	f.unread = append(answer.header[:], answer.payload...)
	for _, p := range f.early[h.serial()] {
		f.waiting -= len(p.payload)
		if f.flowing[h.serial()] {
			f.note(p.header)
			f.unread = append(append(f.unread, p.header[:]...), p.payload...)
		}
	}
	delete(f.early, h.serial())
	if h.status() != statusOK {
		delete(f.flowing, h.serial())
	}
	return nil
}

// whole reads the payload of a packet.
func (f *frames) whole(h header) (packet, error) {
	p := packet{h, make([]byte, f.payload)}
	n, err := io.ReadFull(f.from, p.payload)
	f.payload -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return p, err
}

// late reports whether a packet is for a stream that has ended.
func (f *frames) late(h header) bool {
	return f.ended[h.serial()] && (h.kind() == typeReply || h.kind() == typeStream)
}

// note remembers what a packet that is passed on says: that libvirt has answered to the
// opening, or that a stream ends.
func (f *frames) note(h header) {
	if h.kind() == typeReply && h.procedure() == procConnectOpen && h.status() == statusOK {
		f.opened = true
	}
	if h.kind() == typeStream && (h.status() != statusContinue || h.payload() == 0) {
		delete(f.flowing, h.serial())
		f.remember(h.serial())
	}
}

func (f *frames) remember(serial int32) {
	if len(f.order) == endedMax {
		delete(f.ended, f.order[0])
		f.order = f.order[1:]
	}
	f.ended[serial] = true
	f.order = append(f.order, serial)
}

func (h header) word(i int) uint32 { return binary.BigEndian.Uint32(h[4*i:]) }
func (h header) payload() int      { return int(h.word(0)) - headerSize }
func (h header) procedure() uint32 { return h.word(3) }
func (h header) kind() uint32      { return h.word(4) }
func (h header) serial() int32     { return int32(h.word(5)) } //nolint:gosec // as the client chose it
func (h header) status() uint32    { return h.word(6) }

// streams reports whether the call has a stream, of those that are used here.
func (h header) streams() bool {
	return h.procedure() == procVolumeUpload || h.procedure() == procVolumeDownload
}

func plausible(header []byte) bool {
	length := binary.BigEndian.Uint32(header)
	return length >= headerSize && length <= packetMax
}

func notLibvirt(begin []byte) error { return fmt.Errorf("%w: it begins with %q", errNotLibvirt, begin) }
