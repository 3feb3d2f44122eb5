package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
	"github.com/egressfleet/egressfleet/api/server/openapi"
)

const (
	eventsPath = "/v1/discovery/events"
	// beatEvery is between two comments, which keep what stands in between from hanging up.
	beatEvery = 15 * time.Second
	// writeWithin bounds one event to a client that does not read.
	writeWithin = 10 * time.Second
)

// WatchDiscovery tells a client of every change, until one of both ends.
func (h handlers) WatchDiscovery(
	ctx context.Context, r openapi.WatchDiscoveryRequestObject,
) (openapi.WatchDiscoveryResponseObject, error) {
	p := r.Params
	w := wishes{"", p.Namespace, p.Provider, p.Region, p.Zone, p.Labels, string(p.Healthy), p.For}
	q, err := h.queryOf(ctx, w, 0, false, discovery.JSON)
	if err != nil {
		return nil, err
	}
	leave, err := h.snapshot.news.take(ctx)
	if err != nil {
		return nil, err
	}
	known := ""
	if p.LastEventID != nil {
		known = *p.LastEventID
	}
	return events{ctx, h.snapshot, q, known, leave}, nil
}

// events is a 200 that goes on.
type events struct {
	ctx      context.Context //nolint:containedctx // of the one request that it answers
	snapshot *snapshot
	query    query
	known    string // the ETag that the client has
	leave    func() // gives its place back
}

// VisitWatchDiscoveryResponse writes until the client, the server, the token or its
// session ends.
func (e events) VisitWatchDiscoveryResponse(w http.ResponseWriter) error {
	defer e.leave()
	beats, stop := e.snapshot.clock.Ticker(beatEvery)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the events
	w.WriteHeader(http.StatusOK)
	out := stream{w, http.NewResponseController(w)}
	if err := out.send(": egressfleet\n\n"); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	for {
		next := e.snapshot.news.wait()
		if err := e.tell(out); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		select {
		case <-next:
		case <-beats:
			if err := out.send(": still here\n\n"); err != nil {
				return nil //nolint:nilerr // the client has gone
			}
		case <-e.snapshot.ending:
			return nil
		case <-access.Of(e.ctx).Over():
			return nil
		case <-e.ctx.Done():
			return nil
		}
	}
}

// tell sends the list, where it is news. While it is unknown the client keeps what it has.
func (e *events) tell(out stream) error {
	document, _, err := e.snapshot.document(e.query)
	if unknown := (*problem)(nil); errors.As(err, &unknown) || err == nil && document.ETag == e.known {
		return nil
	}
	if err != nil {
		return err
	}
	e.known = document.ETag
	return out.send(fmt.Sprintf("event: discovery\nid: %s\ndata: %s\n", document.ETag, document.Body)) // which ends a line
}

// stream writes to a client that may not read.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) send(text string) error {
	err := s.control.SetWriteDeadline(time.Now().Add(writeWithin))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}
