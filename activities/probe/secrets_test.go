package probe_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// A hostile or careless proxy repeats what it was sent, wherever it can.
func TestCredentialsAreNowhereWhateverTheProxyDoes(t *testing.T) {
	t.Parallel()
	const user, password = "sentinel-user", "sentinel-password"
	x := newTarget(t)
	repeat := func(format string) func(net.Conn) {
		return func(conn net.Conn) {
			request := readRequest(conn)
			_, token, _ := strings.Cut(request, "Basic ")
			token, _, _ = strings.Cut(token, "\r\n")
			plain, _ := base64.StdEncoding.DecodeString(token)
			_, _ = fmt.Fprintf(conn, format, token, plain)
		}
	}
	for name, talk := range map[string]func(net.Conn){
		"in the reason phrase": repeat("HTTP/1.1 407 %s %s\r\n\r\n"),
		"in squid's header":    repeat("HTTP/1.1 503 x\r\nX-Squid-Error: %s %s\r\n\r\n"),
		"in the body":          repeat("HTTP/1.1 403 x\r\n\r\n%s %s"),
		"in the place of HTTP": repeat("%s %s\r\n"),
		"in the status":        repeat("HTTP/1.1 %s %s\r\n\r\n"),
		"in the tunnel":        repeat("HTTP/1.1 200 x\r\n\r\n%s %s"),
		"with a good tunnel":   tunnelTo(x.address),
		"in the good answer": func(conn net.Conn) {
			repeat("HTTP/1.1 200 %s %s\r\n\r\n")(conn)
			splice(conn, x.address)
		},
		"by closing": func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := serve(t, talk)
			proxy.Credentials = credentials(t, user+":"+password)
			p := probe.Prober{Limits: impatient(), Dial: x.dialer(x.address)}
			rulings := p.Batch(t.Context(), []probe.Job{{Proxy: proxy, Target: x.Target}}, nil)
			said := shown(t, rulings, proxy, p.OpenProxy(t.Context(), x.Target, proxy))
			require.NotEmpty(t, rulings[0].Verdict.Text)
			token := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
			for _, secret := range []string{user, password, token} {
				require.NotContains(t, said, secret)
			}
		})
	}
}

// shown is everything that values turn into when they are printed, logged or sent.
func shown(t *testing.T, values ...any) string {
	t.Helper()
	var b bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&b, nil))
	lines := slog.New(slog.NewTextHandler(&b, nil))
	for _, value := range values {
		_, _ = fmt.Fprintf(&b, "%v %+v %#v %s\n", value, value, value, value)
		text, err := json.Marshal(value)
		require.NoError(t, err)
		b.Write(text)
		log.Info("x", slog.Any("value", value))
		lines.Info("x", slog.Any("value", value))
	}
	return b.String()
}

func TestTheProbeOfAnOpenProxySendsNoCredentials(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	requests := make(chan string, 2)
	proxy := serve(t, func(conn net.Conn) {
		requests <- readRequest(conn)
		_, _ = io.WriteString(conn, needsAuth)
	})
	proxy.Credentials = credentials(t, "sentinel-user:sentinel-password")
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	require.Equal(t, v1.ConditionFalse, p.OpenProxy(t.Context(), x.Target, proxy).Status)
	for range 2 {
		require.NotContains(t, <-requests, "Authorization")
	}
}

func TestCredentialsThatAreNoneAreRefusedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"sentinel", ":sentinel", "sentinel:a\r\nb", "", "sentinel:\x00"} {
		_, err := probe.ParseCredentials(text)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "sentinel")
	}
	c := credentials(t, "u:p:q") // a password may hold a colon
	require.False(t, c.IsZero())
	require.True(t, probe.Credentials{}.IsZero())
}
