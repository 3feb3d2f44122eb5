package providertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func errorRows() []Row {
	return []Row{
		{
			Name: "ErrorsSayWhatFailed", Section: "5", run: errorsSayWhatFailed,
			Breaks: "metrics and spans are labelled by the class, the workflow branches on it, people read the rest",
		},
		{
			Name: "SecretsStayInside", Section: "2.1", run: secretsStayInside,
			Breaks: "cloud-init and credentials land in logs, histories and traces",
		},
	}
}

// mustBe checks an error's form and class.
func (s *scene) mustBe(err error, op string, class providers.Class) {
	s.Helper()
	require.Error(s, err, op)
	e, ok := errors.AsType[*providers.Error](err)
	require.True(s, ok, "%s returns %T, want *providers.Error: %v", op, err, err)
	require.Equal(s, class, e.Class, "class of: %v", err)
	require.ErrorIs(s, err, class)
	require.Equal(s, op, e.Op, "operation of: %v", err)
	require.Error(s, e.Err, "the backend's own error is kept in: %v", err)
	if s.suite.Name != "" {
		require.Equal(s, s.suite.Name, e.Provider, "provider of: %v", err)
	}
	require.NotEmpty(s, e.Provider, "provider of: %v", err)
	if op == providers.OpGet || op == providers.OpDelete {
		require.NotEmpty(s, e.ID, "ID of: %v", err)
	}
}

func errorsSayWhatFailed(s *scene) {
	held, _ := s.created()
	held.UID += "-other"
	for _, id := range s.neverWas() {
		for _, c := range s.calls(held, id) {
			switch c.op {
			case providers.OpCreate:
				s.mustBe(c.run(s.Context()), c.op, providers.ErrPermanent)
			case providers.OpGet:
				s.mustBe(c.run(s.Context()), c.op, providers.ErrNotFound)
			}
		}
	}
	const malformed = "not an ID"
	for _, c := range s.calls(held, malformed)[1:] {
		if c.op != providers.OpList {
			s.mustBe(c.run(s.Context()), c.op, providers.ErrPermanent)
		}
	}
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	for _, c := range s.calls(held, malformed) {
		if c.op == providers.OpList {
			s.mustBe(c.run(ended), c.op, providers.ErrTransient)
		}
	}
}

// sentinel stands for a secret in cloud-init.
const sentinel = "s3ntinel-of-cloud-init"

func secretsStayInside(s *scene) {
	var shown bytes.Buffer
	// Text and wire: every level that there is.
	ctx, cancel := context.WithCancel(providers.WithLogger(s.Context(),
		slog.New(slog.NewTextHandler(&shown, &slog.HandlerOptions{Level: providers.LevelWire - 1}))))
	defer cancel()
	req := s.request()
	req.CloudInit = []byte("#cloud-config\n# " + sentinel + "\n")
	held := req
	held.UID += "-other"
	id, err := s.p.Create(ctx, req)
	require.NoError(s, err)
	for _, r := range []providers.CreateRequest{req, held} {
		for _, c := range s.calls(r, id) {
			fmt.Fprintln(&shown, c.run(ctx))
		}
	}
	found, err := s.p.Get(ctx, id)
	fmt.Fprintln(&shown, found, err)
	all, err := s.p.ListByTag(ctx)
	fmt.Fprintln(&shown, all, err)
	if checker, ok := providers.As[providers.Checker](s.p); ok {
		fmt.Fprintln(&shown, checker.Check(ctx))
	}
	cancel()
	for _, c := range s.calls(req, id) {
		fmt.Fprintln(&shown, c.run(ctx))
	}
	for _, secret := range append([]string{sentinel}, s.suite.Secrets...) {
		require.NotContains(s, shown.String(), secret)
		require.NotContains(s, shown.String(), base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	require.NotContains(s, shown.String(), base64.StdEncoding.EncodeToString(req.CloudInit))
}
