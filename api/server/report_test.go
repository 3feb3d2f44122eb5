package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/feedback"
	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const reports = "/v1/discovery/report"

// report sends one that must be taken.
func (s *stage) report(t *testing.T, target, proxy, domain string, kind v1.ReportKind, more ...string) v1.Reported {
	t.Helper()
	body := fmt.Sprintf(`{"proxy": %q, "domain": %q, "kind": %q%s}`, proxy, domain, kind, strings.Join(more, ""))
	answer := s.ask(t, "POST", target, body)
	require.Equal(t, 200, answer.Code, answer.Body)
	var r v1.Reported
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &r))
	return r
}

func (s *stage) names(t *testing.T, target string) (names []string) {
	t.Helper()
	var list v1.Discovery
	answer := s.ask(t, "GET", target, "")
	require.Equal(t, 200, answer.Code, answer.Body)
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	for _, e := range list.Proxies {
		names = append(names, e.Name)
	}
	return names
}

func TestABanIsLeftOutAtOnceForItsDomainAndThoseBelow(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	r := s.report(t, reports, "http://203.0.113.7:3128", "Example.COM.", v1.ReportBanned)
	require.True(t, r.Counted)
	require.Equal(t, birth.Add(time.Hour), r.BannedUntil)
	for domain, want := range map[string][]string{
		"": {"v6", "a", "b"}, "example.com": {"v6", "b"}, "EXAMPLE.com": {"v6", "b"}, "www.example.com.": {"v6", "b"},
		"a.b.example.com": {"v6", "b"}, "example.org": {"v6", "a", "b"}, "anexample.com": {"v6", "a", "b"},
	} {
		require.Equal(t, want, s.names(t, "/v1/discovery?for="+domain), domain)
	}
	s.clock.move(time.Hour)
	s.server.Refresh(t.Context())
	require.Equal(t, []string{"v6", "a", "b"}, s.names(t, "/v1/discovery?for=example.com"), "it is over")
}

func TestEveryFormatAndThePickLeaveOutWhatIsBanned(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	s.report(t, reports, "crawl/v6", "www.example.com", v1.ReportCaptcha)
	s.report(t, reports, "203.0.113.8:3128", "www.example.com", v1.ReportBanned)
	for _, format := range []string{"json", "txt", "prometheus", "pac", "csv", "env"} {
		body := s.ask(t, "GET", "/v1/discovery?for=www.example.com&format="+format, "").Body.String()
		require.Contains(t, body, "203.0.113.7", format)
		require.NotContains(t, body, "203.0.113.8", format)
		require.NotContains(t, body, "2001:db8::7", format)
	}
	for i := range 20 {
		target := fmt.Sprintf("/v1/discovery/pick?format=txt&for=www.example.com&sticky=%d", i)
		require.Equal(t, "http://203.0.113.7:3128\n", s.ask(t, "GET", target, "").Body.String())
	}
}

func TestTheNextProxyIsAnotherOneAndWhatPickWouldGive(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	for i := range 20 {
		key := fmt.Sprintf("account-%d", i)
		site := fmt.Sprintf("site-%d.example.com", i)
		pick := func() (p v1.Pick) {
			answer := s.ask(t, "GET", "/v1/discovery/pick?for="+site+"&sticky="+key, "")
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &p))
			return p
		}
		first := pick().Proxy
		slow := s.report(t, reports, first.URL, site, v1.ReportSlow, `, "sticky": "`+key+`"`)
		require.NotEqual(t, first.Name, slow.Proxy.Name, "also for what bans nothing")
		require.Zero(t, slow.BannedUntil)
		require.Equal(t, first.Name, pick().Proxy.Name)
		banned := s.report(t, reports, first.URL, site, v1.ReportBanned, `, "sticky": "`+key+`"`)
		require.Equal(t, slow.Proxy.Name, banned.Proxy.Name)
		require.Equal(t, banned.Proxy.Name, pick().Proxy.Name)
	}
}

func TestReportsReachTheFleetOnceEach(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	s.report(t, reports, "default/a", "example.com", v1.ReportBanned)
	s.report(t, reports, "default/a", "example.com", v1.ReportBanned, `, "egressIP": "::ffff:203.0.113.7"`)
	s.report(t, reports, "default/a", "bücher.example", v1.ReportTimeout)
	s.report(t, reports, "default/held", "example.com", v1.ReportSlow)
	gone := s.report(t, reports, "default/b", "example.com", v1.ReportBanned, `, "egressIP": "203.0.113.7"`)
	require.False(t, gone.Counted, "another address is another instance")
	require.False(t, s.report(t, reports, "default/pending", "example.com", v1.ReportBanned).Counted)
	s.fleet.set(func(f *fakeFleet) { f.fail = fleet.ErrUnavailable })
	s.server.SendReports(t.Context())
	require.Empty(t, s.fleet.batches)
	s.fleet.set(func(f *fakeFleet) { f.fail = nil })
	s.server.SendReports(t.Context())
	s.server.SendReports(t.Context())
	of := func(name, ip, domain string, kind v1.ReportKind) fleet.FeedbackReport {
		return fleet.FeedbackReport{
			Provider: "gcp", Namespace: "default", Name: name, UID: "uid-" + name, MadeAt: birth, EgressIP: ip,
			Domain: domain, Kind: kind, At: birth,
		}
	}
	require.Equal(t, []fleet.FeedbackBatch{{Policy: feedback.DefaultPolicy(), Reports: []fleet.FeedbackReport{
		of("a", "203.0.113.7", "example.com", v1.ReportBanned),
		of("a", "203.0.113.7", "xn--bcher-kva.example", v1.ReportTimeout),
		of("held", "203.0.113.9", "example.com", v1.ReportSlow),
	}}}, s.fleet.batches)
}

