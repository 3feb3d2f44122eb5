// Package load asks an HTTP server the same thing over and over, as fast as it answers,
// over connections that stay open. It does as little for an answer as can be done: it
// finds the status and the length in the head, and reads the body away. It imports the
// standard library only. Start reading at Load.Run.
package load

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// Load is one kind of request.
type Load struct {
	Address     string // host:port
	Path        string
	Header      string // lines that end in \r\n
	Want        int    // the only status that is right
	Connections int
	For         time.Duration
}

// Outcome is what came of a load.
type Outcome struct {
	Took  float64   // seconds
	Times []float64 // of each request, in seconds
}

// buffer is what a body is read away with; larger ones were no faster.
const buffer = 256 << 10

// Run asks until the time is over. Any other status than the wanted one is an error.
func (l Load) Run(ctx context.Context) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, l.For)
	defer cancel()
	clients := make([]*client, l.Connections)
	faults := make([]error, l.Connections)
	var group sync.WaitGroup
	begun := time.Now()
	for i := range clients {
		c := &client{load: l, buffer: make([]byte, buffer)}
		clients[i] = c
		group.Go(func() { faults[i] = c.run(ctx) })
	}
	group.Wait()
	o := Outcome{Took: time.Since(begun).Seconds()}
	for i, c := range clients {
		if faults[i] != nil {
			return o, fmt.Errorf("GET http://%s%s: %w", l.Address, l.Path, faults[i])
		}
		o.Times = append(o.Times, c.times...)
	}
	return o, nil
}

// client is one connection.
type client struct {
	load   Load
	conn   net.Conn
	buffer []byte
	times  []float64
}

func (c *client) run(ctx context.Context) (err error) {
	c.conn, err = new(net.Dialer).DialContext(ctx, "tcp", c.load.Address)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	request := []byte("GET " + c.load.Path + " HTTP/1.1\r\nHost: " + c.load.Address + "\r\n" + c.load.Header + "\r\n")
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := c.conn.Write(request); err != nil {
			return err
		}
		status, length, rest, err := c.head()
		if err != nil {
			return err
		}
		if status != c.load.Want {
			return fmt.Errorf("it answered %d, and not %d", status, c.load.Want)
		}
		if err := c.skip(length - rest); err != nil {
			return err
		}
		c.times = append(c.times, time.Since(begun).Seconds())
	}
	return nil
}

// head reads the head of an answer, and tells how many bytes of the body came with it.
func (c *client) head() (status, length, rest int, err error) {
	for got := 0; got < len(c.buffer); {
		n, err := c.conn.Read(c.buffer[got:])
		if err != nil {
			return 0, 0, 0, err
		}
		got += n
		if head, _, whole := bytes.Cut(c.buffer[:got], []byte("\r\n\r\n")); whole {
			status, length, err := read(head)
			return status, length, got - len(head) - len("\r\n\r\n"), err
		}
	}
	return 0, 0, 0, fmt.Errorf("the head of the answer has more than %d bytes", len(c.buffer))
}

func (c *client) skip(left int) error {
	for left > 0 {
		n, err := c.conn.Read(c.buffer[:min(left, len(c.buffer))])
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// read finds the status and the length of the body. An answer that does not say its
// length has none.
func read(head []byte) (status, length int, err error) {
	first, fields, _ := bytes.Cut(head, []byte("\r\n"))
	const at, digits = len("HTTP/1.1 "), 3
	if len(first) < at+digits {
		return 0, 0, fmt.Errorf("%q is no HTTP", first)
	}
	if status, err = strconv.Atoi(string(first[at : at+digits])); err != nil {
		return 0, 0, err
	}
	name := []byte("content-length:")
	for line := range bytes.SplitSeq(fields, []byte("\r\n")) {
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], name) {
			length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):])))
			return status, length, err
		}
	}
	return status, 0, nil
}
