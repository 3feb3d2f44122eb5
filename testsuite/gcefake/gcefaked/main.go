// Command gcefaked serves a Compute Engine that can be broken on loopback, for a
// provider of type gcp whose endpoint it is. POST /admin/<trouble> breaks it; admin says
// how. With -guests each instance that runs is a forward proxy on loopback, by guests.go.
// It imports gcefake, and of providers what a guest is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "host:port to listen on")
	project := flag.String("project", gcefake.CapturedProject, "the project that it has")
	task := flag.Duration("task", 2*time.Second, "how long an operation takes, and each state of an instance")
	serve := flag.Bool("guests", false, "give instances addresses of loopback, and run a forward proxy in each")
	flag.Parse()
	s := gcefake.New(gcefake.Options{Projects: []string{*project}, Pace: gcefake.Pace{
		Pending: *task / 4, Running: *task, Provisioning: *task / 2, Staging: *task / 2,
		Stopping: *task, Deprovisioning: *task / 2,
	}})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := run(ctx, s, *listen, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "gcefaked:", err)
		stop()
		os.Exit(1)
	}
	stop()
}

// run serves until ctx ends, and returns once the guests are gone, too.
func run(ctx context.Context, s *gcefake.Server, at string, serve bool) error {
	ctx, stop := context.WithCancel(ctx)
	var inside sync.WaitGroup
	defer inside.Wait()
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return err
	}
	if serve {
		inside.Go(func() { newGuests(s, os.Stdout).live(ctx) })
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.Handle("POST /admin/{trouble}", admin(s))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	fmt.Println("Compute Engine on http://" + l.Addr().String())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// admin breaks the server: stockout?zone=, cut?zone=, preempt?zone=&name=,
// late?failure= with a captured failure as op-quota, answer?method=&case= with a captured
// answer as get-429, both once; heal ends all of it.
func admin(s *gcefake.Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() { // a name that nobody captured
			if why := recover(); why != nil {
				http.Error(w, fmt.Sprint(why), http.StatusBadRequest)
			}
		}()
		value := r.URL.Query().Get
		switch trouble := r.PathValue("trouble"); trouble {
		case "stockout":
			s.Zone(value("zone")).Stockout(gcefake.SoldOutLate)
		case "cut":
			s.Zone(value("zone")).CutOff()
		case "preempt":
			s.Instance(gcefake.Place{Zone: value("zone"), Name: value("name")}).Preempt()
		case "late":
			s.FailLate(gcefake.Late{Times: 1, Failure: gcefake.Failed(value("failure"), "", "", "")})
		case "answer":
			s.Inject(gcefake.Fault{Method: value("method"), Times: 1, Answer: gcefake.Captured(value("case"))})
		case "heal":
			s.Heal()
		default:
			http.Error(w, "no such trouble: "+trouble, http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
