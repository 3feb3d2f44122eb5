package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestPutTakesWhatGetAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(running("default", "a", "203.0.113.7"))
	was := s.fleet.proxies["default/a"]
	answer := s.ask(t, "GET", proxyA, "")
	back := s.ask(t, "PUT", proxyA, answer.Body.String())
	require.Equal(t, 200, back.Code, back.Body)
	is := s.fleet.proxies["default/a"]
	require.Equal(t, was.Spec, is.Spec)
	require.Equal(t, was.Metadata.Labels, is.Metadata.Labels)
}

func TestPutIgnoresWhatOnlyTheFleetDecides(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"other values": `{"metadata": {"uid": "mine", "generation": 77, "createdAt": "2001-01-01T00:00:00Z",
			"labels": {"a": "b"}}, "status": {"phase": "Running", "ip": "192.0.2.1"}, "spec": {"provider": "local", "port": 1}}`,
		"what a newer server may say": `{"metadata": {"uid": {"new": null}, "generation": "x", "createdAt": 3,
			"labels": {"a": "b"}}, "status": {"novelty": [null, {"a": {}}]}, "spec": {"provider": "local", "port": 1}}`,
		"nulls": `{"metadata": {"uid": null, "generation": null, "createdAt": null,
			"labels": {"a": "b"}}, "status": null, "spec": {"provider": "local", "port": 1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage()
			answer := s.ask(t, "PUT", proxyA, body)
			require.Equal(t, 201, answer.Code, answer.Body)
			p := s.fleet.proxies["default/a"]
			require.Equal(t, v1.Metadata{
				Namespace: "default", Name: "a", UID: "uid-a", Generation: 1,
				Labels: map[string]string{"a": "b"}, CreatedAt: birth,
			}, p.Metadata)
			require.Equal(t, v1.PhasePending, p.Status.Phase)
			require.Empty(t, p.Status.IP)
		})
	}
}

func TestPutReadsEveryField(t *testing.T) {
	t.Parallel()
	want := v1.ProxySpec{
		Provider: "gcp", Port: 65535,
		Placement: v1.Placement{Region: "r", Zone: "z", MachineType: "m", Image: "i \"\\ \u2028 😀"},
		CloudInit: v1.CloudInit{Inline: "#cloud-config\n# <&> ü \u0000 😀\n"},
		HealthCheck: v1.HealthCheck{
			Disabled: true, Target: "example.com:443", ReplaceAfter: "1h30m",
			ProxyAuthRef: &v1.SecretRef{Name: "n", Key: "k"},
		},
		Deadlines: v1.Deadlines{Provisioning: "1s", FirstHealthy: "2s", Delete: "3s"},
	}
	body, err := json.Marshal(v1.Proxy{Spec: want})
	require.NoError(t, err)
	s := newStage()
	answer := s.ask(t, "PUT", proxyA, string(body), "Content-Type", "application/json; charset=UTF-8")
	require.Equal(t, 201, answer.Code, answer.Body)
	require.Equal(t, want, s.fleet.proxies["default/a"].Spec)
}

func TestABodyOfExactlyTheLimitIsTaken(t *testing.T) {
	t.Parallel()
	answer := newStage().ask(t, "PUT", proxyA, minimal+strings.Repeat("\n", 1<<20-len(minimal)))
	require.Equal(t, 201, answer.Code, answer.Body)
}

func TestANameThatFitsIsTakenInAnyWriting(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "0", "a-b", strings.Repeat("a", 63), "%61"} {
		answer := newStage().ask(t, "PUT", "/v1/namespaces/default/proxies/"+name, minimal)
		require.Equal(t, 201, answer.Code, answer.Body)
		want := strings.ReplaceAll(name, "%61", "a")
		require.Equal(t, "/v1/namespaces/default/proxies/"+want, answer.Header().Get("Location"))
	}
}

func TestARequestIsNamedByItsKeyOrByANameOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStage()
	longest := strings.Repeat("~", 128)
	s.ask(t, "PUT", proxyA, minimal, "Idempotency-Key", "deploy 42")
	s.ask(t, "PUT", proxyA, minimal, "Idempotency-Key", longest)
	s.ask(t, "PUT", proxyA, minimal)
	s.ask(t, "PUT", proxyA, minimal)
	require.Len(t, s.fleet.ids, 4)
	require.Regexp(t, `^deploy 42-[0-9a-f]{16}$`, s.fleet.ids[0])
	require.Regexp(t, `^~{128}-[0-9a-f]{16}$`, s.fleet.ids[1])
	require.Regexp(t, `^[A-Z2-7]{26}$`, s.fleet.ids[2])
	require.NotEqual(t, s.fleet.ids[2], s.fleet.ids[3])
}

func TestAKeyNamesARequestTogetherWithWhatItAsksFor(t *testing.T) {
	t.Parallel()
	const first = `{"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"provider": "local", "port": 3128}}`
	for name, again := range map[string]struct {
		target, body string
		repeated     bool
	}{
		"the same body": {proxyA, first, true},
		"the same in another writing": {proxyA, `{"spec": {"port": 3128, "provider": "local"},
			"metadata": {"name": "a", "labels": {"b": "2", "a": "1"}}}`, true},
		"another port":      {proxyA, strings.Replace(first, "3128", "3129", 1), false},
		"another label":     {proxyA, strings.Replace(first, `"2"`, `"3"`, 1), false},
		"another name":      {"/v1/namespaces/default/proxies/b", first, false},
		"another namespace": {"/v1/namespaces/other/proxies/a", first, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage()
			s.ask(t, "PUT", proxyA, first, "Idempotency-Key", "k")
			answer := s.ask(t, "PUT", again.target, again.body, "Idempotency-Key", "k")
			require.Less(t, answer.Code, 300, answer.Body)
			require.Len(t, s.fleet.ids, 2)
			require.Equal(t, again.repeated, s.fleet.ids[0] == s.fleet.ids[1], s.fleet.ids)
		})
	}
}

