package main

import (
	"context"
	"os"
	"strings"
	"text/template"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// devPage is what a run shows once it is up.
type devPage struct {
	API, Metrics, Temporal, UI string // host:port
	Dir                        string
	Proxies                    []string // ip:port of each sample
	Starter                    string   // how to call this program
	CurlFlags                  string
	Passing                    bool // the instances end with the run
}

// pageText ends in the line that scripts wait for.
const pageText = `
Page         http://{{.API}}/
API          http://{{.API}}/v1/namespaces/default/proxies
Discovery    http://{{.API}}/v1/discovery  (?format=txt: one proxy a line)
Metrics      http://{{.Metrics}}/metrics
Web UI       http://{{.UI}}/namespaces/default/workflows
Temporal     {{.Temporal}}
State        {{.Dir}}
Logs         {{.Dir}}/log/worker.log
             {{.Dir}}/log/temporal.log

Proxies      {{range $i, $p := .Proxies}}{{if $i}}, {{end}}http://{{$p}}{{end}}
{{with index .Proxies 0}}
Ask the API through one of them:
  curl{{$.CurlFlags}} -x http://{{.}} http://{{$.API}}/healthz
An HTTPS target goes by CONNECT:
  curl{{$.CurlFlags}} -x http://{{.}} https://example.com/
{{end}}
See them:    {{.Starter}} get
{{if .Passing}}Stop:        Ctrl-C; the instances and the state end with it
{{else}}Stop:        Ctrl-C; the instances and the state stay for the next run
Clean up:    make clean-dev
{{end}}
` + readyLine + "\n"

func (p devPage) text() (string, error) {
	var b strings.Builder
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return "", err
	}
	err = t.Execute(&b, p)
	return b.String(), err
}

// printPage shows the addresses that the API tells.
func (r *devRun) printPage(ctx context.Context) error {
	s := r.settings
	p := devPage{
		API: s.api.address(), Metrics: s.metrics.address(), Temporal: s.temporal.address(), UI: s.ui.address(),
		Dir: s.dir, Starter: s.starterCall(), CurlFlags: curlFlags(os.Getenv),
		Passing: s.passing(),
	}
	samples, err := s.sampleProxies()
	if err != nil {
		return err
	}
	for _, sample := range samples {
		var now v1.Proxy
		if now, err = r.api().proxy(ctx, sample.Metadata.Namespace, sample.Metadata.Name); err != nil {
			return err
		}
		p.Proxies = append(p.Proxies, address(now))
	}
	text, err := p.text()
	if err != nil {
		return err
	}
	return r.print(text)
}

// starterCall is the command line that reaches this run's server.
func (s devSettings) starterCall() string {
	if s.temporal.port == defaultTemporalPort {
		return "bin/starter"
	}
	return "bin/starter --temporal-address " + s.temporal.address()
}

// curlFlags keep curl from going around the proxy where the environment excepts
// loopback.
func curlFlags(getenv func(string) string) string {
	if getenv("no_proxy")+getenv("NO_PROXY") == "" {
		return ""
	}
	return " --noproxy ''"
}
