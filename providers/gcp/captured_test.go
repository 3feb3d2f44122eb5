package gcp

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/egressfleet/egressfleet/providers"
)

// captured is one file of testdata.
type captured struct {
	name        string
	Op          string `json:"op"`
	Request     struct{ Method, Path string }
	Status      int             `json:"status"`
	ContentType string          `json:"contentType"`
	Body        json.RawMessage `json:"body"`
	Text        string          `json:"text"`
	Operation   json.RawMessage `json:"operation"`
	Instance    json.RawMessage `json:"instance"`
	Pages       json.RawMessage `json:"pages"`
	Error       string          `json:"error"`
	Want        struct {
		Class     string          `json:"class"`
		State     providers.State `json:"state"`
		IP        *string         `json:"ip"`
		UID       *string         `json:"uid"`
		CreatedAt *time.Time      `json:"created_at"`
		Result    string          `json:"result"`
		Not       []string        `json:"must_not_be"`
		Names     []string        `json:"names"`
		Omitted   []string        `json:"log_omitted"`
	} `json:"want"`
	Source string `json:"source"`
}

func allCaptured(t *testing.T) (all []captured) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		c := captured{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		require.NoError(t, json.Unmarshal(text, &c), file)
		require.NotEmpty(t, c.Source, file)
		all = append(all, c)
	}
	require.Greater(t, len(all), 50, "testdata is there")
	return all
}

// class is the word of the contract.
func (c captured) class() providers.Class {
	if c.Want.Class == "Quota" {
		return providers.ErrQuotaExceeded
	}
	return providers.Class(c.Want.Class)
}

// response is the answer as the transport gives it.
func (c captured) response() *http.Response {
	text := c.Text
	if text == "" {
		text = string(c.Body)
	}
	return &http.Response{
		StatusCode: c.Status, Header: http.Header{"Content-Type": {c.ContentType}},
		Body: io.NopCloser(strings.NewReader(text)),
	}
}

const capturedName = "proxy-aaaaaaaaaaaaaaaa"

func (c captured) about() about {
	return about{c.Op, place{"us-central1-a", capturedName}.path("instances")}
}

func (c captured) operation(t *testing.T) *computepb.Operation {
	t.Helper()
	op := new(computepb.Operation)
	require.NoError(t, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(c.Operation, op))
	return op
}

func (c captured) instance(t *testing.T) *computepb.Instance {
	t.Helper()
	i := new(computepb.Instance)
	require.NoError(t, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(c.Instance, i))
	return i
}

// TestEveryCapturedAnswer has a row for each file, by what is in it.
func TestEveryCapturedAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range allCaptured(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			switch {
			case c.Status != 0:
				c.checkAnswer(t)
			case c.Operation != nil:
				c.checkOperation(t)
			case c.Instance != nil:
				c.checkInstance(t)
			case c.Pages != nil:
				require.NotEmpty(t, c.Want.Class+strings.Join(c.Want.Names, ""), "TestCapturedLists reads it")
			case c.Error != "":
				require.Equal(t, c.class(), classify(&url.Error{Op: "Get", URL: "u", Err: errors.New(c.Error)}, c.about()))
			default:
				require.Fail(t, "nobody reads this file")
			}
		})
	}
}

func (c captured) checkAnswer(t *testing.T) {
	t.Helper()
	raw := googleapi.CheckResponse(c.response())
	err := clean(t.Context(), raw)
	switch c.Want.Result {
	case "":
		require.Equal(t, c.class(), classify(err, c.about()), "%v", err)
		require.Equal(t, c.class(), classify(raw, c.about()), "also before it is cleaned")
		for _, not := range c.Want.Not {
			require.NotEqual(t, not, string(classify(err, c.about())))
		}
	case "ok":
		if c.Op == providers.OpDelete {
			require.Equal(t, providers.ErrNotFound, classify(err, c.about()), "which a delete takes for its end")
			return
		}
		require.True(t, isTaken(err), "the next look says by whom")
	}
	if strings.HasPrefix(c.ContentType, "application/json") {
		var body struct{ Error struct{ Message string } }
		require.NoError(t, json.Unmarshal(c.Body, &body))
		require.ErrorContains(t, err, body.Error.Message, "Google's own words reach people")
	} else {
		require.NotContains(t, err.Error(), c.Text[:5], "another server's page does not")
	}
}

func (c captured) checkOperation(t *testing.T) {
	t.Helper()
	op := c.operation(t)
	failed := failureOf(op)
	switch c.Want.Result {
	case "pending":
		require.Nil(t, failed)
		require.True(t, tell(c.at(), []*computepb.Operation{op}).inserting(time.Now()))
	case "ok":
		if c.Op == providers.OpDelete {
			require.NotNil(t, tell(c.at(), []*computepb.Operation{op}).deleted)
			return
		}
		require.Nil(t, failed)
	default:
		require.NotNil(t, failed)
		require.Equal(t, c.class(), classify(failed, about{op: providers.OpCreate}))
		op, err := errorOfMissing(tell(c.at(), []*computepb.Operation{op}), false, time.Now())
		require.Equal(t, providers.OpCreate, op, "Get tells of the create")
		require.ErrorContains(t, err, failed.code)
		require.ErrorContains(t, err, failed.message)
	}
}

func (captured) at() place { return place{"us-central1-a", capturedName} }

func (c captured) checkInstance(t *testing.T) {
	t.Helper()
	found := view(c.at(), c.instance(t), addressingExternal, false)
	require.Equal(t, c.Want.State, found.State)
	for _, not := range c.Want.Not {
		require.NotEqual(t, not, string(found.State))
	}
	if c.Want.IP != nil {
		require.Equal(t, *c.Want.IP, found.IP)
	}
	if c.Want.UID != nil {
		require.Equal(t, *c.Want.UID, found.UID)
	}
	if c.Want.CreatedAt != nil {
		require.True(t, c.Want.CreatedAt.Equal(found.CreatedAt), "%s", found.CreatedAt)
	}
	if found.State != providers.StateRunning {
		require.NotEmpty(t, found.Reason)
	}
}
