package image

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
)

// atOnce bounds the memory of all fetches of a process: a transfer holds one packet of
// libvirt's, of at most 4 MiB, in each direction.
const atOnce = 4

// Host is one host's pool.
type Host struct {
	Name string // of the configuration
	Pool libvirt.StoragePool
	// Do runs use with the host's connection, and returns when ctx has ended, also while
	// use is stuck. A connection of its own for a fetch keeps others free of its bytes.
	Do func(ctx context.Context, use func(API) error) error
}

// Fetcher brings images to hosts. One serves a provider, from any number of goroutines.
type Fetcher struct {
	client *http.Client
	slots  chan struct{}

	mu      sync.Mutex
	flights map[string]*flight
	// validators are the servers' words for what is stored in parts, by volume and host.
	validators map[string]string
	closed     bool
}

// New returns a Fetcher that asks by client; nil is one of its own, which gives a server
// half a minute to begin its answer.
func New(client *http.Client) *Fetcher {
	if client == nil {
		transport := &http.Transport{
			Proxy: nil, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: time.Minute,
		}
		client = &http.Client{Transport: transport}
	}
	return &Fetcher{
		client: client, slots: make(chan struct{}, atOnce),
		flights: map[string]*flight{}, validators: map[string]string{},
	}
}

// flight is one fetch and those who wait for it.
type flight struct {
	done   chan struct{}
	err    error // once done is closed
	cancel context.CancelFunc

	mu        sync.Mutex
	listeners map[int]providers.ProgressFunc
	next      int
	ending    bool // nobody waits any more
}

// Fetch returns when an entry's volume is on a host as a whole, and says through
// providers.Progress how far it has come. However many ask for the same volume of a
// host at once, it is fetched once; it goes on until the last of them has left. What a
// source that is cut off has given is kept, and the next bytes are asked for from there,
// in this call as long as some arrive, or in a later one.
// It fails with an *Error, or with an error of the connection or of libvirt.
// Callers: Prepare. Contract §2.5.
func (f *Fetcher) Fetch(ctx context.Context, host Host, entry Entry) error {
	if err := entry.Validate(); err != nil {
		return &Error{Class: providers.ErrPermanent, Err: err}
	}
	report := func(done, total int64, what string) { providers.Progress(ctx, done, total, what) }
	for {
		joined, leave := f.join(ctx, host, entry, report)
		select {
		case <-joined.done:
		case <-ctx.Done():
		}
		leave()
		switch {
		case ctx.Err() != nil:
			return entry.fail(providers.ErrTransient, "on host %s: %w", host.Name, ctx.Err())
		case !errors.Is(joined.err, errNobody):
			return joined.err
		case f.isClosed():
			return entry.fail(providers.ErrTransient, "on host %s: the provider is being closed", host.Name)
		}
	}
}

// errNobody is the end of a flight that everyone has left; who comes just then starts
// another one.
var errNobody = errors.New("nobody waits for the image any more")

func (f *Fetcher) join(ctx context.Context, host Host, entry Entry, report providers.ProgressFunc) (*flight, func()) {
	key := host.Name + "\x00" + host.Pool.Name + "\x00" + entry.Volume()
	f.mu.Lock()
	defer f.mu.Unlock()
	joined, there := f.flights[key]
	if !there {
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		joined = &flight{done: make(chan struct{}), cancel: cancel, listeners: map[int]providers.ProgressFunc{}}
		f.flights[key] = joined
		go f.fly(running, joined, &job{fetcher: f, host: host, entry: entry, key: key, word: word(), report: joined.tell})
	}
	return joined, joined.listen(report)
}

func (f *Fetcher) fly(ctx context.Context, running *flight, j *job) {
	err := j.run(ctx)
	if ctx.Err() != nil {
		err = errNobody
	}
	f.mu.Lock()
	delete(f.flights, j.key)
	f.mu.Unlock()
	running.err = err
	running.cancel()
	close(running.done)
}

// listen adds one who waits, and returns how to leave.
func (fl *flight) listen(report providers.ProgressFunc) (leave func()) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.ending { // it is waited for, and does not come back
		return func() {}
	}
	id := fl.next
	fl.next++
	fl.listeners[id] = report
	return func() {
		fl.mu.Lock()
		defer fl.mu.Unlock()
		delete(fl.listeners, id)
		if fl.ending = len(fl.listeners) == 0; fl.ending {
			fl.cancel()
		}
	}
}

func (fl *flight) tell(done, total int64, what string) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	for _, report := range fl.listeners {
		report(done, total, what)
	}
}

// Close ends every fetch and waits until it has ended.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	f.closed = true
	running := make([]*flight, 0, len(f.flights))
	for _, one := range f.flights {
		running = append(running, one)
	}
	f.mu.Unlock()
	for _, one := range running {
		one.cancel()
		<-one.done
	}
	f.client.CloseIdleConnections()
	return nil
}

func (f *Fetcher) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func (f *Fetcher) validator(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.validators[key]
}

func (f *Fetcher) remember(key, validator string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if validator == "" {
		delete(f.validators, key)
		return
	}
	f.validators[key] = validator
}
