package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const discoveryPath = "/v1/discovery"

// GetDiscovery answers from the snapshot, at once or when there is news.
func (h handlers) GetDiscovery(
	ctx context.Context, r openapi.GetDiscoveryRequestObject,
) (openapi.GetDiscoveryResponseObject, error) {
	p := r.Params
	w := wishes{"", p.Namespace, p.Provider, p.Region, p.Zone, p.Labels, string(p.Healthy), p.For}
	if p.Format != nil {
		w.Format = string(*p.Format)
		if w.Format == "" {
			return nil, oneOf("format", "", discovery.Formats())
		}
	}
	q, err := h.queryOf(ctx, w, p.Limit, p.Shuffle, discovery.Formats()...)
	if err != nil {
		return nil, err
	}
	patience, err := waitOf(p.Wait)
	if err != nil {
		return nil, err
	}
	document, age, err := h.snapshot.document(q)
	if err == nil && patience > 0 && p.IfNoneMatch != nil && matches(*p.IfNoneMatch, document.ETag) {
		document, age, err = h.snapshot.await(ctx, q, *p.IfNoneMatch, patience)
	}
	if err != nil {
		return nil, err
	}
	return discoveryResponse{document, age, p.IfNoneMatch, gathersOf(ctx)}, nil
}

// await returns the list when it is another one than a client knows, or as it is when
// the time is over.
func (s *snapshot) await(
	ctx context.Context, q query, known string, patience time.Duration,
) (document discovery.Document, age time.Duration, err error) {
	leave, err := s.news.take(ctx)
	if err != nil {
		return document, 0, err
	}
	defer leave()
	late, stop := s.clock.Ticker(patience)
	defer stop()
	for {
		next := s.news.wait()
		document, age, err = s.document(q)
		if err != nil || !matches(known, document.ETag) {
			return document, age, err
		}
		select {
		case <-next:
		case <-late:
			return document, age, nil
		case <-s.ending:
			return document, age, nil
		case <-access.Of(ctx).Over():
			return document, age, over(access.Of(ctx))
		case <-ctx.Done():
			return document, age, ctx.Err()
		}
	}
}

// PickProxy gives one proxy.
func (h handlers) PickProxy(
	ctx context.Context, r openapi.PickProxyRequestObject,
) (openapi.PickProxyResponseObject, error) {
	p := r.Params
	w := wishes{string(p.Format), p.Namespace, p.Provider, p.Region, p.Zone, p.Labels, string(p.Healthy), p.For}
	q, err := h.queryOf(ctx, w, 0, false, discovery.JSON, discovery.Text)
	if err != nil {
		return nil, err
	}
	last, age, stale, err := h.snapshot.current()
	if err != nil {
		return nil, err
	}
	picked := discovery.Pick(discovery.Part(last.endpoints, q.keeps), p.Sticky)
	answer := v1.Pick{Version: v1.DiscoveryVersion, GeneratedAt: last.at.UTC(), Stale: stale, Proxy: picked}
	if stale {
		answer.AgeSeconds = int(age.Seconds())
	}
	return pickResponse{answer, q.format, age}, nil
}

// pickResponse is a 200.
type pickResponse struct {
	answer v1.Pick
	format discovery.Format
	age    time.Duration
}

// VisitPickProxyResponse writes the answer. No cache may give one client's proxy to another.
func (p pickResponse) VisitPickProxyResponse(w http.ResponseWriter) error {
	w.Header().Set("Age", strconv.Itoa(int(p.age.Seconds())))
	if p.format == discovery.Text {
		w.Header().Set(echo.HeaderContentType, echo.MIMETextPlainCharsetUTF8)
		w.WriteHeader(http.StatusOK)
		if p.answer.Proxy == nil {
			return nil
		}
		_, err := w.Write([]byte(p.answer.Proxy.URL + "\n"))
		return err
	}
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	return json.NewEncoder(w).Encode(p.answer)
}

// discoveryResponse is a 200 or a 304, written from bytes that are already there.
type discoveryResponse struct {
	document discovery.Document
	age      time.Duration
	known    *string  // If-None-Match
	gathers  *gathers // nil: the connection cannot
}

// cached is for a cache: it asks again, with the ETag, and keeps it for this client alone.
const cached = "private, no-cache"

// VisitGetDiscoveryResponse writes the answer. The names are as net/http has them, so that
// nothing is looked up for a header that every crawler is sent all the time.
func (d discoveryResponse) VisitGetDiscoveryResponse(w http.ResponseWriter) error {
	header, of := w.Header(), [...]string{
		d.document.ETag, strconv.Itoa(int(d.age.Seconds())), cached,
		d.document.ContentType, strconv.Itoa(len(d.document.Body)),
	}
	header["Etag"], header["Age"], header[echo.HeaderCacheControl] = of[0:1:1], of[1:2:2], of[2:3:3]
	if d.known != nil && matches(*d.known, d.document.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header[echo.HeaderContentType], header[echo.HeaderContentLength] = of[3:4:4], of[4:5:5]
	w.WriteHeader(http.StatusOK)
	return d.gathers.write(w, d.document.Body)
}

// matches compares weakly, as RFC 9110 wants it for If-None-Match.
func matches(known, etag string) bool {
	if known == etag { // as nearly every client sends it
		return true
	}
	for one := range strings.SplitSeq(known, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}
