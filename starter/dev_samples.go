package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// samplesFile is where a person finds what the binary carries.
const samplesFile = "docs/samples/proxies.yaml"

// checkSamplePorts returns an error about every port of a sample that something
// listens on everywhere: no address would be left for the sample.
func checkSamplePorts(ctx context.Context, file string, proxies []v1.Proxy) error {
	var faults []error
	for _, p := range proxies {
		at := net.JoinHostPort(nobodys, strconv.Itoa(p.Spec.Port))
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", at)
		if err == nil {
			_ = l.Close()
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			faults = append(faults, fmt.Errorf(
				"port %d for the proxy %s (spec.port in %s) is in use on every address: stop what uses it (%w)",
				p.Spec.Port, p.Metadata.Name, file, err))
		}
	}
	return errors.Join(faults...)
}

// nobodys is a loopback address that no instance has. Where the machine lacks it, a
// wildcard listener is in nobody's way.
const nobodys = "127.255.255.254"

// applySamples makes the sample proxies wanted; for those that a former run left,
// it changes nothing.
func (r *devRun) applySamples(ctx context.Context) error {
	proxies, err := r.settings.sampleProxies()
	if err != nil {
		return err
	}
	c, err := r.dialServer(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	client := fleet.New(c, devInstallation, fleet.WithDataConverter(r.keys.DataConverter()))
	for _, p := range proxies {
		err := r.applySample(ctx, client, p)
		if err == nil {
			err = retrySample(ctx, client, p.Metadata)
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err)
		}
	}
	return nil
}

// retrySample does not wait for the next attempt of what failed in a former run: what
// stood against it may be mended.
func retrySample(ctx context.Context, client *fleet.Client, m v1.Metadata) error {
	p, err := client.Get(ctx, m.Namespace, m.Name)
	if err == nil && p.Status.Phase != v1.PhaseRunning && !p.Status.NextAttemptAt.IsZero() {
		_, err = client.Retry(ctx, m.Namespace, m.Name, "make run", fleet.Request{})
	}
	return err
}

// applySample tries again while the worker is not there yet, and while a proxy of
// that name is being deleted.
func (r *devRun) applySample(ctx context.Context, f Fleet, p v1.Proxy) error {
	var final error
	err := until(ctx, func(ctx context.Context) error {
		_, _, err := r.applyOne(ctx, f, p)
		if errors.Is(err, fleet.ErrUnavailable) || errors.Is(err, fleet.ErrConflict) {
			return err
		}
		final = err
		return nil
	})
	return errors.Join(err, final)
}

// waitSamples returns once the API shows every sample running, and a request went
// through each.
func (r *devRun) waitSamples(ctx context.Context) error {
	proxies, err := r.settings.sampleProxies()
	if err != nil {
		return err
	}
	for _, p := range proxies {
		shown := ""
		var vain error
		if err := until(ctx, func(ctx context.Context) error {
			now, err := r.api().proxy(ctx, p.Metadata.Namespace, p.Metadata.Name)
			if err != nil {
				return err
			}
			if line := progress(now); line != shown {
				r.say("  %s", line)
				shown = line
			}
			if vain = inVain(now); vain != nil {
				return nil
			}
			return r.carries(ctx, now)
		}); err != nil || vain != nil {
			return errors.Join(err, vain)
		}
	}
	return nil
}

// progress is where a proxy is, in one line.
func progress(p v1.Proxy) string {
	line := p.Metadata.Namespace + "/" + p.Metadata.Name + ": " + string(p.Status.Phase)
	if why := reason(p); why != "" {
		line += " (" + why + ")"
	}
	if at := address(p); at != "" {
		line += " at " + at
	}
	if c, ok := p.Status.Condition(v1.ConditionProvisioned); ok && c.Status != v1.ConditionTrue &&
		c.Reason != v1.ReasonProvisioning && c.Message != "" {
		line += ": " + strings.Join(strings.Fields(c.Message), " ")
	}
	return line
}

// inVain returns an error about a proxy that no waiting brings up: it is blocked, or
// its next attempt is minutes away. An attempt that is due, from a former run, counts
// as waiting.
func inVain(p v1.Proxy) error {
	c, _ := p.Status.Condition(v1.ConditionProvisioned)
	failed := p.Status.Phase == v1.PhaseBlocked || c.Reason == v1.ReasonPermanentError ||
		c.Reason == v1.ReasonQuotaExceeded
	if !failed || !time.Now().Before(p.Status.NextAttemptAt) {
		return nil
	}
	return fmt.Errorf("%s; once that is mended, \"make run\" tries anew", progress(p))
}

// carries returns nil when the proxy runs, a request to the API came back through it,
// and discovery lists it: what a crawler asks next has to be there.
func (r *devRun) carries(ctx context.Context, p v1.Proxy) error {
	if p.Status.Phase != v1.PhaseRunning {
		return errors.New(progress(p))
	}
	via := &url.URL{Scheme: "http", Host: address(p)}
	if _, err := r.api().through(via).get(ctx, "/healthz"); err != nil {
		return fmt.Errorf("through %s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err)
	}
	listed, err := r.api().get(ctx, "/v1/discovery?format=txt")
	if err == nil && !slices.Contains(strings.Fields(string(listed)), via.String()) {
		err = fmt.Errorf("%s/%s: discovery does not list %s yet", p.Metadata.Namespace, p.Metadata.Name, via)
	}
	return err
}

// devAPI asks the API of this run.
type devAPI struct {
	base string
	via  *url.URL // a proxy; nil goes straight, whatever the environment says
}

func (r *devRun) api() devAPI { return devAPI{base: "http://" + r.settings.api.address()} }

func (a devAPI) through(via *url.URL) devAPI { return devAPI{a.base, via} }

func (a devAPI) ready(ctx context.Context) error {
	_, err := a.get(ctx, "/readyz")
	return err
}

func (a devAPI) proxy(ctx context.Context, namespace, name string) (p v1.Proxy, _ error) {
	text, err := a.get(ctx, "/v1/namespaces/"+namespace+"/proxies/"+name)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}

func (a devAPI) get(ctx context.Context, path string) ([]byte, error) {
	const most = 1 << 20 // bytes of an answer
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	// A new connection each time: what is asked may have been replaced.
	transport := &http.Transport{Proxy: http.ProxyURL(a.via), DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	return text, err
}
