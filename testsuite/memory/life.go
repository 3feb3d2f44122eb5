//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	together     = 16 // requests at a time
	settleWithin = 10 * time.Minute
	lookEvery    = time.Second
	tellEvery    = 10 * time.Second
	project      = "example-proj"
	region       = "us-central1"
	calm         = 30 * time.Second // the sweeps go on over all that there is
	lostOf       = 20               // one of so many instances is taken back
	// every so many-th call of the backend meets a trouble.
	everyFault = 50
)

// cloud is the backend: one Compute Engine on loopback.
type cloud struct {
	*gcefake.Server
	address string
	met     atomic.Int64 // calls that met a trouble
}

func newCloud(ctx context.Context, proxies int) (*cloud, error) {
	c := &cloud{Server: gcefake.New(gcefake.Options{Pace: gcefake.Pace{
		Running: 200 * time.Millisecond, Staging: 300 * time.Millisecond, Retention: time.Minute,
	}})}
	// Room for all, and for those that are still going while others take their place.
	for _, metric := range []string{"CPUS", "INSTANCES", "IN_USE_ADDRESSES", "DISKS_TOTAL_GB"} {
		c.SetQuota(project, region, metric, float64(proxies*100))
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.address = "http://" + l.Addr().String()
	web := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	go func() { _ = web.Serve(l) }()
	// No 429: a proxy waits for five minutes after one.
	troubles := []string{"get-503-backend", "get-500"}
	for i, name := range troubles {
		every, next := int64(len(troubles)*everyFault), new(atomic.Int64)
		next.Store(int64(i * everyFault))
		c.Inject(gcefake.Fault{Answer: gcefake.Captured(name), When: func(gcefake.Call) bool {
			hit := next.Add(1)%every == 0
			if hit {
				c.met.Add(1)
			}
			return hit
		}})
	}
	return c, nil
}

// world is one run.
type world struct {
	cloud *cloud
	box   *box
	api   string
	stats string
	begun time.Time
	size  int // proxies
}

const settings = `installation: memory
providersFile: /etc/providers.yaml
api: {port: %d}
metrics: {port: %d}
echo: {port: 0}
drift: {interval: 10s}
gc: {interval: 20s}
check: {interval: 10s}
log: {format: json}
temporal: {port: %s}
`

// start starts the worker and waits until it is ready.
func (w *world) start(ctx context.Context, temporal string) error {
	api, err := ports.Take()
	if err != nil {
		return err
	}
	metrics, err := ports.Take()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(temporal)
	if err != nil {
		return err
	}
	w.api, w.stats = "http://127.0.0.1:"+strconv.Itoa(api), "http://127.0.0.1:"+strconv.Itoa(metrics)
	err = errors.Join(
		w.box.put("etc/worker.yaml", fmt.Appendf(nil, settings, api, metrics, port), 0o644),
		w.box.put("etc/providers.yaml", gcefake.Providers(w.cloud.address), 0o644),
		w.box.run("--config", "/etc/worker.yaml"))
	if err != nil {
		return err
	}
	if err := w.until(ctx, "the worker is ready", func(ctx context.Context) bool {
		_, err := ask(ctx, http.MethodGet, w.stats+"/readyz", "")
		return err == nil
	}); err != nil {
		return err
	}
	return w.box.confined()
}

// wanted is what every proxy is put as.
const wanted = `{"spec": {"provider": "gcp", "port": 3128, "placement": {"region": "us-central1"}}}`

// live is birth, calm, loss and the end of all proxies.
func (w *world) live(ctx context.Context) (m measured, err error) {
	each := func(method, body string) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(together)
		for n := range w.size {
			group.Go(func() error {
				return w.insist(ctx, method, fmt.Sprintf("%s/v1/namespaces/default/proxies/p%d", w.api, n), body)
			})
		}
		return group.Wait()
	}
	if err := each(http.MethodPut, wanted); err != nil {
		return m, err
	}
	if err := w.serving(ctx, w.size); err != nil {
		return m, err
	}
	if err := w.look(ctx, "all serve"); err != nil {
		return m, err
	}
	if m.lists, m.misses, err = w.lose(ctx); err != nil {
		return m, err
	}
	if err := w.serving(ctx, w.size); err != nil {
		return m, err
	}
	if err := w.look(ctx, "after the losses all serve again"); err != nil {
		return m, err
	}
	if err := each(http.MethodDelete, ""); err != nil {
		return m, err
	}
	gone := func(context.Context) bool { return len(w.cloud.Instances()) == 0 }
	if err := w.until(ctx, "all are gone", gone); err != nil {
		return m, err
	}
	return m, w.reckon(ctx, &m)
}

// lose takes instances back, and asks for the list of all without a pause. It returns how
// often that was answered, and how often a worker that is busy missed it.
func (w *world) lose(ctx context.Context) (lists, misses int, err error) {
	for _, i := range w.cloud.Instances()[:w.size/lostOf] {
		zone := i.GetZone()[strings.LastIndex(i.GetZone(), "/")+1:]
		w.cloud.Instance(gcefake.Place{Zone: zone, Name: i.GetName()}).Preempt()
	}
	for end := time.Now().Add(calm); time.Now().Before(end) && ctx.Err() == nil; {
		_, err := w.discovered(ctx)
		switch {
		case err == nil:
			lists++
		case missed(err):
			misses++
		default:
			return lists, misses, fmt.Errorf("the list of all: %w", err)
		}
		if err := w.box.alive(); err != nil {
			return lists, misses, err
		}
	}
	return lists, misses, ctx.Err()
}

// missed reports whether an answer is that of a worker that is busy: that it has no list that
// is new enough, or none in time. It is pure.
func missed(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code == http.StatusServiceUnavailable
	}
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}

// serving waits until so many are handed out.
func (w *world) serving(ctx context.Context, want int) error {
	got := 0
	err := w.until(ctx, fmt.Sprintf("%d proxies serve", want), func(ctx context.Context) bool {
		got, _ = w.discovered(ctx)
		return got == want
	})
	if err != nil {
		return fmt.Errorf("%w; %d did", err, got)
	}
	return nil
}

func (w *world) discovered(ctx context.Context) (int, error) {
	text, err := ask(ctx, http.MethodGet, w.api+"/v1/discovery?format=txt", "")
	return strings.Count(text, "\n"), err
}

// insist asks until it is accepted: a worker that is busy says so.
func (w *world) insist(ctx context.Context, method, url, body string) error {
	var last error
	err := w.until(ctx, method+" "+url, func(ctx context.Context) bool {
		_, last = ask(ctx, method, url, body)
		return last == nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (w *world) until(ctx context.Context, what string, is func(context.Context) bool) error {
	for begun := time.Now(); !is(ctx); {
		if err := w.box.alive(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if time.Since(begun) > settleWithin {
			return fmt.Errorf("%s: not within %s", what, settleWithin)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// patient is a client that gives a worker up which does not answer at all.
var patient = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: together}}

// statusError is a status that is none of success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// ask returns the body, and an error for a status that is none of success.
func ask(ctx context.Context, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := patient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = &statusError{resp.StatusCode, fmt.Sprintf("%s %s: %s: %.300s", method, url, resp.Status, text)}
	}
	return string(text), err
}
