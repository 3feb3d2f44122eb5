package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// GetDiscovery answers from the snapshot.
func (h handlers) GetDiscovery(
	ctx context.Context, r openapi.GetDiscoveryRequestObject,
) (openapi.GetDiscoveryResponseObject, error) {
	format := discovery.JSON
	if r.Params.Format != nil {
		format = discovery.Format(*r.Params.Format)
	}
	if !slices.Contains(discovery.Formats(), format) {
		return nil, &v1.FieldError{
			Field: "format", Value: string(format),
			Problem: "is not one of " + formatNames(),
		}
	}
	var keep func(v1.Endpoint) bool
	if grant := access.Of(ctx); grant.Restricted() {
		keep = func(e v1.Endpoint) bool { return grant.Sees(e.Namespace, e.Labels) }
	}
	document, age, err := h.snapshot.document(format, keep)
	if err != nil {
		return nil, err
	}
	return discoveryResponse{document, age, r.Params.IfNoneMatch}, nil
}

func formatNames() string {
	var names []string
	for _, format := range discovery.Formats() {
		names = append(names, string(format))
	}
	return strings.Join(names, ", ")
}

// discoveryResponse is a 200 or a 304, written from bytes that are already there.
type discoveryResponse struct {
	document discovery.Document
	age      time.Duration
	known    *string // If-None-Match
}

// VisitGetDiscoveryResponse writes the answer.
func (d discoveryResponse) VisitGetDiscoveryResponse(w http.ResponseWriter) error {
	header := w.Header()
	header.Set("ETag", d.document.ETag)
	header.Set("Age", strconv.Itoa(int(d.age.Seconds())))
	header.Set(echo.HeaderCacheControl, "no-cache") // a cache asks again, with the ETag
	if d.known != nil && matches(*d.known, d.document.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header.Set(echo.HeaderContentType, d.document.ContentType)
	header.Set(echo.HeaderContentLength, strconv.Itoa(len(d.document.Body)))
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(d.document.Body)
	return err
}

// matches compares weakly, as RFC 9110 wants it for If-None-Match.
func matches(known, etag string) bool {
	for one := range strings.SplitSeq(known, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}
