package gcefake

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// call is a request on its way through a handler, under the server's lock.
type call struct {
	*Server
	method  string // as the reference names it: instances.insert
	project string
	scope   string // zones/us-central1-a, regions/us-central1, global
	name    string // of the resource; "" for the collection
	query   url.Values
	body    []byte
	now     time.Time
}

// handler answers a call with a message, or whatever marshals to JSON, or an Answer
// as its error.
type handler func(c *call) (any, error)

// maxBody is more than any request may have: metadata alone may have 512 KiB.
const maxBody = 4 << 20

func (s *Server) newCall(r *http.Request, method string) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "badRequest", "the body cannot be read: %v", err)
	}
	c := &call{
		Server: s, method: method, project: project(r), scope: "global", name: r.PathValue("name"),
		query: r.URL.Query(), body: body,
	}
	if zone := r.PathValue("zone"); zone != "" {
		c.scope = "zones/" + zone
	}
	if region := r.PathValue("region"); region != "" {
		c.scope = "regions/" + region
	}
	c.named()
	return c, nil
}

// project is that of the address; Resource Manager puts its verb behind a colon.
// https://cloud.google.com/resource-manager/reference/rest/v1/projects/testIamPermissions
func project(r *http.Request) string {
	return strings.TrimSuffix(r.PathValue("project"), ":testIamPermissions")
}

// named takes the name of what is inserted from the body, for faults and the journal.
func (c *call) named() {
	var body struct {
		Name string `json:"name"`
	}
	if c.name == "" && json.Unmarshal(c.body, &body) == nil {
		c.name = body.Name
	}
}

// zone returns the zone of the call; "" for what is not of a zone.
func (c *call) zone() string {
	zone, _ := strings.CutPrefix(c.scope, "zones/")
	if zone == c.scope {
		return ""
	}
	return zone
}

func (c *call) key() key { return key{c.project, c.scope, c.name} }

// read parses the body. What the API does not know is refused:
// https://cloud.google.com/apis/design/errors, INVALID_ARGUMENT.
func (c *call) read(into proto.Message) error {
	if err := protojson.Unmarshal(c.body, into); err != nil {
		return refusal(http.StatusBadRequest, "badRequest", "Invalid JSON payload received. %v", err)
	}
	return nil
}

// encode renders what a handler returned.
func encode(out any) ([]byte, error) {
	if message, ok := out.(proto.Message); ok {
		return protojson.Marshal(message)
	}
	return json.Marshal(out)
}

// items renders messages for a list.
func items[M proto.Message](all []M) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(all))
	for _, one := range all {
		raw, err := protojson.Marshal(one)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}
