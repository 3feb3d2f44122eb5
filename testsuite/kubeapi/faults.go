package kubeapi

import (
	"errors"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errNoPods is a mistake in this package.
var errNoPods = errors.New("the tracker holds something else than Pods")

// Fault answers a request in the place of the server, and says whether it has.
type Fault func(w http.ResponseWriter, r *http.Request, a Action) bool

// Only lets a fault meet one kind of call.
func Only(verb, resource string, f Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, a Action) bool {
		return a.Verb == verb && a.Resource == resource && f(w, r, a)
	}
}

// OnlyIn lets a fault meet the calls about one namespace.
func OnlyIn(namespace string, f Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, a Action) bool {
		return a.Namespace == namespace && f(w, r, a)
	}
}

// Once lets a fault meet one call.
func Once(f Fault) Fault {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request, a Action) (answered bool) {
		once.Do(func() { answered = f(w, r, a) })
		return answered
	}
}

// Answer answers with a status.
func Answer(err error) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ Action) bool { fail(w, err); return true }
}

// Body answers with bytes as they are.
func Body(status int, header map[string]string, body []byte) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ Action) bool {
		for key, value := range header {
			w.Header().Set(key, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return true
	}
}

// CutOff drops the connection.
func CutOff(http.ResponseWriter, *http.Request, Action) bool { panic(http.ErrAbortHandler) }

// Confused answers as a gateway without a server behind it, or a path that is not there.
func Confused(w http.ResponseWriter, r *http.Request, a Action) bool {
	if a.Verb == "list" {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, false))
		return true
	}
	page := []byte("<html><body><h1>404 Not Found</h1></body></html>")
	return Body(http.StatusNotFound, map[string]string{"Content-Type": "text/html"}, page)(w, r, a)
}

// OverQuota is the refusal of a namespace that is full.
func OverQuota() error {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "proxy-x", errNoPods)
	status.ErrStatus.Message = `pods "proxy-x" is forbidden: exceeded quota: small, ` +
		`requested: pods=1, used: pods=5, limited: pods=5`
	return status
}

// Silence lets no Pod start, until the returned function is called.
func (s *Server) Silence() (restore func()) {
	s.set(func() { s.faults.silent = true })
	return func() { s.set(func() { s.faults.silent = false }) }
}

// Pages bounds the pages of a listing, whatever is asked for.
func (s *Server) Pages(size int64) { s.set(func() { s.faults.pageSize = size }) }

// SwapToken changes the one token that is taken, and returns it.
func (s *Server) SwapToken() (token string) {
	s.set(func() {
		s.token += "-next"
		token = s.token
	})
	return token
}

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Stall takes calls and answers none, until the returned function is called.
func (s *Server) Stall() (release func()) {
	released := make(chan struct{})
	heal := s.Break(func(_ http.ResponseWriter, r *http.Request, _ Action) bool {
		select {
		case <-released:
		case <-r.Context().Done():
		}
		return false
	})
	return sync.OnceFunc(func() { heal(); close(released) })
}

// LosesTheAnswer does what is asked, and the client never hears of it.
func (s *Server) LosesTheAnswer(_ http.ResponseWriter, r *http.Request, a Action) bool {
	if _, err := s.answer(r, a); err != nil {
		return false
	}
	panic(http.ErrAbortHandler)
}

// Do does something before the server answers.
func Do(what func()) Fault {
	return func(http.ResponseWriter, *http.Request, Action) bool { what(); return false }
}

// Unauthorized does something once, before a token is refused.
func (s *Server) Unauthorized(what func()) {
	s.set(func() { s.faults.unauthorized = sync.OnceFunc(what) })
}

// Connections returns a function that counts the connections that are open.
func (s *Server) Connections() func() int {
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.open
	}
}
