package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
)

// Refresh loads the snapshot as a tick does.
func (s *Server) Refresh(ctx context.Context) { s.snapshot.refresh(ctx) }

// Routes lists what is served.
func (s *Server) Routes() []*echo.Route { return s.echo.Routes() }

// QueryParameters are the names that each operation takes.
func QueryParameters() map[string][]string { return queryParameters }

// HTTPServer is what Run serves with.
func (s *Server) HTTPServer() *http.Server { return s.httpServer() }
