package kubernetes_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

const (
	soon = 20 * time.Second
	tick = 10 * time.Millisecond
)

// Cloud-init, a token and a value of a podTemplate go through everything that can fail,
// with every log on, under a span.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const cloudInit, inTemplate = "s3ntinel-cloud-init", "s3ntinel-template"
	var out bytes.Buffer
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "test")
	ctx = providers.WithLogger(ctx, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: providers.LevelWire})))
	l := newLab(t, template(
		`{"spec": {"containers": [{"name": "proxy", "env": [{"name": "X", "value": "`+inTemplate+`"}]}]}}`))
	req := request("u")
	req.CloudInit = []byte("password: " + cloudInit)
	said := func(err error) {
		if err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	tour := func() {
		id, err := l.Create(ctx, req)
		said(err)
		_, err = l.Get(ctx, id)
		said(err)
		_, err = l.ListByTag(ctx)
		said(err)
		said(l.Delete(ctx, id))
		fmt.Fprintln(&out, l.Provider.(*kubernetes.Provider).Check(ctx))
	}
	tour()
	stored, err := json.Marshal(l.server.Pods(t))
	require.NoError(t, err)
	require.NotContains(t, string(stored), cloudInit, "it is ignored, and goes nowhere")
	for _, fault := range []kubeapi.Fault{
		kubeapi.CutOff, kubeapi.Confused, kubeapi.Answer(kubeapi.OverQuota()), kubeapi.Answer(errors.New("internal")),
	} {
		heal := l.server.Break(fault)
		tour()
		heal()
	}
	l.server.SwapToken()
	tour()
	require.NoError(t, os.WriteFile(l.kubeconfig, []byte("users: {token: ["+kubeapi.Token), 0o600))
	tour()
	parent.End()
	for _, span := range spans.Ended() {
		fmt.Fprintln(&out, span.Name(), span.Attributes(), span.Events(), span.Status())
	}
	require.Contains(t, out.String(), "kubernetes.POST pods")
	require.Contains(t, out.String(), fmt.Sprint("cloudInitBytesIgnored=", len(req.CloudInit)))
	for _, secret := range []string{cloudInit, inTemplate, kubeapi.Token} {
		require.NotContains(t, out.String(), secret)
		require.NotContains(t, out.String(), base64.StdEncoding.EncodeToString([]byte(secret)))
	}
}

// Errors about a template name keys, since a value may be a secret.
func TestAPodTemplateThatDoesNotFitIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"spec": {"containers": "s3ntinel"}}`, `{"spec": {"hostname": ["s3ntinel"]}}`,
		`{"spec": {"containers": [{"resources": {"limits": {"cpu": "s3ntinel"}}}]}}`,
		`{"spec": {"activeDeadlineSeconds": "s3ntinel"}}`, `["s3ntinel"]`, `"s3ntinel"`,
	} {
		cfg := kubernetes.Config{Namespace: namespace, ClusterRanges: []string{"10.0.0.0/8"}, PodTemplate: []byte(text)}
		_, err := kubernetes.New(t.Context(), providerName, installation, cfg)
		require.ErrorContains(t, err, "podTemplate", text)
		require.NotContains(t, err.Error(), "s3ntinel", text)
	}
}

// The guide shows the Role and the optional rights as they are shipped.
func TestTheGuideShowsTheRightsAsShipped(t *testing.T) {
	t.Parallel()
	guide := read(t, "docs", "providers", "kubernetes.md")
	for _, file := range []string{"rbac.yaml", "rbac-nodes.yaml"} {
		require.Contains(t, guide, "\n```yaml\n"+read(t, "deploy", "kubernetes", file)+"```\n", file)
	}
	require.Len(t, kubeapi.Rules(t, rolePath, installation), 5)
	require.Equal(t, []kubeapi.Rule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
		kubeapi.Rules(t, nodesPath, installation))
	var component struct {
		Kind      string   `json:"kind"`
		Resources []string `json:"resources"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "kubernetes", "kustomization.yaml")), &component))
	require.Equal(t, "Component", component.Kind)
	require.Equal(t, []string{"rbac.yaml"}, component.Resources, "no right for the whole cluster unless it is asked for")
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	require.NoError(t, err)
	return string(data)
}
