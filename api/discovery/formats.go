package discovery

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// The formats.
const (
	JSON       Format = "json"       // the v1.Discovery document
	Text       Format = "txt"        // one http://ip:port a line, as rotating-proxy middlewares read it
	Prometheus Format = "prometheus" // HTTP service discovery
	PAC        Format = "pac"        // a proxy auto-configuration script
	CSV        Format = "csv"        // with a header
	Env        Format = "env"        // HTTPS_PROXY= and so on, of the first proxy
)

var renderers = map[Format]renderer{
	JSON:       {"application/json", renderJSON},
	Text:       {"text/plain; charset=utf-8", always(renderText)},
	Prometheus: {"application/json", always(renderPrometheus)},
	PAC:        {"application/x-ns-proxy-autoconfig", always(renderPAC)},
	CSV:        {"text/csv; charset=utf-8; header=present", always(renderCSV)},
	Env:        {"text/plain; charset=utf-8", always(renderEnv)},
}

// renderJSON writes the proxies once, since they are what takes long, and around them the
// list as it is and as it would be without its times.
func renderJSON(list v1.Discovery) (body, timeless []byte, err error) {
	if list.Proxies == nil {
		list.Proxies = []v1.Endpoint{} // clients range over it; null breaks some
	}
	proxies, err := json.Marshal(list.Proxies)
	if err != nil {
		return nil, nil, err
	}
	list.Version, list.GeneratedAt, list.Proxies = v1.DiscoveryVersion, list.GeneratedAt.UTC(), []v1.Endpoint{}
	if body, err = around(proxies, list); err != nil {
		return nil, nil, err
	}
	list.GeneratedAt, list.AgeSeconds = time.Time{}, 0
	timeless, err = around(proxies, list)
	return body, timeless, err
}

// around writes a list that has no proxies with those, which are its last field.
func around(proxies []byte, list v1.Discovery) ([]byte, error) {
	head, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	const none, end = "[]}", "}\n"
	head, empty := bytes.CutSuffix(head, []byte(none))
	if !empty {
		return nil, fmt.Errorf("the proxies are not the last field: %s", head)
	}
	return slices.Concat(head, proxies, []byte(end)), nil
}

func renderText(list v1.Discovery) ([]byte, error) {
	var out bytes.Buffer
	for _, endpoint := range list.Proxies {
		out.WriteString(endpoint.URL + "\n")
	}
	return out.Bytes(), nil
}

// group is a target as Prometheus reads it: prometheus.io, "HTTP SD".
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

var notInLabelName = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// renderPrometheus gives labels that relabelling can use; those that begin with __ do
// not stay on the series by themselves. An empty list is [], without which Prometheus
// keeps the targets of before.
func renderPrometheus(list v1.Discovery) ([]byte, error) {
	groups := make([]group, 0, len(list.Proxies))
	for _, e := range list.Proxies {
		const meta = "__meta_egressfleet_"
		labels := map[string]string{
			meta + "namespace": e.Namespace, meta + "name": e.Name, meta + "uid": e.UID, meta + "provider": e.Provider,
			meta + "region": e.Region, meta + "zone": e.Zone, meta + "egress_ip": e.EgressIP, meta + "url": e.URL,
			meta + "healthy": strconv.FormatBool(e.Healthy),
		}
		for key, value := range e.Labels {
			labels[meta+"label_"+notInLabelName.ReplaceAllString(key, "_")] = value
		}
		groups = append(groups, group{[]string{address(e)}, labels})
	}
	raw, err := json.Marshal(groups)
	return append(raw, '\n'), err
}

// nowhere takes the place of a proxy in a script when there is none: to go without would
// show a site the client's own address.
const nowhere = "127.0.0.1:9"

// renderPAC spreads hosts over the proxies and always sends one host the same way first;
// the others follow, for when that does not answer. Only this machine is asked directly.
func renderPAC(list v1.Discovery) ([]byte, error) {
	proxies := []string{"PROXY " + nowhere}
	if len(list.Proxies) > 0 {
		proxies = proxies[:0]
	}
	for _, e := range list.Proxies {
		proxies = append(proxies, "PROXY "+address(e))
	}
	raw, err := json.Marshal(proxies)
	if err != nil {
		return nil, err
	}
	return []byte(`var proxies = ` + string(raw) + `;

function FindProxyForURL(url, host) {
  if (host === "localhost" || host === "127.0.0.1" || host === "::1" || host === "[::1]") return "DIRECT";
  var first = 0;
  for (var i = 0; i < host.length; i++) first = (first * 31 + host.charCodeAt(i)) % 65521;
  first %= proxies.length;
  return proxies.slice(first, first + 5).concat(proxies.slice(0, Math.max(0, first + 5 - proxies.length)))
    .slice(0, proxies.length).join("; ");
}
`), nil
}

func renderCSV(list v1.Discovery) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	rows := [][]string{{
		"namespace", "name", "uid", "provider", "region", "zone", "ip", "port", "url", "egressIP", "healthy",
	}}
	for _, e := range list.Proxies {
		rows = append(rows, []string{
			e.Namespace, e.Name, e.UID, e.Provider, e.Region, e.Zone, e.IP, strconv.Itoa(e.Port), e.URL, e.EgressIP,
			strconv.FormatBool(e.Healthy),
		})
	}
	err := w.WriteAll(rows)
	return out.Bytes(), err
}

// renderEnv is for a shell: set -a; . FILE. Some programs read only the names in small
// letters, some only the others. Without a proxy it sets nothing.
func renderEnv(list v1.Discovery) ([]byte, error) {
	if len(list.Proxies) == 0 {
		return nil, nil
	}
	var out strings.Builder
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		out.WriteString(name + "=" + list.Proxies[0].URL + "\n")
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		out.WriteString(name + "=localhost,127.0.0.1,::1\n")
	}
	return []byte(out.String()), nil
}

func address(e v1.Endpoint) string { return net.JoinHostPort(e.IP, strconv.Itoa(e.Port)) }
