package shipped

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

const region = "us-central1"

// Cloud is the backend of the worker: a Compute Engine on loopback, in this process. It
// takes a second for what takes a minute there.
type Cloud struct {
	*gcefake.Server
	web *http.Server
}

// NewCloud serves one with room for so many instances, and for those that are still going
// while others take their place.
func NewCloud(ctx context.Context, room int) (*Cloud, error) {
	c := &Cloud{Server: gcefake.New(gcefake.Options{Pace: gcefake.Pace{
		Running: 200 * time.Millisecond, Staging: 300 * time.Millisecond, Retention: time.Minute,
	}})}
	for _, metric := range []string{"CPUS", "INSTANCES", "IN_USE_ADDRESSES", "DISKS_TOTAL_GB"} {
		c.SetQuota(gcefake.CapturedProject, region, metric, float64(room)*100)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.URL = "http://" + l.Addr().String()
	c.web = &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = c.web.Serve(l) }()
	return c, nil
}

// Close ends the backend.
func (c *Cloud) Close() error { return c.web.Close() }
