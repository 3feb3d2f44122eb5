package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/pprof"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/telemetry"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
)

// Serve is the argument with which the command is the server of the part discovery.
const Serve = "serve-discovery"

// ServeMain serves the API over so many proxies until ctx ends or its input does. Its
// first line is the address.
func ServeMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet(Serve, flag.ContinueOnError)
	size := flags.Int("size", 0, "how many proxies there are")
	profile := flags.String("profile", "", "the file for the profile of the processor")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop, err := profiling(*profile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }() // it ends with its parent
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	memos, err := memosOf(stage.Proxies(*size))
	if err != nil {
		return err
	}
	// As the worker composes it: debug lines are not written.
	log := telemetry.NewLogger(io.Discard, slog.LevelInfo, false)
	options := server.Options{Logger: log, Metrics: prometheus.NewRegistry()}
	s := server.New(memos, options) //nolint:contextcheck // every request has its own
	_, _ = fmt.Fprintln(out, l.Addr())
	return errors.Join(s.Run(ctx, l), stop())
}

func profiling(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path) //nolint:gosec // where the caller says
	if err != nil {
		return nil, err
	}
	return func() error { pprof.StopCPUProfile(); return file.Close() }, pprof.StartCPUProfile(file)
}

// memos is a fleet that only lists: proxies as Visibility has them, which are decoded for
// every list as those of a real one are.
type memos struct {
	server.Fleet
	raw [][]byte
}

func memosOf(proxies []v1.Proxy) (m memos, err error) {
	for _, p := range proxies {
		raw, err := json.Marshal(p)
		if err != nil {
			return m, err
		}
		m.raw = append(m.raw, raw)
	}
	return m, nil
}

// Follow decodes all of them, as where each of them has changed.
func (m memos) Follow(context.Context) (living fleet.Living, _ error) {
	living.Proxies = make([]v1.Proxy, len(m.raw))
	for i, raw := range m.raw {
		if err := json.Unmarshal(raw, &living.Proxies[i]); err != nil {
			return living, err
		}
	}
	return living, nil
}

// Bans has none.
func (memos) Bans(context.Context, int64) (fleet.Bans, error) { return fleet.Bans{}, nil }

// SendFeedback is never called: nobody reports.
func (memos) SendFeedback(context.Context, fleet.FeedbackBatch) error { return nil }
