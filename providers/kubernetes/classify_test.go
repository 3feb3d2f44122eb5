package kubernetes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
)

// inCall wraps an error as net/http does.
func inCall(err error) error {
	return fmt.Errorf("a call: %w", &url.Error{Op: "Get", URL: "https://api.example", Err: err})
}

// The answers of an API server are in TestCapturedAnswers.
func TestErrorsThatAreNoAnswer(t *testing.T) {
	t.Parallel()
	verification := func(err error) error { return inCall(&tls.CertificateVerificationError{Err: err}) }
	for name, c := range map[string]struct {
		err  error
		want providers.Class
		hint string
	}{
		"no error of the backend at all": {errors.New("unknown"), providers.ErrTransient, ""},
		"time is up":                     {inCall(context.DeadlineExceeded), providers.ErrTransient, ""},
		"called off":                     {inCall(context.Canceled), providers.ErrTransient, ""},
		"the connection ends":            {inCall(io.ErrUnexpectedEOF), providers.ErrTransient, ""},
		"no name": {
			inCall(&net.DNSError{Err: "no such host", IsNotFound: true}), providers.ErrTransient, "",
		},
		"an authority that is not trusted": {
			verification(x509.UnknownAuthorityError{}), providers.ErrPermanent, "authority",
		},
		"another name": {
			verification(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}), providers.ErrPermanent, "name",
		},
		"an expired certificate": {
			verification(x509.CertificateInvalidError{Reason: x509.Expired}), providers.ErrPermanent, "renew",
		},
		"a certificate for something else": {
			verification(x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}), providers.ErrPermanent, "cannot be used",
		},
		"a client certificate that is refused": {inCall(tls.AlertError(45)), providers.ErrPermanent, "client certificate"},
		"no client certificate":                {inCall(tls.AlertError(116)), providers.ErrPermanent, "client certificate"},
		"a handshake that fails otherwise":     {inCall(tls.AlertError(80)), providers.ErrTransient, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, kubernetes.Classify(c.err, providers.OpGet, "x"))
			if c.hint == "" {
				require.Empty(t, kubernetes.Hint(c.err))
			}
			require.Contains(t, kubernetes.Hint(c.err), c.hint)
		})
	}
}
