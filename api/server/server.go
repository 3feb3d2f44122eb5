// Package server is the HTTP front door: the routes of api/openapi.yaml, answers
// that name the field and the value, and the snapshot that discovery is served
// from. It imports api/v1, api/discovery, api/feedback, echo and the errors of starter/fleet, and
// knows nothing of Temporal or providers. Start reading at New, then handlers.go.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/feedback"
	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// Server answers for one fleet.
type Server struct {
	echo     *echo.Echo
	snapshot *snapshot
	clock    Clock
	log      *slog.Logger
	limits   Limits
	keys     Keys
	traces   trace.TracerProvider
	tls      *tls.Config
	feedback *feedback.Box
}

// New builds a server. It asks nobody anything before Run.
func New(fleet Fleet, opts Options) *Server {
	opts = opts.withDefaults()
	s := &Server{
		echo:     echo.New(),
		snapshot: &snapshot{fleet: fleet, clock: opts.Clock, log: opts.Logger, ending: make(chan struct{})},
		clock:    opts.Clock, log: opts.Logger, limits: opts.Limits, keys: opts.Keys, tls: opts.TLS, traces: opts.Traces,
	}
	if opts.Metrics != nil {
		opts.Metrics.MustRegister(s.snapshot)
	}
	s.feedback = feedback.New(fleet, feedback.Options{
		Policy: opts.Feedback, Metrics: opts.FeedbackMetrics, Logger: opts.Logger, Clock: opts.Clock,
	})
	s.echo.Binder = binder{limit: s.limits.BodyBytes}
	operated := handlers{
		fleet, s.snapshot, opts.Providers, &checks{fleet: fleet, clock: opts.Clock}, s.feedback, new(places),
	}
	people := &pages{
		handlers: operated, clock: s.clock, workflow: opts.WorkflowURL,
		collected: &collections{fleet: fleet, clock: s.clock},
	}
	s.echo.Use(s.trace, s.logRequest, s.bound, setHeaders, answerErrors, people.forPeople, s.authenticate)
	if opts.Codec != nil { // Temporal's own protocol, which is not ours to describe
		s.echo.Any("/codec/*", echo.WrapHandler(opts.Codec))
	}
	if s.keys != nil { // for browsers, which is not what the contract is about
		desk := newLogin(s.keys, s.clock)
		people.desk = desk
		s.echo.GET(loginPath, desk.show)
		s.echo.POST(loginPath, desk.enter)
		s.echo.POST("/logout", desk.leave)
	}
	s.echo.GET("/openapi.yaml", showContract, allow(access.ScopeDiscovery))
	s.echo.GET("/docs", showDocs, allow(access.ScopeDiscovery))
	people.register(s.echo)
	// Every other route is in the generated table.
	operations := openapi.NewStrictHandler(operated, nil)
	openapi.RegisterHandlersWithOptions(s.echo, operations,
		openapi.RegisterHandlersOptions{OperationMiddlewares: operationChecks()})
	return s
}

// Handler returns the routes. Discovery stays unknown until Run has loaded it.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.handOut(w, r) {
			return
		}
		if r.Method == http.MethodHead { // net/http leaves the body out by its own request
			r = r.WithContext(r.Context())
			r.Method = http.MethodGet
		}
		s.echo.ServeHTTP(w, r)
	})
}

// Run serves on the listener and keeps the snapshot fresh, both until ctx ends. Then
// it takes no new request, lets the running ones end and closes the listener. It
// returns nil after an orderly end.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	refreshing, stopRefreshing := context.WithCancel(context.WithoutCancel(ctx))
	var refreshed sync.WaitGroup
	asked := make(chan struct{})
	s.snapshot.after = asked
	refreshed.Go(func() { defer close(asked); s.feedback.Load(refreshing) })
	refreshed.Go(func() { s.snapshot.run(refreshing) })
	refreshed.Go(func() { s.feedback.Run(refreshing, s.snapshot.news.awaited) })
	if s.keys != nil {
		refreshed.Go(func() { s.followKeys(refreshing) })
	}
	defer func() {
		stopRefreshing()
		refreshed.Wait()
	}()
	server := s.httpServer()
	served := make(chan error, 1)
	go func() { served <- s.serve(server, listener) }()
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
		close(s.snapshot.ending)
		err := s.shutdown(context.WithoutCancel(ctx), server)
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}
}

func (s *Server) serve(server *http.Server, listener net.Listener) error {
	if s.tls == nil {
		return server.Serve(gathering{listener})
	}
	server.TLSConfig = s.tls.Clone()
	return server.ServeTLS(listener, "", "")
}

func (s *Server) shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Shutdown)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s.Handler(),
		ConnContext:       withGathers,
		ReadHeaderTimeout: s.limits.ReadHeader,
		ReadTimeout:       s.limits.Read,
		WriteTimeout:      s.limits.Write,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    s.limits.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // clients that break off
	}
}
