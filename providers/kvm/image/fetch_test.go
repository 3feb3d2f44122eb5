package image_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

const megabyte = 1 << 20

func fetch(t *testing.T, p *pool, entry image.Entry) error {
	t.Helper()
	f := image.New(nil)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f.Fetch(t.Context(), p.host(), entry)
}

func TestFetchStoresAnImageThatFindThenFinds(t *testing.T) {
	t.Parallel()
	content := noise(1, 3*megabyte+5)
	o, p := newOrigin(t, content), newPool()
	entry := o.entry()
	during := []bool{}
	p.uploading = func(string) {
		_, found, err := image.Find(t.Context(), p, libvirt.StoragePool{}, entry)
		require.NoError(t, err)
		during = append(during, found)
	}
	var done, total int64
	var what string
	ctx := providers.WithProgress(t.Context(), func(d, of int64, w string) { done, total, what = d, of, w })
	f := image.New(nil)
	require.NoError(t, f.Fetch(ctx, p.host(), entry))
	p.holds(t, entry, content)
	require.Equal(t, []bool{false}, during, "what is being written is not found")
	require.Equal(t, int64(len(content)), done)
	require.Equal(t, int64(len(content)), total)
	require.Contains(t, what, "debian-12")
	require.NoError(t, f.Fetch(t.Context(), p.host(), entry))
	require.Len(t, o.ranges(), 1, "what is there is not fetched again")
	require.NoError(t, f.Close())
}

func TestACutOffTransferGoesOnFromThere(t *testing.T) {
	t.Parallel()
	content := noise(2, 4*megabyte)
	o, p := newOrigin(t, content), newPool()
	o.cuts = []int{megabyte, megabyte}
	require.NoError(t, fetch(t, p, o.entry()))
	p.holds(t, o.entry(), content)
	asked := o.ranges()
	require.Len(t, asked, 3)
	require.Empty(t, asked[0])
	for _, again := range asked[1:] {
		require.Regexp(t, `^bytes=[1-9][0-9]*- "one"$`, again)
	}
}

func TestALaterFetchGoesOnToo(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"in the same process": true, "in another process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := noise(3, 2*megabyte)
			o, p := newOrigin(t, content), newPool()
			o.cuts = []int{megabyte, 0}
			f := image.New(nil)
			err := f.Fetch(t.Context(), p.host(), o.entry())
			require.ErrorIs(t, err, providers.ErrTransient)
			require.ErrorContains(t, err, "cut off after")
			p.lacks(t, o.entry())
			if !same {
				require.NoError(t, f.Close())
				f = image.New(nil)
			}
			require.NoError(t, f.Fetch(t.Context(), p.host(), o.entry()))
			p.holds(t, o.entry(), content)
			asked := o.ranges()
			require.Regexp(t, `^bytes=[1-9][0-9]*-`, asked[len(asked)-1])
			require.NoError(t, f.Close())
		})
	}
}

func TestAServerWithoutRangesIsAskedFromTheBeginning(t *testing.T) {
	t.Parallel()
	content := noise(4, 2*megabyte)
	o, p := newOrigin(t, content), newPool()
	o.noRange, o.cuts = true, []int{megabyte}
	require.NoError(t, fetch(t, p, o.entry()))
	p.holds(t, o.entry(), content)
	require.Len(t, o.ranges(), 2)
}