func TestADeleteSaysWhereItCameFrom(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	require.Equal(t, 202, s.ask(t, "DELETE", proxyA, "").Code)
	require.Equal(t, []string{"asked for through the API"}, s.fleet.reasons)
}

func TestADeleteThatLeavesIsAskedForAsSuch(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		reason string
		left   []string
	}{
		"?reason=banned":                            {"banned", nil},
		"?skipCleanup=false":                        {"asked for through the API", nil},
		"?skipCleanup=true&reason=the+zone+is+gone": {"the zone is gone", []string{"a"}},
	} {
		s := newStage(pool()...)
		answer := s.ask(t, "DELETE", proxyA+query, "")
		require.Equal(t, 202, answer.Code, answer.Body)
		require.Equal(t, []string{want.reason}, s.fleet.reasons, query)
		require.Equal(t, want.left, s.fleet.left, query)
	}
}

func TestEveryMessageReachesTheFleet(t *testing.T) {
	t.Parallel()
	for route, c := range map[string]struct {
		body   string
		status int
		told   string
	}{
		"replace": {`{"reason": "banned"}`, 202, "replace: banned"},
		"retry":   {`{"reason": "there now"}`, 202, "retry: there now"},
		"hold":    {`{"reason": "billing", "for": "1h30m"}`, 200, "hold 1h30m: billing"},
		"resume":  {`{"reason": "paid"}`, 200, "resume: paid"},
	} {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			s := newStage(pool()...)
			require.Equal(t, c.status, s.ask(t, "POST", proxyA+"/"+route, c.body).Code)
			require.Equal(t, c.status, s.ask(t, "POST", proxyA+"/"+route, "").Code, "the body may be left out")
			require.Equal(t, c.status, s.ask(t, "POST", proxyA+"/"+route, "{}").Code)
			require.Len(t, s.fleet.told, 3)
			require.Equal(t, c.told, s.fleet.told[0])
			for _, unsaid := range s.fleet.told[1:] {
				require.Regexp(t, "^"+route+" ?: asked for through the API$", unsaid)
			}
		})
	}
}

