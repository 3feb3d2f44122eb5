package discovery

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net"
	"regexp"
	"strconv"
	"strings"

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
	Text:       {"text/plain; charset=utf-8", renderText},
	Prometheus: {"application/json", renderPrometheus},
	PAC:        {"application/x-ns-proxy-autoconfig", renderPAC},
	CSV:        {"text/csv; charset=utf-8; header=present", renderCSV},
	Env:        {"text/plain; charset=utf-8", renderEnv},
}

func renderJSON(list v1.Discovery) ([]byte, error) {
	if list.Proxies == nil {
		list.Proxies = []v1.Endpoint{} // clients range over it; null breaks some
	}
	list.Version, list.GeneratedAt = v1.DiscoveryVersion, list.GeneratedAt.UTC()
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(list)
	return out.Bytes(), err
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