// TestContentThatChangesBetweenTwoParts serves another file of the same length before,
// and the wanted one after the cut.
func TestContentThatChangesBetweenTwoParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		after  string
	}{
		"the server says so by its ETag": {`"one"`, `"two"`},
		"the server has no word for it":  {"", ""},
		"the server's word is weak":      {`W/"one"`, `W/"one"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := noise(5, 2*megabyte)
			o, p := newOrigin(t, noise(6, 2*megabyte)), newPool()
			o.etag, o.cuts = c.before, []int{megabyte}
			o.then = func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.content, o.etag = content, c.after
			}
			entry := entryOf(o.URL, content)
			require.NoError(t, fetch(t, p, entry))
			p.holds(t, entry, content)
			for _, asked := range o.ranges() {
				require.NotContains(t, asked, "W/", "a weak word is none for a part")
			}
		})
	}
}

func TestWhatTheSourceSaysHasAClass(t *testing.T) {
	t.Parallel()
	content := noise(7, megabyte)
	for name, c := range map[string]struct {
		fault func(*origin, *image.Entry)
		class providers.Class
		says  []string
	}{
		"not there": {func(o *origin, _ *image.Entry) { o.status = 404 }, providers.ErrPermanent, []string{"404 Not Found"}},
		"forbidden": {func(o *origin, _ *image.Entry) { o.status = 403 }, providers.ErrPermanent, []string{"403 Forbidden"}},
		"a limit":   {func(o *origin, _ *image.Entry) { o.status = 429 }, providers.ErrTransient, []string{"429"}},
		"overload":  {func(o *origin, _ *image.Entry) { o.status = 503 }, providers.ErrTransient, []string{"503"}},
		"no server": {func(o *origin, _ *image.Entry) { o.Close() }, providers.ErrTransient, []string{"refused"}},
		"a range that nobody asked for": {
			func(o *origin, _ *image.Entry) { o.status = 416 }, providers.ErrPermanent, []string{"416"},
		},
		"another content": {
			func(_ *origin, e *image.Entry) { e.SHA256 = strings.Repeat("ab", 32) }, providers.ErrPermanent,
			[]string{digest(content), strings.Repeat("ab", 32)},
		},
		"another length": {
			func(_ *origin, e *image.Entry) { e.Size = 5 }, providers.ErrPermanent, []string{"1048576 bytes", "size says 5"},
		},
		"no length": {
			func(o *origin, _ *image.Entry) { o.chunked = true }, providers.ErrPermanent, []string{"Content-Length"},
		},
		"less than the length that is set": {
			func(o *origin, e *image.Entry) { o.chunked, e.Size = true, megabyte+1 }, providers.ErrPermanent,
			[]string{"has 1048576 bytes", "size says 1048577"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, p := newOrigin(t, content), newPool()
			entry := o.entry()
			entry.URL = strings.Replace(entry.URL, "http://", "http://user:s3cret@", 1) + "?token=s3cret"
			c.fault(o, &entry)
			err := fetch(t, p, entry)
			require.ErrorIs(t, err, c.class)
			for _, word := range append(c.says, "debian-12", strings.TrimPrefix(o.URL, "http://")+"/debian-12.qcow2") {
				require.ErrorContains(t, err, word)
			}
			require.NotContains(t, err.Error(), "s3cret")
			p.lacks(t, entry)
		})
	}
}

func TestAnImageOfWrongContentLeavesNothing(t *testing.T) {
	t.Parallel()
	o, p := newOrigin(t, noise(8, megabyte)), newPool()
	entry := o.entry()
	entry.SHA256 = strings.Repeat("ab", 32)
	require.Error(t, fetch(t, p, entry))
	require.Empty(t, p.names())
}

// TestALengthThatIsSetServesForOneThatIsNotSaid has the server send more than that.
func TestALengthThatIsSetServesForOneThatIsNotSaid(t *testing.T) {
	t.Parallel()
	content := noise(9, megabyte-7)
	o, p := newOrigin(t, append(noise(9, megabyte-7), 1, 2, 3)), newPool()
	o.chunked = true
	entry := entryOf(o.URL, content)
	entry.Size = megabyte - 7
	require.NoError(t, fetch(t, p, entry))
	p.holds(t, entry, content)
}

// TestAnAddressThatIsRedirectedToStaysSecret has the redirect carry a signature.
func TestAnAddressThatIsRedirectedToStaysSecret(t *testing.T) {
	t.Parallel()
	o, p := newOrigin(t, nil), newPool()
	o.Config.Handler = http.RedirectHandler("http://127.0.0.1:1/x?signature=s3cret", http.StatusFound)
	err := fetch(t, p, o.entry())
	require.ErrorIs(t, err, providers.ErrTransient)
	require.NotContains(t, err.Error(), "s3cret")
}

func TestThePoolsFaultsHaveAClass(t *testing.T) {
	t.Parallel()
	content := noise(10, 2*megabyte)
	for name, c := range map[string]struct {
		fault func(*pool)
		class providers.Class
		says  string
		left  int // volumes
	}{
		"less room than the image needs": {
			func(p *pool) { p.free = megabyte }, providers.ErrQuotaExceeded, "2097152 more bytes", 1,
		},
		"a disk that fills up on the way": {
			func(p *pool) { p.uploading = func(string) { p.set(func() { p.free = megabyte }) } },
			providers.ErrQuotaExceeded, "No space left on device", 0,
		},
		"a full disk that is reported as success": {
			func(p *pool) {
				p.lies, p.uploading = true, func(string) { p.set(func() { p.free = megabyte }) }
			},
			providers.ErrQuotaExceeded, "no space left on device", 0,
		},
		"a disk that gives back other bytes": {
			func(p *pool) { p.corrupts = true }, providers.ErrTransient, "was stored where", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, p := newOrigin(t, content), newPool()
			c.fault(p)
			err := fetch(t, p, o.entry())
			require.ErrorIs(t, err, c.class)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "host-a")
			p.lacks(t, o.entry())
			require.Len(t, p.names(), c.left, "%v", p.names())
		})
	}
}

func (p *pool) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func TestErrorsOfLibvirtStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"lookup", "list", "create", "length", "info", "write", "download"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			o, p := newOrigin(t, noise(11, megabyte)), newPool()
			refused := libvirt.Error{Code: 55, Message: "storage pool 'default' is not active"}
			p.refuses[method] = refused
			err := fetch(t, p, o.entry())
			var theirs libvirt.Error
			require.ErrorAs(t, err, &theirs)
			require.Equal(t, refused, theirs)
		})
	}
}

// TestWhatACrashLeftIsUsedOrReplaced begins with each thing that a process could have
// left behind.
func TestWhatACrashLeftIsUsedOrReplaced(t *testing.T) {
	t.Parallel()
	content := noise(12, 2*megabyte)
	entry := entryOf("", content)
	name := entry.Volume()
	for what, left := range map[string]map[string][]byte{
		"an empty volume":                         {name: {}},
		"a part":                                  {name: content[:megabyte]},
		"all but the last byte":                   {name: content[:len(content)-1]},
		"all of it, and no mark":                  {name: content},
		"a mark whose volume somebody deleted":    {name + ".complete": {}},
		"other bytes than these":                  {name: noise(13, megabyte)},
		"other bytes, as many as these":           {name: noise(13, 2*megabyte)},
		"more bytes than these":                   {name: append(noise(12, 2*megabyte), 1)},
		"another image's volumes, which it keeps": {},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o, p := newOrigin(t, content), newPool()
			for file, bytes := range left {
				p.put(file, bytes)
			}
			_, found, err := image.Find(t.Context(), p, libvirt.StoragePool{}, o.entry())
			require.NoError(t, err)
			require.False(t, found)
			p.uploading = func(string) {
				_, found, err := image.Find(t.Context(), p, libvirt.StoragePool{}, o.entry())
				require.NoError(t, err)
				require.False(t, found, "it is being written")
			}
			require.NoError(t, fetch(t, p, o.entry()))
			p.holds(t, o.entry(), content)
		})
	}
}

func TestAFileThatThePoolDoesNotKnowIsFoundAgain(t *testing.T) {
	t.Parallel()
	content := noise(14, megabyte)
	o, p := newOrigin(t, content), newPool()
	p.put(o.entry().Volume(), content[:1000])
	p.hidden[o.entry().Volume()] = true
	require.NoError(t, fetch(t, p, o.entry()))
	p.holds(t, o.entry(), content)
}

func TestAFileOnTheWorkerIsASource(t *testing.T) {
	t.Parallel()
	content := noise(15, megabyte)
	path := filepath.Join(t.TempDir(), "base.img")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	for _, url := range []string{path, "file://" + path} {
		p := newPool()
		p.put(entryOf(url, content).Volume(), content[:5000])
		require.NoError(t, fetch(t, p, entryOf(url, content)), url)
		p.holds(t, entryOf(url, content), content)
	}
	for name, url := range map[string]string{"no file": path + ".none", "a folder": filepath.Dir(path)} {
		err := fetch(t, newPool(), entryOf(url, content))
		require.ErrorIs(t, err, providers.ErrPermanent, name)
		require.ErrorContains(t, err, url)
	}
}

func TestAFetchIsASpan(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "provider.prepare")
	o, p := newOrigin(t, noise(16, megabyte)), newPool()
	f := image.New(nil)
	require.NoError(t, f.Fetch(ctx, p.host(), o.entry()))
	require.NoError(t, f.Close())
	require.Len(t, spans.Ended(), 1)
	require.Equal(t, "kvm.image", spans.Ended()[0].Name())
	require.Equal(t, parent.SpanContext().SpanID(), spans.Ended()[0].Parent().SpanID())
}

func TestOneDownloadHoweverManyAsk(t *testing.T) {
	t.Parallel()
	content := noise(17, megabyte)
	o, p := newOrigin(t, content), newPool()
	f := image.New(nil)
	all := make(chan struct{})
	p.uploading = func(string) { <-all } // nobody is done before everyone has asked
	var callers, told sync.WaitGroup
	for range 20 {
		told.Add(1)
		first := sync.OnceFunc(told.Done)
		ctx := providers.WithProgress(t.Context(), func(int64, int64, string) { first() })
		callers.Go(func() { require.NoError(t, f.Fetch(ctx, p.host(), o.entry())) })
	}
	require.Eventually(t, func() bool { return f.Waiting() == 20 }, waitFor, tick)
	close(all)
	callers.Wait()
	told.Wait()
	require.Len(t, o.ranges(), 1)
	p.holds(t, o.entry(), content)
	require.NoError(t, f.Close())
}

func TestOneWhoLeavesTakesNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	content := noise(18, megabyte)
	o, p := newOrigin(t, content), newPool()
	f := image.New(nil)
	all := make(chan struct{})
	p.uploading = func(string) { <-all }
	first, leave := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { left <- f.Fetch(first, p.host(), o.entry()) }()
	require.Eventually(t, func() bool { return f.Waiting() == 1 }, waitFor, tick)
	go func() { stayed <- f.Fetch(t.Context(), p.host(), o.entry()) }()
	require.Eventually(t, func() bool { return f.Waiting() == 2 }, waitFor, tick)
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	close(all)
	require.NoError(t, <-stayed)
	require.Len(t, o.ranges(), 1)
	p.holds(t, o.entry(), content)
	require.NoError(t, f.Close())
}

// TestAStuckUploadHoldsNobody has libvirt never answer: who leaves is free at once, and
// the next one can go on.
func TestAStuckUploadHoldsNobody(t *testing.T) {
	t.Parallel()
	content := noise(19, megabyte)
	o, p := newOrigin(t, content), newPool()
	stuck := make(chan struct{})
	p.stuck = stuck
	t.Cleanup(func() { close(stuck) })
	f := image.New(nil)
	begun := make(chan struct{})
	p.uploading = func(string) { close(begun) }
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- f.Fetch(ctx, p.host(), o.entry()) }()
	<-begun
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Eventually(t, func() bool { return len(p.names()) == 1 }, waitFor, tick, "nobody's mark is left")
	require.NoError(t, f.Close())
	p.lacks(t, o.entry())
	p.set(func() { p.stuck, p.uploading = nil, nil })
	require.NoError(t, fetch(t, p, o.entry()))
	p.holds(t, o.entry(), content)
}
