package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// proxyAnswer is a Proxy as every route about one answers with it.
type proxyAnswer struct {
	status   int
	proxy    v1.Proxy
	location string // of a new one
}

func (a proxyAnswer) write(w http.ResponseWriter) error {
	header := w.Header()
	if a.location != "" {
		header.Set(echo.HeaderLocation, a.location)
	}
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return nil
	}
	header.Set("ETag", etagOf(a.proxy))
	header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(a.status)
	return json.NewEncoder(w).Encode(redacted(a.proxy))
}

// Each Visit… writes the answer of one operation.

func (a proxyAnswer) VisitGetProxyResponse(w http.ResponseWriter) error     { return a.write(w) }
func (a proxyAnswer) VisitApplyProxyResponse(w http.ResponseWriter) error   { return a.write(w) }
func (a proxyAnswer) VisitDeleteProxyResponse(w http.ResponseWriter) error  { return a.write(w) }
func (a proxyAnswer) VisitReplaceProxyResponse(w http.ResponseWriter) error { return a.write(w) }
func (a proxyAnswer) VisitRetryProxyResponse(w http.ResponseWriter) error   { return a.write(w) }
func (a proxyAnswer) VisitHoldProxyResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a proxyAnswer) VisitResumeProxyResponse(w http.ResponseWriter) error  { return a.write(w) }

// etagOf names the spec of a Proxy: its status changes without it.
func etagOf(p v1.Proxy) string { return strconv.Quote(strconv.FormatInt(p.Metadata.Generation, 10)) }

var generationTag = regexp.MustCompile(`^"([1-9][0-9]{0,17})"$`)

// expected reads If-Match: a generation that this server gave as an ETag.
func expected(tag *string) (generation int64, err error) {
	if tag == nil {
		return 0, nil
	}
	found := generationTag.FindStringSubmatch(*tag)
	if found == nil {
		return 0, &v1.FieldError{
			Field: ifMatch, Value: *tag, Problem: `is not the ETag of one Proxy, its generation in quotes: "3"`,
		}
	}
	return strconv.ParseInt(found[1], 10, 64)
}

// unmatched turns "there is no such Proxy" into what If-Match makes of it.
func unmatched(asked fleet.Request, err error) error {
	if asked.IfGeneration > 0 && errors.Is(err, fleet.ErrNotFound) {
		return &problem{kind: preconditionFailed, detail: ifMatch + ": there is no such Proxy, or it is gone"}
	}
	return err
}

// lookEvery is between two looks at a Proxy that somebody waits for.
const lookEvery = 500 * time.Millisecond

// settled waits until a Proxy runs as it is wanted, or is gone, or the time is over, and
// then answers with what is there; a status of 204 says that it is gone. Where too many
// wait, it is answered at once: what was asked for stands, and is not to be asked again.
func (h handlers) settled(ctx context.Context, text string, a proxyAnswer) (proxyAnswer, error) {
	patience, err := waitOf(text)
	if err != nil || patience == 0 {
		return a, err
	}
	leave, full := h.waits.take(ctx)
	if full != nil {
		return a, nil
	}
	defer leave()
	late, stop := h.snapshot.clock.Ticker(patience)
	defer stop()
	looks, stopLooking := h.snapshot.clock.Ticker(lookEvery)
	defer stopLooking()
	for !runs(a.proxy) {
		select {
		case <-looks:
		case <-late:
			return a, nil
		case <-access.Of(ctx).Over():
			return a, nil
		case <-h.snapshot.ending:
			return a, nil
		case <-ctx.Done():
			return a, nil // what was asked for stands, and this is its answer
		}
		now, err := h.fleet.Get(ctx, a.proxy.Metadata.Namespace, a.proxy.Metadata.Name)
		switch {
		case errors.Is(err, fleet.ErrNotFound):
			return proxyAnswer{status: http.StatusNoContent}, nil
		case err == nil: // otherwise the next look may tell
			a.proxy = now
		}
	}
	return a, nil
}

// runs reports whether a Proxy is what its spec says.
func runs(p v1.Proxy) bool {
	return p.Status.Phase == v1.PhaseRunning && p.Status.ObservedGeneration >= p.Metadata.Generation
}
