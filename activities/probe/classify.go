package probe

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"syscall"
)

// squidError is the header in which squid names its page of error.
const squidError = "X-Squid-Error"

// answerCause says what a final answer to CONNECT means. Pure.
func answerCause(status int, header textproto.MIMEHeader) Cause {
	switch {
	case status >= 200 && status <= 299:
		return CauseNone
	case status == http.StatusProxyAuthRequired, status == http.StatusUnauthorized && speaksOfProxyAuth(header):
		return CauseAuthRequired
	case status == http.StatusBadRequest:
		return CauseBadRequest
	}
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden,
		http.StatusTooManyRequests, http.StatusUnavailableForLegalReasons:
		return CauseDenied
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported: // no CONNECT here: a web server
		return CauseBadResponse
	}
	switch {
	case status < 500:
		return CauseBadResponse
	case failedToResolve(status, header):
		return CauseTargetDNS
	default:
		return CauseTargetUnreachable
	}
}

// speaksOfProxyAuth tells a proxy that says 401 where it means 407, as tinyproxy does
// about wrong credentials, from a web server.
func speaksOfProxyAuth(header textproto.MIMEHeader) bool {
	return header.Get("Proxy-Authenticate") != "" || isTinyproxy(header)
}

func isTinyproxy(header textproto.MIMEHeader) bool {
	return strings.HasPrefix(strings.ToLower(header.Get("Server")), "tinyproxy")
}

// failedToResolve: squid keeps 500 for names that it cannot resolve.
func failedToResolve(status int, header textproto.MIMEHeader) bool {
	page := header.Get(squidError)
	return strings.HasPrefix(page, "ERR_DNS_FAIL") || page != "" && status == http.StatusInternalServerError
}

// dialCause says what a failed connect to the proxy means. Pure.
func dialCause(err error) Cause {
	switch {
	case isOurs(err):
		return CauseOurs
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return CauseNotListening
	default:
		return CauseNotReachable
	}
}

// isOurs tells faults of the prober's own machine.
func isOurs(err error) bool {
	for _, ours := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM,
	} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return false
}

// The faults of an answer that are no faults of the connection.
var (
	errNotHTTP  = errors.New("the answer is not HTTP")
	errTooLong  = errors.New("the headers do not end")
	errMangled  = errors.New("the answer is no HTTP answer")
	errInterims = errors.New("interim answers do not end")
)

// readCause says what a failed read of the answer means; got is how many bytes had
// come. Pure.
func readCause(err error, got int) Cause {
	switch {
	case isOurs(err):
		return CauseOurs
	case got > 0:
		return CauseBadResponse
	case isTimeout(err):
		return CauseTimeout
	default:
		return CauseNoResponse
	}
}

// tlsCause says what a failed handshake through the tunnel means. Pure.
func tlsCause(err error) Cause {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return CauseNotTLS
	}
	if _, closed := errors.AsType[*net.OpError](err); closed && !isAlert(err) {
		return CauseTunnelClosed
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isTimeout(err) {
		return CauseTunnelClosed
	}
	return CauseTLSMismatch
}

// isAlert: what the other side says in an alert, Go wraps as an error of the network.
func isAlert(err error) bool {
	_, is := errors.AsType[tls.AlertError](err)
	return is || strings.Contains(err.Error(), "remote error: tls:")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
