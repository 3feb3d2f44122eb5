//go:build integration && linux

package chart_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// kubernetesVersion is what the charts are rendered for: a helm that is built from its
// module knows none by itself.
const kubernetesVersion = "v1.36.3"

// path is below the folder of the module.
func path(t *testing.T, below string) string {
	t.Helper()
	root, err := devserver.Root()
	require.NoError(t, err)
	return filepath.Join(root, below)
}

// valueFiles are the cases, by the name of their file.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(path(t, "deploy/helm/egressfleet/ci/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	byName := map[string]string{}
	for _, file := range files {
		byName[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return byName
}

// helm runs a command on the chart.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append(args, path(t, "deploy/helm/egressfleet"), "--kube-version", kubernetesVersion)
	cmd := exec.CommandContext(t.Context(), path(t, "bin/helm"), args...)
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, words.String(), out)
	}
	return string(out), err
}

// render returns the objects of a release of the case's name in a namespace of that name.
func render(t *testing.T, name string, more ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	args := append([]string{"template", name, "--namespace", name, "-f", valueFiles(t)[name]}, more...)
	out, err := helm(t, args...)
	require.NoError(t, err)
	return documents(t, out)
}

func documents(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text))
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(object) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: object})
		}
	}
}

// typed are the objects of a kind.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) (found []T) {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			var one T
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &one, true))
			found = append(found, one)
		}
	}
	return found
}

func TestTheChartHasNothingToComplainOf(t *testing.T) {
	t.Parallel()
	for name, file := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := helm(t, "lint", "--strict", "-f", file)
			require.NoError(t, err)
		})
	}
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  []string
		want []string
	}{
		"no installation":               {[]string{"installation="}, []string{"/installation"}},
		"an installation with capitals": {[]string{"installation=Prod"}, []string{"/installation"}},
		"no Temporal":                   {[]string{"temporal.address="}, []string{"/temporal/address"}},
		"an API that asks for no token": {[]string{"api.tokensFile.secret="}, []string{"api.tokensFile.secret"}},
		"a key that nobody knows":       {[]string{"worker.replcas=1"}, []string{"replcas"}},
		"a port of root's":              {[]string{"api.port=80"}, []string{"/api/port"}},
		"rights of Kubernetes for another": {
			[]string{"providers[0].name=a", "providers[0].type=gcp", "providers[0].rbac.create=true"},
			[]string{"/providers/0/rbac"},
		},
		"a provider without a namespace": {
			[]string{"providers[0].name=a", "providers[0].type=kubernetes"},
			[]string{"/providers/0", "kubernetes"},
		},
		"a dashboard that nobody finds": {[]string{"dashboard.enabled=true", "dashboard.labels=null"}, []string{"dashboard"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"template", "together", "-f", valueFiles(t)["together"]}
			for _, set := range test.set {
				args = append(args, "--set", set)
			}
			_, err := helm(t, args...)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
