package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"

	"github.com/egressfleet/egressfleet/api/client"
	"github.com/egressfleet/egressfleet/internal/config"
)

// mostAnswered bounds an answer of the API, in bytes.
const mostAnswered = 4 << 20

// apiAddress is where a command finds the API, and what it shows there. Only what one
// process knows by itself is asked of it; everything else comes from Temporal.
type apiAddress struct {
	at        string // host:port, or a URL of http or https; empty: this machine
	tokenFile string
}

// flags are those of every command that asks the API. A token is no flag: the arguments
// of a process are for everybody on the machine to see.
func (a *apiAddress) flags(flags *pflag.FlagSet) {
	flags.StringVar(&a.at, "api", "", "host:port or https://host:port of the API (127.0.0.1 and "+config.EnvAPIPort+")")
	flags.StringVar(&a.tokenFile, "api-token-file", "", "file with the token to show, of the scope read ("+
		config.EnvAPIToken+" holds the token itself)")
}

// open returns a client that shows the token, where there is one. It asks nobody.
func (a *apiAddress) open() (*client.Client, error) {
	port, err := portFrom(os.Getenv, config.EnvAPIPort, defaultAPIPort)
	if err != nil {
		return nil, err
	}
	a.at = cmp.Or(a.at, net.JoinHostPort(loopback, strconv.Itoa(port)))
	base, err := baseOf(a.at)
	if err != nil {
		return nil, err
	}
	token, err := tokenFrom(a.tokenFile, os.Getenv)
	if err != nil || token == "" {
		return client.NewClient(base)
	}
	return client.NewClient(base, client.WithToken(token))
}

// baseOf reads --api.
func baseOf(at string) (string, error) {
	base := at
	if !strings.Contains(at, "://") {
		base = "http://" + at
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil ||
		u.Scheme != "http" && u.Scheme != "https" {
		return "", usagef("--api: %q is neither host:port nor https://host:port", at)
	}
	return base, nil
}

// tokenFrom reads the token to show; empty: none. Its error names where the token is
// from, and never holds it.
func tokenFrom(file string, getenv func(string) string) (string, error) {
	token, from := getenv(config.EnvAPIToken), config.EnvAPIToken
	if file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // it is the caller's own argument
		if err != nil {
			return "", usagef("--api-token-file: %w", err)
		}
		if token, from = strings.TrimSpace(string(text)), "--api-token-file: "+file; token == "" {
			return "", usagef("%s holds no token", from)
		}
	}
	if strings.ContainsAny(token, " \t") || !httpguts.ValidHeaderFieldValue(token) {
		return "", usagef("%s holds more than a token: spaces or control characters", from)
	}
	return token, nil
}

func (a *apiAddress) unreachable(err error) error {
	return codedError{
		fmt.Errorf("the API at %s cannot be reached; is \"make run\" running? (%w)", a.at, err), exitUnavailable,
	}
}

// read takes an answer apart: a 200 goes into result, and anything else is an error.
func (a *apiAddress) read(res *http.Response, result any) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, mostAnswered))
	if err != nil {
		return fmt.Errorf("the API at %s: %w", a.at, err)
	}
	if res.StatusCode == http.StatusOK {
		return json.Unmarshal(body, result)
	}
	err = fmt.Errorf("the API at %s answers %s: %w", a.at, res.Status, client.ProblemOf(res.StatusCode, body))
	if problem, told := errors.AsType[*client.Problem](err); told {
		err = fmt.Errorf("the API at %s answers %s: %s", a.at, res.Status, problem.Detail)
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w; set %s or --api-token-file to a token that may read", err, config.EnvAPIToken)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return codedError{err, exitUnavailable}
	default:
		return err
	}
}
