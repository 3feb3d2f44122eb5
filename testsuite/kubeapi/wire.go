package kubeapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Action is what a request does.
type Action struct{ Verb, Group, Resource, Namespace, Name string }

// actionOf reads a path such as /api/v1/namespaces/egress/pods/name.
func actionOf(r *http.Request) (a Action) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "version" || parts[0] == "readyz" {
		return Action{Verb: "get", Resource: parts[0]}
	}
	rest := parts[2:]
	if parts[0] == "apis" {
		a.Group, rest = parts[1], parts[3:]
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		a.Namespace, rest = rest[1], rest[2:]
	}
	a.Resource = rest[0]
	if len(rest) > 1 {
		a.Name = rest[1]
	}
	a.Verb = map[string]string{"POST": "create", "PUT": "update", "DELETE": "delete", "GET": "get"}[r.Method]
	if a.Verb == "get" && a.Name == "" {
		a.Verb = "list"
	}
	return a
}

func (a Action) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: a.Group, Version: "v1", Resource: a.Resource}
}

func decode(r *http.Request) (runtime.Object, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	return obj, err
}

func encode(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	obj, is := answer.(runtime.Object)
	if !is {
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	version := corev1.SchemeGroupVersion
	switch obj.(type) {
	case *networkingv1.NetworkPolicy:
		version = networkingv1.SchemeGroupVersion
	case *authorizationv1.SelfSubjectAccessReview:
		version = authorizationv1.SchemeGroupVersion
	}
	_ = scheme.Codecs.LegacyCodec(version).Encode(obj, w)
}

func fail(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	if known, is := err.(apierrors.APIStatus); is {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
