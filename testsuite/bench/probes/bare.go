package probes

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// bare is the baseline: one goroutine for each proxy, which does on the wire what a probe
// does, with nothing around it. It fails where one of them does.
func bare(ctx context.Context, proxies []v1.Proxy, target probe.Target, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, p := range proxies {
		address := net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))
		group.Go(func() error { return connect(ctx, address, target) })
	}
	return group.Wait()
}

// connect asks one proxy for the target, verifies that, and asks it one thing.
func connect(ctx context.Context, address string, target probe.Target) error {
	const within = 30 * time.Second
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target.Address()); err != nil {
		return err
	}
	if err := answered(bufio.NewReader(conn), http.MethodConnect); err != nil {
		return err
	}
	secure := tls.Client(conn, &tls.Config{
		ServerName: target.Host, RootCAs: target.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	_, err = fmt.Fprintf(secure, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target.Address())
	if err != nil {
		return err
	}
	return answered(bufio.NewReader(secure), http.MethodGet)
}

func answered(from *bufio.Reader, method string) error {
	//nolint:bodyclose // a tunnel has none, and the other one ends with its connection
	answer, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", method, answer.Status)
	}
	if method == http.MethodConnect {
		return nil
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
