//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// answerWithin is longer than the API takes for any answer.
	answerWithin = 12 * time.Second
	retryAfter   = 300 * time.Millisecond
	longestPause = 6 * time.Second
	firstPort    = 3128
	ports        = 100
)

// request is one to an API, or to a port of metrics.
type request struct {
	Method, URL, Body, Key string
}

// ask returns the status and the body; a status that is none of success is an error, too.
func ask(ctx context.Context, r request) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %.300s", r.Method, r.URL, resp.Status, body)
	}
	return resp.StatusCode, string(body), err
}

// wish is what a customer was promised.
type wish struct {
	Name   string
	Living bool
	Port   int
	Open   string // what was asked for and not accepted yet; nobody knows what it led to
}

// customer is the client of one proxy. It says one thing after the other, and each one
// again, to the other API, until it is accepted.
type customer struct {
	w      *world
	n      int
	random *rand.Rand
	wish   wish
	said   int // what was asked for so far
}

func newCustomer(w *world, n int) *customer {
	return &customer{
		w: w, n: n, random: rand.New(rand.NewPCG(seed, uint64(n))), //nolint:gosec // it has to be the same again
		wish: wish{Name: fmt.Sprintf("p%03d", n)},
	}
}

// live makes, changes and deletes the proxy over and over until the storm is over, and at
// least once; it ends with one that lives.
func (c *customer) live(ctx context.Context, storm <-chan struct{}) error {
	c.pause(ctx)
	for over := false; !over; {
		for _, do := range []func(context.Context) error{c.create, c.change, c.remove} {
			if err := do(ctx); err != nil {
				return err
			}
			c.pause(ctx)
		}
		select {
		case <-storm:
			over = true
		default:
		}
	}
	return c.create(ctx)
}

func (c *customer) pause(ctx context.Context) {
	select {
	case <-time.After(time.Duration(c.random.Int64N(int64(longestPause)))):
	case <-ctx.Done():
	}
}

func (c *customer) create(ctx context.Context) error { return c.put(ctx, "create") }
func (c *customer) change(ctx context.Context) error { return c.put(ctx, "change") }

func (c *customer) put(ctx context.Context, what string) error {
	port := firstPort + c.random.IntN(ports)
	for port == c.wish.Port {
		port = firstPort + c.random.IntN(ports)
	}
	return c.putPort(ctx, what, port)
}

// repeat says once more what is wanted.
func (c *customer) repeat(ctx context.Context) error { return c.putPort(ctx, "repeat", c.wish.Port) }

func (c *customer) putPort(ctx context.Context, what string, port int) error {
	body := fmt.Sprintf(`{"spec": {"provider": %q, "port": %d, "placement": {"region": "us-central1"}}}`,
		providerName, port)
	if err := c.insist(ctx, what, http.MethodPut, body, http.StatusOK, http.StatusCreated); err != nil {
		return err
	}
	c.wish.Living, c.wish.Port = true, port
	return nil
}

func (c *customer) remove(ctx context.Context) error {
	if err := c.insist(ctx, "delete", http.MethodDelete, "", http.StatusAccepted, http.StatusNoContent); err != nil {
		return err
	}
	c.wish.Living = false
	return nil
}

// insist asks until an API accepts, and each time another one. What is not accepted in the
// end stays in the wish.
func (c *customer) insist(ctx context.Context, what, method, body string, accepted ...int) error {
	c.said++
	key, begun := fmt.Sprintf("%s-%d", c.wish.Name, c.said), time.Now()
	c.wish.Open = what
	for try := 0; ; try++ {
		status, _, err := ask(ctx, request{
			Method: method, URL: "http://" + apiHost((c.n+try)%pairs) + ":8080/v1/namespaces/default/proxies/" + c.wish.Name,
			Body: body, Key: key,
		})
		// What is deleted once more and is not there: the answer to an earlier try was lost.
		if slices.Contains(accepted, status) || what == "delete" && try > 0 && status == http.StatusNotFound {
			c.wish.Open = ""
			c.w.accept(what, time.Since(begun))
			return nil
		}
		if hopeless(status) || time.Since(begun) > acceptWithin {
			return fmt.Errorf("%s of %s was not accepted within %s: %w", what, c.wish.Name,
				time.Since(begun).Round(time.Second), err)
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hopeless is an answer that no other try changes. A conflict is none: the proxy before is
// still being deleted.
func hopeless(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}
