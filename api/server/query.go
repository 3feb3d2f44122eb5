package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// longestWait bounds ?wait=.
const longestWait = time.Minute

// query is what a request wants of the list.
type query struct {
	format  discovery.Format
	keeps   func(v1.Endpoint) bool
	limit   int // 0: all
	shuffle bool
	// everything says that nothing but the format was asked for.
	everything bool
	// part names what was asked for; the zero one where the same question may have another
	// answer of the same list.
	part part
}

// wishes are the parameters that the routes of discovery have in common.
type wishes struct {
	Format, Namespace, Provider, Region, Zone, Labels, Healthy, For string
}

// queryOf checks what was asked for. What the token is not for is left out.
func queryOf(ctx context.Context, w wishes, limit int, shuffle bool, formats ...discovery.Format) (query, error) {
	q := query{format: discovery.JSON, limit: limit, shuffle: shuffle}
	if w.Format != "" {
		q.format = discovery.Format(w.Format)
	}
	if !slices.Contains(formats, q.format) {
		return q, oneOf("format", w.Format, formats)
	}
	f := discovery.Filter{
		Namespace: w.Namespace, Provider: w.Provider, Region: w.Region, Zone: w.Zone, Health: discovery.Health(w.Healthy),
	}
	if w.Healthy != "" && !slices.Contains(discovery.Healths(), f.Health) {
		return q, oneOf("healthy", w.Healthy, discovery.Healths())
	}
	var err error
	if f.Labels, err = selectorOf(w.Labels); err != nil {
		return q, err
	}
	grant := access.Of(ctx)
	w.Format = ""
	q.everything = w == wishes{} && limit == 0 && !shuffle && !grant.Restricted()
	if w.For == "" && !shuffle { // bans come and go, and every order is drawn
		q.part = partOf(q, w, grant)
	}
	q.keeps = func(e v1.Endpoint) bool { return f.Keeps(e) && grant.Sees(e.Namespace, e.Labels) }
	return q, nil
}

// render writes a part of the list. Its ETag is that of the order that the list has by
// itself: who asks for another order has a new one when there is news.
func (q query) render(part v1.Discovery) (discovery.Document, error) {
	if !q.shuffle {
		part.Proxies = discovery.First(part.Proxies, q.limit)
		return discovery.Render(q.format, part)
	}
	sorted, err := discovery.Render(q.format, part)
	if err != nil {
		return sorted, err
	}
	part.Proxies = discovery.First(discovery.Shuffled(part.Proxies), q.limit)
	document, err := discovery.Render(q.format, part)
	document.ETag = sorted.ETag
	return document, err
}

// selectorOf reads a label selector as Kubernetes writes them; empty selects everything.
func selectorOf(text string) (labels.Selector, error) {
	if text == "" {
		return labels.Everything(), nil
	}
	selector, err := labels.Parse(text)
	if err != nil || strings.Contains(text, "\x00") { // behind which it reads nothing
		return nil, &v1.FieldError{
			Field: "labels", Value: text,
			Problem: "is not a label selector, such as team=crawlers,tier in (gold, silver),!old",
		}
	}
	return selector, nil
}

// waitOf reads ?wait=; no value is no wait.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, &v1.FieldError{Field: "wait", Value: text, Problem: `is not a duration such as "30s"`}
	case wait < 0 || wait > longestWait:
		return 0, &v1.FieldError{Field: "wait", Value: text, Problem: "is not within 0s to " + longestWait.String()}
	default:
		return wait, nil
	}
}

func oneOf[S ~string](field, value string, of []S) error {
	names := make([]string, len(of))
	for i, name := range of {
		names[i] = string(name)
	}
	return &v1.FieldError{Field: field, Value: value, Problem: fmt.Sprintf("is not one of %s", strings.Join(names, ", "))}
}
