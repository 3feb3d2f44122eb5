package probe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
)

const (
	// headLimit is more than any proxy needs, and little enough for 200 at once.
	headLimit = 32 << 10
	// interimLimit is how many 1xx answers may come before the final one.
	interimLimit = 5
)

// answer is the head of the proxy's final answer.
type answer struct {
	status int
	phrase string // the proxy's own words
	header textproto.MIMEHeader
}

// meter counts what is read from a connection, and stops at a limit while there is one.
type meter struct {
	net.Conn
	got   int
	limit int // 0: none
}

// Read implements io.Reader.
func (m *meter) Read(b []byte) (int, error) {
	if m.limit > 0 {
		if m.got >= m.limit {
			return 0, errTooLong
		}
		b = b[:min(len(b), m.limit-m.got)]
	}
	n, err := m.Conn.Read(b)
	m.got += n
	return n, err
}

// buffered is a connection whose first bytes were read already: those that follow the
// answer's head belong to the tunnel.
type buffered struct {
	net.Conn
	r io.Reader
}

// Read implements io.Reader.
func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// readAnswer reads heads until one is final. It reads no body: nothing in it decides,
// and it may be as long as a proxy likes.
func readAnswer(r *bufio.Reader) (answer, error) {
	for range interimLimit {
		a, err := readHead(r)
		if err != nil || a.status >= 200 || a.status == 101 {
			return a, err
		}
	}
	return answer{}, errInterims
}

func readHead(r *bufio.Reader) (answer, error) {
	if err := beginsAsHTTP(r); err != nil {
		return answer{}, err
	}
	text := textproto.NewReader(r)
	line, err := text.ReadLine()
	if err != nil {
		return answer{}, err
	}
	a, err := parseStatus(line)
	if err != nil {
		return answer{}, err
	}
	a.header, err = text.ReadMIMEHeader()
	return a, err
}

// beginsAsHTTP looks at one byte after the other, so that a banner without an end of
// line is known for what it is at once.
func beginsAsHTTP(r *bufio.Reader) error {
	const begin = "HTTP/"
	for n := 1; n <= len(begin); n++ {
		b, err := r.Peek(n)
		if err != nil {
			return err
		}
		if string(b) != begin[:n] {
			return errNotHTTP
		}
	}
	return nil
}

// parseStatus reads "HTTP/1.1 200 Connection established"; the words may be missing,
// and the blank before them, too. Pure.
func parseStatus(line string) (answer, error) {
	_, rest, _ := strings.Cut(line, " ")
	code, phrase, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	status, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || status < 100 {
		return answer{}, fmt.Errorf("%w: its status is not three digits", errMangled)
	}
	return answer{status: status, phrase: strings.TrimSpace(phrase)}, nil
}
