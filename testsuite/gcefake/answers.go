package gcefake

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Answer is an HTTP answer as it goes out. As an error of a handler it is the
// server's answer instead of a result.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
}

func (a Answer) Error() string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

func (a Answer) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.ContentType)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may be gone
}

const jsonType = "application/json; charset=UTF-8"

// refusal is an error in the envelope of Google's APIs: message, domain and reason
// once for the whole and once in errors[].
func refusal(status int, reason, format string, args ...any) Answer {
	message := fmt.Sprintf(format, args...)
	type detail struct {
		Message string `json:"message"`
		Domain  string `json:"domain"`
		Reason  string `json:"reason"`
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []detail{{message, "global", reason}},
	}})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return Answer{Status: status, ContentType: jsonType, Body: body}
}

// notFound names the resource as Google does, without the host: case gcp-get-404-instance.
func notFound(resource string) Answer {
	return refusal(http.StatusNotFound, "notFound", "The resource '%s' was not found", resource)
}

// alreadyExists is the answer of case gcp-create-409-instance-exists.
func alreadyExists(resource string) Answer {
	return refusal(http.StatusConflict, "alreadyExists", "The resource '%s' already exists", resource)
}

// invalidField is the answer of cases gcp-create-400-name and gcp-create-400-machine-type.
func invalidField(field, value, why string) Answer {
	return refusal(http.StatusBadRequest, "invalid", "Invalid value for field '%s': '%s'. %s", field, value, why)
}

// wrongRoute is what the front end says of an address that is none: case gcp-get-404-plain.
func wrongRoute() Answer { return Captured("get-404-plain") }

// stalePrint is the answer to a fingerprint that is not the current one.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/setLabels: 412 conditionNotMet.
func stalePrint(what string) Answer {
	return refusal(http.StatusPreconditionFailed, "conditionNotMet",
		"%s fingerprint either invalid or resource labels have changed", what)
}
