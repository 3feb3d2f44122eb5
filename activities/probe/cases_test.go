package probe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/echo"
)

// captured is a case: what a proxy or a thing on its port really sends, what follows,
// and what it is in the words of those who captured it.
type captured struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	File    string `json:"file"`
	Request string `json:"request"`
	After   string `json:"after"`
	Target  string `json:"target"`
	Tunnel  bool   `json:"tunnel"`
	Reason  string `json:"reason"` // "": healthy
}

func read[T any](t *testing.T, file string) (value T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &value))
	return value
}

// verdicts are what the captured words mean to us, where the target answers directly
// and where it does not.
var verdicts = map[string][2]string{
	"":                    {"Healthy", "Healthy"},
	"proxy_auth_required": {"AuthRequired", "AuthRequired"},
	"proxy_denied":        {"Refused", "Refused"},
	"bad_response":        {"BadResponse", "BadResponse"},
	"no_response":         {"Unreachable", "Inconclusive"},
	"timeout":             {"Unreachable", "Inconclusive"},
	"tls_mismatch":        {"TLSIntercepted", "Inconclusive"},
	"target_dns":          {"NoEgress", "Inconclusive"},
	"target_unreachable":  {"NoEgress", "Inconclusive"},
	"tunnel_closed":       {"NoEgress", "Inconclusive"},
	"target_not_tls":      {"BadResponse", "Inconclusive"}, // a target that is TLS directly is
	"bad_request":         {"Inconclusive", "Inconclusive"},
}

func TestCapturedAnswers(t *testing.T) {
	t.Parallel()
	cases := read[[]captured](t, "answers.json")
	require.Equal(t, 30, len(cases)) //nolint:testifylint // Len prints them all
	for _, c := range cases {
		t.Run(fmt.Sprintf("Case%d %s", c.Number, c.Name), func(t *testing.T) {
			t.Parallel()
			for n, direct := range []bool{true, false} {
				got := c.probe(t, direct)
				require.Equal(t, verdicts[c.Reason][n], got.Reason, "target answers directly: %t; %s", direct, got.Text)
				require.Equal(t, c.Reason, string(got.Cause), got.Text)
				require.NotEmpty(t, got.Text)
				require.Less(t, len(got.Text), 500, "no body, and no endless header")
				require.NotContains(t, got.Text, "filler")
				if c.Reason == "" {
					require.Equal(t, "127.0.0.1", got.EgressIP)
				}
			}
		})
	}
}

// probe plays the case to a prober whose target can be reached directly, or not.
func (c captured) probe(t *testing.T, direct bool) probe.Verdict {
	t.Helper()
	sent, err := os.ReadFile(filepath.Join("testdata", "connect", c.File))
	require.NoError(t, err)
	x := newTarget(t)
	asked, err := probe.ParseTarget(hostOf(t, c.Request))
	require.NoError(t, err)
	x.Host, x.Port = asked.Host, asked.Port
	far := x.address
	if c.Target == "tls-wrong-cert" {
		stranger, err := echo.New("target.example")
		require.NoError(t, err)
		far = serveEcho(t, stranger).address
	}
	requests := make(chan string, 1)
	proxy := serve(t, func(conn net.Conn) {
		requests <- readRequest(conn)
		c.play(conn, sent, far)
	})
	p := probe.Prober{Limits: generous(), Dial: x.dialer("")}
	if c.After == "silent" {
		p.Limits = impatient()
	}
	if direct {
		p.Dial = x.dialer(x.address)
	}
	if c.Number == 255 { // captured with user u and password p
		proxy.Credentials, err = probe.ParseCredentials("u:p")
		require.NoError(t, err)
	}
	v := p.Probe(t.Context(), x.Target, proxy)
	if request := <-requests; c.Name != "squid-400-tls-to-plain-port" {
		require.Equal(t, c.Request, request, "the same request as the captured one")
	}
	return v
}

// play sends the bytes and does what came after them.
func (c captured) play(conn net.Conn, sent []byte, far string) {
	_, _ = conn.Write(sent)
	switch c.After {
	case "tunnel":
		if c.Target == "plain banner" {
			hang(conn)
			return
		}
		splice(conn, far)
	case "keep-open", "silent":
		hang(conn)
	case "close", "close-after-headers":
		// What the prober sends must be read, or its answer is lost in a reset.
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, conn)
	default:
		panic("unknown end of a case: " + c.After)
	}
}

func hostOf(t *testing.T, request string) string {
	t.Helper()
	var host string
	if _, err := fmt.Sscanf(request, "CONNECT %s HTTP/1.1", &host); err != nil {
		return "target.example:443" // what was sent was no CONNECT
	}
	return host
}

// sequence is a case of thresholds.
type sequence struct {
	Number int            `json:"number"`
	Name   string         `json:"name"`
	Fall   int            `json:"fall"`
	Rise   int            `json:"rise"`
	Start  string         `json:"start"`
	Probes []string       `json:"probes"`
	States []probe.Health `json:"states"`
}

func TestCapturedSequences(t *testing.T) {
	t.Parallel()
	cases := read[[]sequence](t, "sequences.json")
	require.Len(t, cases, 4)
	for _, c := range cases {
		t.Run(fmt.Sprintf("Case%d %s", c.Number, c.Name), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.States, c.play())
		})
	}
}

// play feeds the probes to as many rounds as they fill, and returns what the proxy is
// called after each.
func (c sequence) play() (states []probe.Health) {
	now := probe.Health(c.Start)
	if c.Start == "unknown" {
		now = probe.HealthUnknown
	}
	var tries []probe.Verdict
	for _, p := range c.Probes {
		tries = append(tries, map[string]probe.Verdict{"ok": passed, "fail": failed}[p])
		ruling, again := probe.Judge(now, tries, probe.Thresholds{Fall: c.Fall, Rise: c.Rise})
		if now = ruling.Health; !again {
			tries = nil
		}
		states = append(states, now)
	}
	return states
}
