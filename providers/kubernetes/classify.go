package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
)

// classed is an error whose class was decided where it arose.
type classed struct {
	class providers.Class
	err   error
}

func (c *classed) Error() string { return c.err.Error() }
func (c *classed) Unwrap() error { return c.err }

func permanent(format string, args ...any) error {
	return &classed{providers.ErrPermanent, fmt.Errorf(format, args...)}
}

func transient(format string, args ...any) error {
	return &classed{providers.ErrTransient, fmt.Errorf(format, args...)}
}

// throttled is a call that the API server kept refusing for its rate, until time was up.
type throttled struct {
	after time.Duration // that the server asked to wait; 0: it did not say
	err   error
}

func (t *throttled) Error() string {
	return fmt.Sprintf("the API server refuses for now (429, retry after %s): %v", t.after, t.err)
}
func (t *throttled) Unwrap() error { return t.err }

// classify gives every error its class; what is unknown is Transient. Only a Get of the
// Pod that the server itself misses is NotFound: a 404 may be a page of a gateway, or
// about a namespace or a path. Contract §5.
func classify(err error, op, name string) providers.Class {
	if c, ok := errors.AsType[*classed](err); ok {
		return c.class
	}
	if _, ok := errors.AsType[*throttled](err); ok {
		return providers.ErrQuotaExceeded
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return classifyStatus(status.Status(), op, name)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return providers.ErrTransient
	}
	if untrusted(err) != "" {
		return providers.ErrPermanent
	}
	return providers.ErrTransient
}

func classifyStatus(s metav1.Status, op, name string) providers.Class {
	if s.Code == http.StatusTooManyRequests {
		return providers.ErrQuotaExceeded
	}
	if fromElsewhere(s) {
		return classifyPage(s)
	}
	switch s.Code {
	case http.StatusNotFound:
		return classifyMissing(s, op, name)
	case http.StatusForbidden:
		return classifyForbidden(s)
	case http.StatusUnauthorized, http.StatusBadRequest, http.StatusUnprocessableEntity,
		http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType:
		return providers.ErrPermanent
	default:
		return providers.ErrTransient
	}
}

// classifyPage is about an answer that is none of the API server's. What denies access
// stays until somebody changes it; the rest may be a gateway without a server behind it.
func classifyPage(s metav1.Status) providers.Class {
	if s.Code == http.StatusForbidden || s.Code == http.StatusUnauthorized {
		return providers.ErrPermanent
	}
	return providers.ErrTransient
}

func classifyMissing(s metav1.Status, op, name string) providers.Class {
	if op == providers.OpGet && isAbout(s, "pods", name) {
		return providers.ErrNotFound
	}
	return providers.ErrPermanent
}

// classifyForbidden tells a quota from a missing right: status, reason and details are
// the same, and only the admission's own words differ. "failed quota" is a Pod that
// names no limits, for which no waiting helps; an unknown status is a quota that is
// being counted.
func classifyForbidden(s metav1.Status) providers.Class {
	switch {
	case s.Reason != metav1.StatusReasonForbidden, hasCause(s, corev1.NamespaceTerminatingCause):
		return providers.ErrPermanent
	case strings.Contains(s.Message, " is forbidden: exceeded quota: "):
		return providers.ErrQuotaExceeded
	case strings.Contains(s.Message, " is forbidden: status unknown for quota: "):
		return providers.ErrTransient
	default:
		return providers.ErrPermanent
	}
}

// isAbout reports whether a status of the API server names an object of a resource.
func isAbout(s metav1.Status, resource, name string) bool {
	return !fromElsewhere(s) && s.Reason == metav1.StatusReasonNotFound && s.Details != nil &&
		s.Details.Kind == resource && s.Details.Name == name
}

// missing reports whether an error says that an object is not there.
func missing(err error, resource, name string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && isAbout(status.Status(), resource, name)
}

// fromElsewhere reports whether client-go made the status up, from an answer that is none.
func fromElsewhere(s metav1.Status) bool {
	return hasCause(s, metav1.CauseTypeUnexpectedServerResponse)
}

func hasCause(s metav1.Status, cause metav1.CauseType) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Type == cause {
			return true
		}
	}
	return false
}

// The alerts by which a server refuses a client certificate (RFC 8446, section 6).
const (
	firstCertificateAlert = 42
	lastCertificateAlert  = 46
	unknownAuthority      = 48
	accessDenied          = 49
	certificateRequired   = 116
)

// untrusted is what to do about certificates that one side does not take; "" for any
// other error.
func untrusted(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the API server's certificate is of an authority that the kubeconfig or ca.crt does not have"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the API server's certificate does not have the name that the configuration calls it by"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "the API server's certificate is not valid today: renew it, or set the clock of this machine"
		}
		return "the API server's certificate cannot be used"
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok && refusesClient(alert) {
		return "the API server refuses the client certificate: it may have expired, or be of another cluster"
	}
	return ""
}

func refusesClient(a tls.AlertError) bool {
	return a >= firstCertificateAlert && a <= lastCertificateAlert ||
		a == unknownAuthority || a == accessDenied || a == certificateRequired
}
