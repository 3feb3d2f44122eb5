package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

const (
	// stallAfter is how long a transfer goes on without a byte.
	stallAfter = time.Minute
	// readAtMost is how much one packet of an upload holds. With larger ones the error of
	// a full disk can be lost.
	readAtMost = 256 << 10
)

// errTakenOver, and why a transfer stopped.
var (
	errTakenOver = errors.New("another worker has taken over")
	errStalled   = fmt.Errorf("no byte moved for %s", stallAfter)
)

// watchdog ends a context once alive has not been called for stallAfter.
func watchdog(ctx context.Context) (watched context.Context, alive, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stallAfter, func() { cancel(errStalled) })
	return watched, func() { timer.Reset(stallAfter) }, func() { timer.Stop(); cancel(nil) }
}

// moved names the stall where that is why something ended.
func (j *job) moved(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return j.entry.fail(providers.ErrTransient, "on host %s: %w", j.host.Name, errStalled)
	}
	return err
}

// tap is a reader of exactly left bytes, in small packets, which sums and counts them.
type tap struct {
	from  io.Reader
	sum   hash.Hash
	alive func()
	ended func() error
	tell  func(done int64)

	mu         sync.Mutex // libvirt's sender may go on reading for a while after its call has returned
	left, done int64
	failed     error
}

// Read ends with io.EOF after the last byte that is wanted, and with another error when
// the source ends before.
func (t *tap) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 && t.failed == nil {
		return 0, io.EOF
	}
	if err := cmp.Or(t.failed, t.ended()); err != nil {
		t.failed = err
		return 0, err
	}
	n, err := t.from.Read(p[:min(int64(len(p)), readAtMost, t.left)])
	t.sum.Write(p[:n])
	t.left -= int64(n)
	t.done += int64(n)
	if n > 0 {
		t.alive()
		t.tell(t.done)
	}
	if errors.Is(err, io.EOF) {
		err = nil
		if t.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	t.failed = err
	return n, err
}

// failure is after how many bytes the source gave no more, and why.
func (t *tap) failure() (done int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done, t.failed
}

// digester sums what is written to it, and says so.
type digester struct {
	hash.Hash
	done  int64
	alive func()
	ended func() error
	tell  func(done int64)
}

func (d *digester) Write(p []byte) (int, error) {
	if err := d.ended(); err != nil {
		return 0, err
	}
	d.alive()
	n, err := d.Hash.Write(p)
	d.done += int64(n)
	d.tell(d.done)
	return n, err
}