func TestATokenReportsOnlyWhatItSees(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	ask := func(token, proxy string) *httptest.ResponseRecorder {
		return s.ask(t, "POST", reports, `{"proxy": "`+proxy+`", "domain": "example.com", "kind": "banned"}`, as(token)...)
	}
	require.Equal(t, 200, ask("crawler", "default/a").Code)
	require.Equal(t, 200, ask("crawl-only", "crawl/v6").Code)
	for _, proxy := range []string{"default/a", "http://203.0.113.7:3128", "default/nobody"} {
		require.Equal(t, refusal{404, "not-found", "proxy", strings.TrimPrefix(proxy, "http://")},
			told(t, ask("crawl-only", proxy)))
		require.Equal(t, 404, ask("gold-only", proxy).Code)
	}
	require.NotContains(t, s.log.String(), `"msg":"audit"`, "a report changes nothing by itself")
	require.NotContains(t, s.log.String(), "example.com")
}

func TestWhoWaitsIsToldOfABan(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{})
	l.tick(t)
	const target = "/v1/discovery?format=txt&for=example.com&wait=30s"
	known := l.etag(t, target)
	answers := l.get(t, target, "If-None-Match", known)
	l.waiting(t)
	l.report(t, reports, "default/a", "example.com", v1.ReportBanned)
	l.tick(t)
	answer := soon(t, answers)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "http://[2001:db8::7]:3128\nhttp://203.0.113.8:3128\n", string(body))
}

func TestEveryBadReportIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	body := func(proxy, domain, kind, more string) string {
		return fmt.Sprintf(`{"proxy": %q, "domain": %q, "kind": %q%s}`, proxy, domain, kind, more)
	}
	const a, site = "default/a", "example.com"
	for name, c := range map[string]struct {
		body string
		want refusal
	}{
		"no body":           {"", media("Content-Type", "")},
		"nothing in it":     {`{}`, invalid("proxy", "")},
		"a field too many":  {body(a, site, "slow", `, "url": "x"`), refusal{400, "unknown-field", "url", ""}},
		"a number":          {`{"proxy": 7, "domain": "example.com", "kind": "slow"}`, mistyped("proxy", "7")},
		"no domain":         {body(a, "", "slow", ""), invalid("domain", "")},
		"a URL":             {body(a, "https://example.com/", "slow", ""), invalid("domain", "https://example.com/")},
		"a port":            {body(a, "example.com:443", "slow", ""), invalid("domain", "example.com:443")},
		"a dot":             {body(a, ".", "slow", ""), invalid("domain", ".")},
		"an empty label":    {body(a, "a..example.com", "slow", ""), invalid("domain", "a..example.com")},
		"a whole suffix":    {body(a, "com", "banned", ""), invalid("domain", "com")},
		"a long domain":     {body(a, long+".com", "slow", ""), invalid("domain", cut80)},
		"no kind":           {body(a, site, "", ""), invalid("kind", "")},
		"a kind in capital": {body(a, site, "Banned", ""), invalid("kind", "Banned")},
		"no egress IP":      {body(a, site, "slow", `, "egressIP": "here"`), invalid("egressIP", "here")},
		"a long proxy":      {body(long+long, site, "slow", ""), invalid("proxy", cut80)},
		"a long sticky":     {body(a, site, "slow", `, "sticky": "`+strings.Repeat(long, 4)+`"`), invalid("sticky", cut80)},
		"another proxy":     {body("default/gone", site, "slow", ""), refusal{404, "not-found", "proxy", "default/gone"}},
		"no proxy at all":   {body("http://%zz", site, "slow", ""), refusal{404, "not-found", "proxy", "%zz"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(pool()...)
			s.server.Refresh(t.Context())
			got := told(t, s.ask(t, "POST", reports, c.body))
			if name == "a field too many" { // what it holds may be anything
				got.value = ""
			}
			require.Equal(t, c.want, got)
			s.server.SendReports(t.Context())
			require.Empty(t, s.fleet.batches)
		})
	}
}
