package image_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// mirror answers without a network, so that time is the test's.
type mirror struct {
	content []byte
	mu      sync.Mutex
	asked   []string
	body    func(ctx context.Context, rest []byte) io.ReadCloser // nil gives the rest at once
}

func (m *mirror) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := 0
	asked := r.Header.Get("Range")
	m.asked = append(m.asked, asked)
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	if _, err := fmt.Sscanf(asked, "bytes=%d-", &from); err == nil {
		resp.StatusCode = http.StatusPartialContent
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(m.content)-1, len(m.content)))
	}
	rest := m.content[from:]
	resp.ContentLength = int64(len(rest))
	resp.Body = io.NopCloser(bytes.NewReader(rest))
	if m.body != nil {
		resp.Body = m.body(r.Context(), rest)
	}
	return resp, nil
}

func (m *mirror) fetcher() *image.Fetcher { return image.New(&http.Client{Transport: m}) }

// silent gives some bytes, and then none until its context ends.
type silent struct {
	io.Reader
	ended <-chan struct{}
}

func (s silent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		<-s.ended
		return 0, context.Canceled
	}
	return n, err
}

func (s silent) Close() error { return nil }

// TestTwoProcessesFetchOnce has two fetchers share a pool, as two workers do.
func TestTwoProcessesFetchOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(30, megabyte)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		let := make(chan struct{})
		p.uploading = func(string) { <-let }
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- m.fetcher().Fetch(t.Context(), p.host(), entry) }()
		synctest.Wait()
		var what string
		ctx := providers.WithProgress(t.Context(), func(_, _ int64, w string) { what = w })
		go func() { second <- m.fetcher().Fetch(ctx, p.host(), entry) }()
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Contains(t, what, "which another worker fetches")
		close(let)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Len(t, m.asked, 1)
		p.holds(t, entry, content)
	})
}

// TestADeadProcessIsTakenOverFrom begins with what a killed worker left: half of the
// image, and its mark.
func TestADeadProcessIsTakenOverFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(31, 2*megabyte)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		p.put(entry.Volume(), content[:megabyte])
		p.put(entry.Volume()+".fetching-gone", nil)
		begun := time.Now()
		require.NoError(t, m.fetcher().Fetch(t.Context(), p.host(), entry))
		require.InDelta(t, 3*time.Minute, time.Since(begun), float64(6*time.Second))
		require.Equal(t, []string{"bytes=1048576-"}, m.asked)
		p.holds(t, entry, content)
	})
}

// TestALivingProcessIsNotTakenOverFrom has the other one store a byte a minute.
func TestALivingProcessIsNotTakenOverFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(32, 10)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		mark := entry.Volume() + ".fetching-slow"
		p.put(mark, nil)
		done := make(chan error, 1)
		go func() { done <- m.fetcher().Fetch(t.Context(), p.host(), entry) }()
		for n := range content {
			p.put(entry.Volume(), content[:n+1])
			<-time.After(time.Minute)
		}
		require.Contains(t, p.names(), mark)
		p.put(entry.Volume()+".complete", nil)
		p.set(func() { delete(p.files, mark) })
		require.NoError(t, <-done)
		require.Empty(t, m.asked)
		p.holds(t, entry, content)
	})
}

// TestAnOwnerThatWasTakenOverFromWritesNoMore removes the mark while the source is
// being asked, as one does who has waited long enough.
func TestAnOwnerThatWasTakenOverFromWritesNoMore(t *testing.T) {
	t.Parallel()
	content := noise(33, megabyte)
	m, p := &mirror{content: content}, newPool()
	entry := entryOf("https://mirror/a", content)
	m.body = func(_ context.Context, rest []byte) io.ReadCloser {
		for _, name := range p.names() {
			if strings.Contains(name, ".fetching-") {
				p.set(func() { delete(p.files, name) })
			}
		}
		return io.NopCloser(bytes.NewReader(rest))
	}
	err := m.fetcher().Fetch(t.Context(), p.host(), entry)
	require.ErrorContains(t, err, "another worker has taken over")
	require.Empty(t, p.content(entry.Volume()))
}

// TestASilentSourceIsGivenUp has a server go silent in the middle: what came is kept.
func TestASilentSourceIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(34, megabyte)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		m.body = func(ctx context.Context, rest []byte) io.ReadCloser {
			return silent{bytes.NewReader(rest[:min(1000, len(rest))]), ctx.Done()}
		}
		done := make(chan error, 1)
		go func() { done <- m.fetcher().Fetch(t.Context(), p.host(), entry) }()
		<-time.After(90 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"", "bytes=1000-"}, m.asked, "a minute of silence ends one request, and begins another")
		m.mu.Lock()
		m.body = nil
		m.mu.Unlock()
		require.NoError(t, <-done)
		p.holds(t, entry, content)
	})
}

// TestASilentServerFailsTransiently never gives a byte.
func TestASilentServerFailsTransiently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(35, megabyte)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		m.body = func(ctx context.Context, _ []byte) io.ReadCloser { return silent{strings.NewReader(""), ctx.Done()} }
		err := m.fetcher().Fetch(t.Context(), p.host(), entry)
		require.ErrorIs(t, err, providers.ErrTransient)
		require.ErrorContains(t, err, "no byte moved for 1m0s")
		p.lacks(t, entry)
	})
}

// drip gives a byte every forty seconds.
type drip struct{ io.Reader }

func (d drip) Read(p []byte) (int, error) {
	<-time.After(40 * time.Second)
	return d.Reader.Read(p[:1])
}

func TestASlowSourceIsNotGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(36, 10)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		m.body = func(_ context.Context, rest []byte) io.ReadCloser { return io.NopCloser(drip{bytes.NewReader(rest)}) }
		require.NoError(t, m.fetcher().Fetch(t.Context(), p.host(), entry))
		require.Len(t, m.asked, 1)
		p.holds(t, entry, content)
	})
}

// TestASourceThatEndsEarlyIsAskedAgainAtOnce has the body end as if that were all.
func TestASourceThatEndsEarlyIsAskedAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := noise(37, megabyte)
		m, p := &mirror{content: content}, newPool()
		entry := entryOf("https://mirror/a", content)
		m.body = func(_ context.Context, rest []byte) io.ReadCloser {
			return io.NopCloser(bytes.NewReader(rest[:(len(rest)+1)/2]))
		}
		begun := time.Now()
		require.NoError(t, m.fetcher().Fetch(t.Context(), p.host(), entry))
		require.Zero(t, time.Since(begun))
		require.Equal(t, []string{"", "bytes=524288-"}, m.asked[:2])
		p.holds(t, entry, content)
	})
}
