package gcefake_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func decode(t *testing.T, answer *http.Response, into any) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
}

// Every captured answer reaches the real client as it was captured, about the names
// of the call, and each says where it is from.
func TestEveryCapturedAnswer(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("testdata")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := os.ReadFile("testdata/" + file.Name())
		require.NoError(t, err)
		var c struct {
			Case, Source, Evidence string
			Status                 int
		}
		require.NoError(t, json.Unmarshal(raw, &c))
		require.NotEmpty(t, c.Case, file.Name())
		require.NotEmpty(t, c.Source, file.Name())
		require.NotEmpty(t, c.Evidence, file.Name())
		name := strings.TrimSuffix(file.Name(), ".json")
		if c.Status == 0 {
			require.NotEmpty(t, gcefake.Failed(name, "", "", "").Error.GetErrors(), name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{})
			l.Inject(gcefake.Fault{Method: "instances.get", Times: 1, Answer: gcefake.Captured(name)})
			_, err := l.get(t, vm)
			api, ok := errors.AsType[*googleapi.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.Status, api.Code)
			l.made(t, vm)
			require.Equal(t, gcefake.Running, l.state(t, vm), "once is once")
		})
	}
}

func TestCapturedAnswersAreAboutTheCall(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.Inject(gcefake.Fault{Method: "instances.*", Name: "proxy-b", Answer: gcefake.Captured("get-404-instance")})
	_, err := l.get(t, "proxy-b")
	require.ErrorContains(t, err, "zones/us-central1-a/instances/proxy-b' was not found")
	failed := gcefake.Failed("op-stockout", "p", "z-a", "i").Error.GetErrors()[0]
	require.Contains(t, failed.GetMessage(), "The zone 'projects/p/zones/z-a'")
}

func TestAnAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]gcefake.Fault{
		"by a connection that is cut off":    {Drop: true},
		"by a gateway that fails":            {Answer: gcefake.Captured("get-502-html")},
		"by a page that says it isn't there": {Answer: gcefake.Captured("get-404-html")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{})
			lost.Method, lost.After, lost.Times = "instances.insert", true, 1
			l.Inject(lost)
			_, err := l.insert(t, wanted(vm))
			require.Error(t, err)
			require.Equal(t, gcefake.Running, l.state(t, vm), "the server has acted")
		})
	}
	t.Run("before the server acts nothing is made", func(t *testing.T) {
		t.Parallel()
		l := start(t, gcefake.Pace{})
		l.Inject(gcefake.Fault{Method: "instances.insert", Times: 1, Drop: true})
		_, err := l.insert(t, wanted(vm))
		require.Error(t, err)
		require.Empty(t, l.Instances())
		require.Zero(t, l.Calls()[0].Status)
	})
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.made(t, vm)
	remove := l.Inject(gcefake.Fault{Method: "instances.get", Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.instances.Get(ctx, &computepb.GetInstanceRequest{Project: project, Zone: zoneA, Instance: vm})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	answered := make(chan error, 1)
	go func() {
		_, err := l.instances.Get(t.Context(), &computepb.GetInstanceRequest{Project: project, Zone: zoneA, Instance: vm})
		answered <- err
	}()
	remove()
	require.NoError(t, <-answered)
}

func TestRates(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.RateLimit("*.get", 2)
	for _, want := range []string{"notFound", "notFound", "rateLimitExceeded", "rateLimitExceeded"} {
		require.Equal(t, want, l.state(t, vm))
	}
	l.made(t, vm) // what does not read has limits of its own
	l.clock.Advance(7 * time.Second)
	require.Equal(t, gcefake.Running, l.state(t, vm), "a whole minute later it is as much again")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	l.Accept("good")
	require.Equal(t, "authError", l.state(t, vm))
	dial := &http.Client{Transport: bearer("good")}
	c, err := compute.NewInstancesRESTClient(t.Context(), option.WithEndpoint(l.URL), option.WithHTTPClient(dial))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.Get(t.Context(), &computepb.GetInstanceRequest{Project: project, Zone: zoneA, Instance: vm})
	require.Equal(t, "notFound", refused(t, err))
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		project, zone string
		status        int
		text          string
	}{
		"a project that is not there": {"another", zoneA, 404, "The resource 'projects/another' was not found"},
		"a region for a zone":         {project, "us-central1", 400, "Unknown zone."},
		"no project":                  {"", zoneA, 404, "Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, gcefake.Pace{})
			_, err := l.instances.Get(t.Context(), &computepb.GetInstanceRequest{Project: c.project, Zone: c.zone, Instance: vm})
			api, ok := errors.AsType[*googleapi.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.status, api.Code)
			require.Contains(t, api.Body, c.text)
		})
	}
}

func TestFieldsThatTheAPIHasNot(t *testing.T) {
	t.Parallel()
	l := start(t, gcefake.Pace{})
	where := l.URL + "/compute/v1/projects/" + project + "/zones/" + zoneA + "/instances"
	answer, err := http.Post(where, "application/json", strings.NewReader(`{"name": "a", "colour": "b"}`))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	require.Empty(t, l.Instances())
}
