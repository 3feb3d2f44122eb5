package gcefake

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
)

// entry is a resource in a list.
type entry struct {
	key
	msg proto.Message
}

func byPlace(a, b entry) int {
	return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.name, b.name))
}

// mostResults is the largest maxResults, and what is taken without one.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/list
const mostResults = 500

// page sorts and filters, and returns what comes after the token, at most maxResults,
// and the token of the page after it.
func (c *call) page(all []entry) (page []entry, next string, err error) {
	all, err = filtered(all, c.query.Get("filter"))
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(all, byPlace)
	from := 0
	if token := c.query.Get("pageToken"); token != "" {
		if from, err = after(all, token); err != nil {
			return nil, "", err
		}
	}
	most, err := c.maxResults()
	if err != nil {
		return nil, "", err
	}
	to := min(from+most, len(all))
	if to < len(all) {
		next = token(all[to-1])
	}
	return all[from:to], next, nil
}

func (c *call) maxResults() (int, error) {
	text := c.query.Get("maxResults")
	if text == "" {
		return c.pageSize, nil
	}
	most, err := strconv.Atoi(text)
	if err != nil || most < 0 || most > mostResults {
		return 0, invalidField("maxResults", text, "Must be between 0 and 500.")
	}
	if most == 0 {
		most = mostResults
	}
	return min(most, c.pageSize), nil
}

// token is the place of the last entry of a page: what is added or removed between two
// pages moves nothing else.
func token(last entry) string {
	return base64.URLEncoding.EncodeToString([]byte(last.scope + " " + last.name))
}

func after(all []entry, token string) (int, error) {
	raw, err := base64.URLEncoding.DecodeString(token)
	if err != nil {
		return 0, refusal(http.StatusBadRequest, "invalid", "Invalid value for field 'pageToken': '%s'.", token)
	}
	for i, e := range all {
		if e.scope+" "+e.name > string(raw) {
			return i, nil
		}
	}
	return len(all), nil
}

// list answers with the resources of one scope.
func (c *call) list(kind string, all []entry) (any, error) {
	page, next, err := c.page(all)
	if err != nil {
		return nil, err
	}
	raw, err := items(messages(page))
	if err != nil {
		return nil, err
	}
	out := map[string]any{"kind": kind, "id": "projects/" + c.project + "/" + c.scope}
	if len(raw) > 0 {
		out["items"] = raw
	}
	if next != "" {
		out["nextPageToken"] = next
	}
	return out, nil
}

func messages(page []entry) []proto.Message {
	out := make([]proto.Message, 0, len(page))
	for _, e := range page {
		out = append(out, e.msg)
	}
	return out
}

// scoped is what an aggregated list has for one zone.
type scoped map[string]any

func warning(code, message, scope string) map[string]any {
	out := map[string]any{"code": code, "message": message}
	if scope != "" {
		out["data"] = []map[string]string{{"key": "scope", "value": scope}}
	}
	return out
}

func render(page []entry, word string) (map[string]scoped, error) {
	byScope := map[string][]json.RawMessage{}
	for _, e := range page {
		raw, err := items([]proto.Message{e.msg})
		if err != nil {
			return nil, err
		}
		byScope[e.scope] = append(byScope[e.scope], raw...)
	}
	out := map[string]scoped{}
	for scope, raw := range byScope {
		out[scope] = scoped{word: raw}
	}
	return out, nil
}
