package providertest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func secretRows() []Row {
	return []Row{
		{
			Name: "SecretsStayInside", Section: "2.1", run: secretsStayInside,
			Breaks: "cloud-init and credentials land in logs, histories and status",
		},
		{
			Name: "SecretsStayOutOfSpans", Section: "9", run: secretsStayOutOfSpans,
			Breaks: "cloud-init and credentials land in a backend for traces, which many may read",
		},
		{
			Name: "SecretsSurviveAnOutage", Section: "7", Needs: "Lab.Break", run: secretsSurviveAnOutage,
			Breaks: "the error of a backend that is down repeats the request, with its token",
		},
		{
			Name: "SecretsSurviveAStall", Section: "7", Needs: "Lab.Stall", run: secretsSurviveAStall,
			Breaks: "the error of a call that was called off repeats the request, with its token",
		},
	}
}

// secret is a sentinel that no other row has, and a cloud-init that it is in.
type secret struct{ sentinel, cloudInit []byte }

// secrets returns a text, and one that is no UTF-8 and needs quotes.
func secrets() []secret {
	text, binary := []byte("s3ntinel-"+rand.Text()), []byte("s3ntinel-"+rand.Text())
	return []secret{
		{text, fmt.Appendf(nil, "#cloud-config\npassword: %s\n", text)},
		{binary, slices.Concat([]byte("\x1f\x8b\x08\x00\xff\"\n<&"), binary, []byte("\x00\xfe'"))},
	}
}

func secretsStayInside(s *scene) {
	s.watched(func(ctx context.Context, req providers.CreateRequest, w *watch) {
		s.tour(ctx, req, w.answer)
	})
}

func secretsStayOutOfSpans(s *scene) {
	if s.profile.ChildSpans != providers.SpansNone {
		_, w := s.withSpan(func(ctx context.Context) { s.tour(ctx, s.request(), nowhere) })
		require.NotEmpty(s, w.started(), "the profile promises child spans, and a secret could be in them")
	}
	for _, secret := range secrets() {
		req := s.request()
		req.CloudInit = secret.cloudInit
		parent, w := s.withSpan(func(ctx context.Context) { s.tour(ctx, req, nowhere) })
		s.hides(spanText(append(w.started(), parent)), secret) // a provider may add to its caller's span, too
	}
}

func nowhere(string, any, error) {}

func secretsSurviveAnOutage(s *scene) {
	held, id := s.created()
	s.watched(func(ctx context.Context, req providers.CreateRequest, w *watch) {
		heal := s.suite.Lab.Break(s.host, s.p)
		defer heal()
		s.tour(ctx, req, w.answer)
		held.CloudInit = req.CloudInit
		s.everyCall(ctx, held, id, w.answer)
	})
}

func secretsSurviveAStall(s *scene) {
	_, id := s.created()
	s.watched(func(ctx context.Context, req providers.CreateRequest, w *watch) {
		s.stalledCalls(ctx, req, id, w.answer)
	})
}

// watched runs calls once for every kind of cloud-init and looks for it, and for the
// credentials, in all that was logged or returned.
func (s *scene) watched(calls func(context.Context, providers.CreateRequest, *watch)) {
	s.Helper()
	for _, secret := range secrets() {
		w := new(watch)
		req := s.request()
		req.CloudInit = secret.cloudInit
		calls(w.under(providers.WithLogger(s.Context(), w.logger())), req, w)
		s.hides(w.said(), secret)
	}
}

// hides looks for a secret in every form that a log or an error may give it.
func (s *scene) hides(shown string, mine secret) {
	s.Helper()
	all := [][]byte{mine.sentinel}
	for _, credential := range s.suite.Secrets {
		all = append(all, []byte(credential))
	}
	for _, each := range all {
		for _, form := range forms(each) {
			require.NotContains(s, shown, form.text, "%q is shown, %s", each, form.name)
		}
	}
}

// form is one way in which a secret may be printed.
type form struct{ name, text string }

// noChance is how long an encoded text must be, so that nothing else happens to hold it.
const noChance = 8

// forms are the ways in which bytes are printed.
func forms(data []byte) []form {
	quoted := strconv.Quote(string(data))
	numbers := strings.Trim(fmt.Sprintf("%d", data), "[]")
	out := []form{
		{"as it is", string(data)},
		{"quoted", quoted[1 : len(quoted)-1]},
		{"as numbers", numbers},
		{"as a list of numbers", strings.ReplaceAll(numbers, " ", ",")},
		{"as Go code", strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", data), "[]byte{"), "}")},
		{"as hex", hex.EncodeToString(data)},
		{"as upper hex", strings.ToUpper(hex.EncodeToString(data))},
		{"in a query", url.QueryEscape(string(data))},
		{"in a path", url.PathEscape(string(data))},
		{"in JSON", inJSON(data)},
	}
	for before := range 3 {
		for name, encoding := range map[string]*base64.Encoding{
			"base64": base64.RawStdEncoding, "base64 for URLs": base64.RawURLEncoding,
		} {
			if text := within(encoding, data, before); len(text) >= noChance {
				out = append(out, form{fmt.Sprintf("as %s after %d bytes", name, before), text})
			}
		}
	}
	return out
}

func inJSON(data []byte) string {
	text, err := json.Marshal(string(data))
	if err != nil {
		return string(data)
	}
	return string(text[1 : len(text)-1])
}

// within is what the encoding of a longer text has in common, whatever stands around:
// three bytes are four characters, so where the secret begins matters.
func within(encoding *base64.Encoding, data []byte, before int) string {
	data = data[(3-before)%3:]
	return encoding.EncodeToString(data[:len(data)-len(data)%3])
}