func TestAMessageIsNamedByItsKeyTogetherWithWhatItAsksFor(t *testing.T) {
	t.Parallel()
	hold := func(more string) string { return `{"reason": "billing"` + more + `}` }
	for name, again := range map[string]struct {
		target, body string
		repeated     bool
	}{
		"the same":          {proxyA + "/hold", hold(""), true},
		"another writing":   {proxyA + "/hold", ` {"reason" : "b\u0069lling"}`, true},
		"another time":      {proxyA + "/hold", hold(`, "for": "1h"`), false},
		"another message":   {proxyA + "/retry", hold(""), false},
		"another name":      {"/v1/namespaces/default/proxies/b/hold", hold(""), false},
		"another namespace": {"/v1/namespaces/crawl/proxies/v6/hold", hold(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(pool()...)
			s.ask(t, "POST", proxyA+"/hold", hold(""), "Idempotency-Key", "k")
			answer := s.ask(t, "POST", again.target, again.body, "Idempotency-Key", "k")
			require.Less(t, answer.Code, 300, answer.Body)
			require.Len(t, s.fleet.ids, 2)
			require.Regexp(t, `^k-[0-9a-f]{16}$`, s.fleet.ids[0])
			require.Equal(t, again.repeated, s.fleet.ids[0] == s.fleet.ids[1], s.fleet.ids)
		})
	}
	s := newStage(pool()...)
	s.ask(t, "POST", proxyA+"/hold", hold(""))
	s.ask(t, "POST", proxyA+"/hold", hold(""))
	require.NotEqual(t, s.fleet.ids[0], s.fleet.ids[1], "without a key, each counts for itself")
}

func TestAListIsOfOneNamespaceAndSorted(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	for range 20 { // the fleet's order is random
		var list struct{ Items []v1.Proxy }
		answer := s.ask(t, "GET", "/v1/namespaces/default/proxies", "")
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Metadata.Name)
		}
		require.Equal(t, []string{"a", "b", "held", "pending", "sick"}, names)
	}
	require.Equal(t, "default", s.fleet.lists[0])
}

func TestARedactedCloudInitThatIsSentBackIsKept(t *testing.T) {
	t.Parallel()
	const content, base64 = "#cloud-config secret", "I2Nsb3VkLWNvbmZpZwo="
	for name, cloudInit := range map[string]v1.CloudInit{
		"text":  {Inline: content},
		"bytes": {InlineBase64: base64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := running("default", "a", "203.0.113.7")
			p.Spec.CloudInit = cloudInit
			s := newStage(p)
			got := s.ask(t, "GET", proxyA, "").Body.String()
			require.Contains(t, got, "redacted:sha256:")
			require.NotContains(t, got, content)
			require.NotContains(t, got, base64)
			answer := s.ask(t, "PUT", proxyA, got)
			require.Equal(t, 200, answer.Code, answer.Body)
			require.Equal(t, cloudInit, s.fleet.proxies["default/a"].Spec.CloudInit)
			require.NotContains(t, answer.Body.String(), content)
			require.NotContains(t, answer.Body.String(), base64)

			elsewhere := s.ask(t, "PUT", "/v1/namespaces/default/proxies/b",
				strings.Replace(got, `"name":"a"`, `"name":"b"`, 1))
			refused := told(t, elsewhere)
			require.Equal(t, 422, refused.status)
			require.Equal(t, "spec.cloudInit.inline", refused.field)
		})
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	for _, target := range []string{"/healthz", "/readyz", "/v1/discovery", proxyA} {
		require.Equal(t, 200, s.ask(t, "HEAD", target, "").Code, target)
	}
	require.Equal(t, 404, s.ask(t, "HEAD", "/nothing", "").Code)
}

func TestOptionsNamesTheMethods(t *testing.T) {
	t.Parallel()
	answer := newStage().ask(t, "OPTIONS", proxyA, "")
	require.Equal(t, 204, answer.Code)
	require.Equal(t, "OPTIONS, DELETE, GET, PUT, HEAD", answer.Header().Get("Allow"))
}
