package gcefake

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/encoding/protojson"
)

// Each file is one answer or one failed operation, with the id of its case, where it
// is from, and how far it is real.
//
//go:embed testdata/*.json
var testdata embed.FS

// The names that stand in the captured texts.
const (
	CapturedProject  = "example-proj"
	CapturedZone     = "us-central1-a"
	CapturedInstance = "proxy-aaaaaaaaaaaaaaaa"
)

type capture struct {
	Case        string          `json:"case"`
	Source      string          `json:"source"`
	Evidence    string          `json:"evidence"`
	Status      int             `json:"status"`
	ContentType string          `json:"contentType"`
	Body        json.RawMessage `json:"body"`
	Text        string          `json:"text"`
	Operation   json.RawMessage `json:"operation"`
}

func captured(name string) capture {
	raw, err := testdata.ReadFile("testdata/" + name + ".json")
	if err != nil {
		panic(fmt.Sprintf("no captured answer %q: testdata has the names", name))
	}
	var c capture
	if err := json.Unmarshal(raw, &c); err != nil {
		panic(fmt.Sprintf("captured answer %q: %v", name, err))
	}
	return c
}

// Captured returns the answer of testdata/<name>.json. It panics where there is none.
func Captured(name string) Answer {
	c := captured(name)
	if c.Status == 0 {
		panic(fmt.Sprintf("%q is a failed operation, not an answer: take Failed", name))
	}
	body := []byte(c.Text)
	if c.Body != nil {
		body = c.Body
	}
	return Answer{Status: c.Status, ContentType: c.ContentType, Body: body}
}

// About returns the answer with the names of a call in the place of the captured ones.
func (a Answer) About(project, zone, instance string) Answer {
	a.Body = []byte(about(string(a.Body), project, zone, instance))
	return a
}

func about(text, project, zone, instance string) string {
	pairs := []string{}
	for old, now := range map[string]string{
		CapturedProject: project, CapturedZone: zone, CapturedInstance: instance,
	} {
		if now != "" {
			pairs = append(pairs, old, now)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Failure is what an operation ends with when it fails after it was accepted.
// https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations
type Failure struct {
	Error   *computepb.Error
	Code    int32  // httpErrorStatusCode
	Message string // httpErrorMessage
}

// Failed returns the failure of testdata/<name>.json about the names of a call; empty
// names keep the captured ones. It panics where there is none.
func Failed(name, project, zone, instance string) Failure {
	c := captured(name)
	if c.Operation == nil {
		panic(fmt.Sprintf("%q is an answer, not a failed operation: take Captured", name))
	}
	var op computepb.Operation
	if err := protojson.Unmarshal([]byte(about(string(c.Operation), project, zone, instance)), &op); err != nil {
		panic(fmt.Sprintf("captured operation %q: %v", name, err))
	}
	return Failure{Error: op.GetError(), Code: op.GetHttpErrorStatusCode(), Message: op.GetHttpErrorMessage()}
}
