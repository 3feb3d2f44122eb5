package conn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// frame is a packet of a length that it says, for a serial.
func frame(kind, status uint32, serial int32, payload string) string {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.BigEndian, []uint32{
		uint32(headerSize + len(payload)), 0x20008086, 1, 208, kind, uint32(serial), status,
	})
	return b.String() + payload
}

func length(n uint32) string {
	return string(binary.BigEndian.AppendUint32(nil, n)) + strings.Repeat("\x00", headerSize-4)
}

func TestFrames(t *testing.T) {
	t.Parallel()
	const statusError = 1
	reply, data := frame(typeReply, statusOK, 1, "yes"), frame(typeStream, statusContinue, 1, "data")
	event := frame(2, statusOK, 1, "event")
	refused, ended := frame(typeStream, statusError, 1, "no"), frame(typeStream, statusOK, 1, "")
	for name, c := range map[string]struct {
		comes, passes []string
		err           error
	}{
		"packets pass as they are": {[]string{reply, reply}, []string{reply, reply}, io.EOF},
		"nothing":                  {nil, nil, io.EOF},
		"an upload that is refused, and one answer more": {
			[]string{reply, refused, frame(typeReply, statusOK, 1, "late"), frame(typeReply, statusOK, 2, "")},
			[]string{reply, refused, frame(typeReply, statusOK, 2, "")},
			io.EOF,
		},
		"an upload that has ended, and is refused all the same": {
			[]string{reply, ended, refused},
			[]string{reply, ended},
			io.EOF,
		},
		"a download whose end is said twice": {
			[]string{reply, data, frame(typeStream, statusContinue, 1, ""), ended},
			[]string{reply, data, frame(typeStream, statusContinue, 1, "")},
			io.EOF,
		},
		"an event for a number that was a stream's": {
			[]string{reply, ended, event},
			[]string{reply, ended, event},
			io.EOF,
		},
		"a download that begins before its call is answered": {
			[]string{data, frame(typeReply, statusOK, 2, ""), data, reply, ended},
			[]string{frame(typeReply, statusOK, 2, ""), reply, data, data, ended},
			io.EOF,
		},
		"a download that ends before its call is answered, and says so twice": {
			[]string{data, frame(typeStream, statusContinue, 1, ""), ended, reply, reply},
			[]string{reply, data, frame(typeStream, statusContinue, 1, "")},
			io.EOF,
		},
		"a stream whose call is refused": {
			[]string{data, frame(typeReply, statusError, 1, "no")},
			[]string{frame(typeReply, statusError, 1, "no")},
			io.EOF,
		},
		"half a packet before its call is answered": {[]string{data[:headerSize+1]}, nil, io.ErrUnexpectedEOF},
		"a stream that is never answered": {
			slices.Repeat([]string{frame(typeStream, statusContinue, 1, strings.Repeat("x", packetMax/2))}, 3), nil, errEarly,
		},
		"text":                 {[]string{"Last login: Mon Nov 30 03:50:32 UTC 2026"}, nil, errNotLibvirt},
		"a short text":         {[]string{"no shell"}, nil, errNotLibvirt},
		"a length below zero":  {[]string{length(1 << 31)}, nil, errNotLibvirt},
		"less than its header": {[]string{length(headerSize - 1)}, nil, errNotLibvirt},
		"just its header":      {[]string{length(headerSize)}, []string{length(headerSize)}, io.EOF},
		"too much":             {[]string{length(packetMax + 1)}, nil, errNotLibvirt},
		"half a header":        {[]string{reply[:20]}, nil, io.ErrUnexpectedEOF},
		"half a packet":        {[]string{event[:headerSize+1]}, []string{event[:headerSize+1]}, io.ErrUnexpectedEOF},
		"text after a packet":  {[]string{reply, "bash: line 1: 4242 Killed  nc"}, []string{reply}, errNotLibvirt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comes := strings.Join(c.comes, "")
			for _, from := range []io.Reader{strings.NewReader(comes), iotest.OneByteReader(strings.NewReader(comes))} {
				packets := 0
				read, err := io.ReadAll(errorsOnly{newFrames(from, func() { packets++ })})
				require.ErrorIs(t, err, c.err)
				require.Equal(t, strings.Join(c.passes, ""), string(read))
				require.GreaterOrEqual(t, packets, len(c.passes))
			}
		})
	}
}

// errorsOnly lets io.ReadAll tell of an EOF.
type errorsOnly struct{ io.Reader }

type plain struct{ error }

func (e plain) Unwrap() error { return e.error }

func (r errorsOnly) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = plain{err}
	}
	return n, err
}

// TestFramesForget: what is remembered of streams that have ended is bounded.
func TestFramesForget(t *testing.T) {
	t.Parallel()
	var comes strings.Builder
	for serial := range int32(3 * endedMax) {
		comes.WriteString(frame(typeReply, statusOK, serial, "") + frame(typeStream, statusOK, serial, ""))
	}
	f := newFrames(strings.NewReader(comes.String()), func() {})
	_, err := io.Copy(io.Discard, f)
	require.NoError(t, err)
	require.Len(t, f.ended, endedMax)
	require.Empty(t, f.flowing)
	require.True(t, f.ended[3*endedMax-1])
}
