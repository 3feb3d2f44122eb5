// Package discovery measures what answers discovery: how fast the list is handed out,
// beside an nginx that serves the same bytes from a file, and what a refresh of the list
// costs. It may import every room. Start reading at Part; refresh.go is the second one.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/load"
)

const (
	most = 10_000
	// connections ask at once, each again as soon as it is answered.
	connections = 8
	// Each server is asked the same thing for so long, so many times in one run.
	lasting = 500 * time.Millisecond
	turns   = 4
	percent = 99
	// generator is what asking takes, of this process, while ours answers and while nginx does.
	generator = "generator"
	// cpu is what a server takes for a request, its refreshes of the list with it. Other work
	// on the machine changes it little.
	cpu = " cpu per request"
)

// ask is one kind of request, to both servers.
type ask struct {
	name, path, file string
	known            bool // with the ETag of what is there
}

// asks are all kinds.
var asks = []ask{
	{"json", "/v1/discovery", "json", false},
	{"txt", "/v1/discovery?format=txt", "txt", false},
	{"json 304", "/v1/discovery", "json", true},
	{"txt 304", "/v1/discovery?format=txt", "txt", true},
}

// Part asks for the whole list, and for it with the ETag that the client has.
func Part() frame.Part {
	p := frame.Part{
		Name: "discovery", About: "requests a second and their 99th percentile, beside nginx with the same bytes",
		Sizes: []int{100, 1000, most}, Open: open,
	}
	for _, a := range asks {
		must := frame.RatioAtLeast(0.7)
		if a.known {
			must = frame.RatioAtLeast(0.4)
		}
		p.Figures = append(p.Figures,
			frame.Figure{Name: a.name, Unit: "1/s", Must: must, At: most}, frame.Figure{Name: a.name + " p99", Unit: "ms"},
			frame.Figure{Name: a.name + cpu, Unit: "us"})
	}
	p.Figures = append(p.Figures, frame.Figure{Name: generator, Unit: "cores"})
	return p
}

// scene is both servers.
type scene struct {
	nginx *nginx
	own   *own
	tags  map[string]string // what each answers with, by address and path
}

func open(ctx context.Context, size int) (frame.Scene, error) {
	own, err := newOwn(ctx, size)
	if err != nil {
		return frame.Scene{}, err
	}
	s := &scene{own: own, tags: map[string]string{}}
	files := map[string][]byte{}
	for _, a := range asks {
		if files[a.file], err = s.look(ctx, own.address, a.path); err != nil {
			return frame.Scene{}, errors.Join(err, s.close())
		}
	}
	if s.nginx, err = newNginx(ctx, files); err != nil {
		return frame.Scene{}, errors.Join(err, s.close())
	}
	for _, a := range asks {
		body, err := s.look(ctx, s.nginx.address, "/"+a.file)
		if err == nil && len(body) != len(files[a.file]) {
			err = fmt.Errorf("nginx serves %d bytes of %s, and not %d", len(body), a.file, len(files[a.file]))
		}
		if err != nil {
			return frame.Scene{}, errors.Join(err, s.close())
		}
	}
	return frame.Scene{Run: s.run, Close: s.close}, nil
}

func (s *scene) close() error {
	var err error
	if s.nginx != nil {
		err = s.nginx.close()
	}
	return errors.Join(err, s.own.close())
}

// look fetches a body, and keeps its ETag.
func (s *scene) look(ctx context.Context, address, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET http://%s%s: %s: %.200s", address, path, answer.Status, body)
	}
	s.tags[address+path] = answer.Header.Get("ETag")
	return body, err
}

func (s *scene) run(ctx context.Context, _ int) (frame.Samples, error) {
	samples := frame.Samples{}
	var nginx, own series // of all kinds, for what the generator itself takes
	for _, a := range asks {
		var base, value series
		for turn := range turns {
			err := frame.Turns(turn,
				func() error { return base.add(ctx, s.load(a, s.nginx.address, "/"+a.file), s.nginx.spent) },
				func() error { return value.add(ctx, s.load(a, s.own.address, a.path), s.own.spent) })
			if err != nil {
				return nil, err
			}
		}
		samples[a.name] = frame.Sample{Value: value.rate(), Baseline: base.rate()}
		samples[a.name+" p99"] = frame.Sample{Value: value.p99(), Baseline: base.p99()}
		samples[a.name+cpu] = frame.Sample{Value: value.each(), Baseline: base.each()}
		nginx.took, nginx.cores = nginx.took+base.took, nginx.cores+base.cores
		own.took, own.cores = own.took+value.took, own.cores+value.cores
	}
	samples[generator] = frame.Sample{Value: own.cores / own.took, Baseline: nginx.cores / nginx.took}
	return samples, nil
}

// load is what one server is asked.
func (s *scene) load(a ask, address, path string) load.Load {
	l := load.Load{Address: address, Path: path, Want: http.StatusOK, Connections: connections, For: lasting}
	if a.known {
		l.Want, l.Header = http.StatusNotModified, "If-None-Match: "+s.tags[address+path]+"\r\n"
	}
	return l
}

// series is what some turns of one load came to.
type series struct {
	times       []float64 // of each request, in seconds
	took, cores float64   // seconds: of all turns, and of the processors that the generator took
	server      time.Duration
}

func (s *series) add(ctx context.Context, l load.Load, server func() (time.Duration, error)) error {
	before := spent()
	begun, err := server()
	if err != nil {
		return err
	}
	o, err := l.Run(ctx)
	s.times, s.took, s.cores = append(s.times, o.Times...), s.took+o.Took, s.cores+spent()-before
	ended, fault := server()
	s.server += ended - begun
	return errors.Join(err, fault)
}

// each is what the server took for a request, in microseconds.
func (s *series) each() float64 { return float64(s.server.Microseconds()) / float64(len(s.times)) }

func (s *series) rate() float64 { return float64(len(s.times)) / s.took }

// p99 is in milliseconds.
func (s *series) p99() float64 {
	return frame.Percentile(s.times, percent) * float64(time.Second/time.Millisecond)
}

// spent are the seconds of processors that this process has used.
func spent() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
