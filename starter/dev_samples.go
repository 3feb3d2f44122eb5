package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/docs/samples"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// applySamples makes the sample proxies wanted; for those that a former run left,
// it changes nothing.
func (r *devRun) applySamples(ctx context.Context) error {
	proxies, err := sampleProxies()
	if err != nil {
		return err
	}
	c, err := r.dialServer(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, p := range proxies {
		if err := r.applySample(ctx, fleet.New(c, devInstallation), p); err != nil {
			return fmt.Errorf("%s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err)
		}
	}
	return nil
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

func sampleProxies() ([]v1.Proxy, error) {
	return DecodeProxies("docs/samples/proxies.yaml", bytes.NewReader(samples.Proxies), "default")
}

// waitSamples returns once the API shows every sample running, and a request went
// through each.
func (r *devRun) waitSamples(ctx context.Context) error {
	proxies, err := sampleProxies()
	if err != nil {
		return err
	}
	for _, p := range proxies {
		shown := ""
		if err := until(ctx, func(ctx context.Context) error {
			now, err := r.api().proxy(ctx, p.Metadata.Namespace, p.Metadata.Name)
			if err != nil {
				return err
			}
			if line := progress(now); line != shown {
				r.say("  %s", line)
				shown = line
			}
			return r.carries(ctx, now)
		}); err != nil {
			return err
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
	return line
}

// carries returns nil when the proxy runs and a request to the API came back
// through it.
func (r *devRun) carries(ctx context.Context, p v1.Proxy) error {
	if p.Status.Phase != v1.PhaseRunning {
		return errors.New(progress(p))
	}
	via := &url.URL{Scheme: "http", Host: address(p)}
	if _, err := r.api().through(via).get(ctx, "/healthz"); err != nil {
		return fmt.Errorf("through %s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err)
	}
	return nil
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
