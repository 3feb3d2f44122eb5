package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/docs/samples"
)

func TestDecodeProxiesReadsEveryDocument(t *testing.T) {
	t.Parallel()
	a := v1.Proxy{
		Metadata: v1.Metadata{Namespace: "crawl", Name: "a"}, Spec: v1.ProxySpec{Provider: "local", Port: 3128},
	}
	b := a
	b.Metadata.Namespace, b.Metadata.Name = "other", "b"
	aliased := a
	aliased.Spec.Placement.Zone = "a"
	whole := v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: "crawl", Name: "a", UID: "u", Generation: 2,
			CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
		Spec: v1.ProxySpec{
			Provider: "gcp", Port: 1, Placement: v1.Placement{Zone: "z"},
			CloudInit:   v1.CloudInit{SecretRef: &v1.SecretRef{Name: "n", Key: "k"}},
			HealthCheck: v1.HealthCheck{Disabled: true, ReplaceAfter: "5m"},
		},
		Status: v1.ProxyStatus{Phase: v1.PhaseRunning, Conditions: []v1.Condition{{Type: "Held"}}},
	}
	tests := map[string]struct {
		text string
		want []v1.Proxy
	}{
		"one of YAML": {
			"metadata: {name: a}\nspec: {provider: local, port: 3128}\n", []v1.Proxy{a},
		},
		"two of YAML with empty ones around": {
			"# nothing\n---\nmetadata: {name: a}\nspec: {provider: local, port: 3128}\n---\n---\n" +
				"metadata: {name: b, namespace: other}\nspec: {provider: local, port: 3128}\n---\n",
			[]v1.Proxy{a, b},
		},
		"two of JSON, indented with tabs": {
			"{\n\t\"metadata\": {\"name\": \"a\"},\n\t\"spec\": {\"provider\": \"local\", \"port\": 3128}\n}\n" +
				`{"metadata": {"name": "b", "namespace": "other"}, "spec": {"provider": "local", "port": 3128}}`,
			[]v1.Proxy{a, b},
		},
		"an alias": {
			"metadata: {name: &n a}\nspec: {provider: local, port: 3128, placement: {zone: *n}}\n", []v1.Proxy{aliased},
		},
		"what get -o yaml prints": {
			"metadata: {name: a, uid: u, generation: 2, createdAt: 2026-01-02T03:04:05Z}\n" +
				"spec: {provider: gcp, port: 1, placement: {zone: z}, cloudInit: {secretRef: {name: n, key: k}},\n" +
				" healthCheck: {disabled: true, replaceAfter: 5m}}\n" +
				"status: {phase: Running, conditions: [{type: Held, status: \"\", reason: \"\", " +
				"lastTransitionTime: \"0001-01-01T00:00:00Z\"}]}\n",
			[]v1.Proxy{whole},
		},
		"null for nothing": {
			"metadata: {name: a, labels: null}\nspec: {provider: local, port: 3128, cloudInit: ~}\n", []v1.Proxy{a},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeProxies("f.yaml", strings.NewReader(tt.text), "crawl")
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAListIsReadItemByItem(t *testing.T) {
	t.Parallel()
	const a = `{"metadata": {"name": "a"}, "spec": {"provider": "p", "port": 1}}`
	got, err := DecodeProxies("f", strings.NewReader(`{"items": [`+a+`, `+strings.Replace(a, `"a"`, `"b"`, 1)+`]}`), "d")
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "b", got[1].Metadata.Name)
	_, err = DecodeProxies("f", strings.NewReader(`{"items": [`+a+`, {"specs": 1}]}`), "d")
	require.ErrorContains(t, err, "f: document 1: items[1]: line 2: specs: unknown field")
	_, err = DecodeProxies("f", strings.NewReader(`{"items": []}`), "d")
	require.ErrorContains(t, err, "f: holds no Proxy")
}

func TestAnUnquotedDateIsTextWhereTextIsWanted(t *testing.T) {
	t.Parallel()
	got, err := DecodeProxies("f", strings.NewReader(
		"metadata: {name: a, labels: {since: 2026-01-31}}\nspec: {provider: local, port: 1}\n"), "default")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"since": "2026-01-31"}, got[0].Metadata.Labels)
}

func TestJSONKeepsLargeNumbers(t *testing.T) {
	t.Parallel()
	const odd = 9007199254740993 // a float64 would be even
	got, err := DecodeProxies("f", strings.NewReader(
		`{"metadata":{"name":"a","generation":9007199254740993},"spec":{"provider":"a","port":1}}`), "d")
	require.NoError(t, err)
	require.Equal(t, int64(odd), got[0].Metadata.Generation)
}

func TestJSONEscapesAreRead(t *testing.T) {
	t.Parallel()
	got, err := DecodeProxies("f", strings.NewReader(
		`{"metadata":{"name":"a"},"spec":{"provider":"a","port":1,"cloudInit":{"inline":"<\ud83d\ude00\/\u2028>\n"}}}`), "d")
	require.NoError(t, err)
	require.Equal(t, "<😀/\u2028>\n", got[0].Spec.CloudInit.Inline)
}

func TestDecodeProxiesNamesDocumentFieldAndValue(t *testing.T) {
	t.Parallel()
	const good = "metadata: {name: a}\nspec: {provider: local, port: 1}\n---\n"
	tests := map[string]struct {
		text string
		want []string
	}{
		"nothing at all": {"", []string{"f.yaml: holds no Proxy"}},
		"only a comment": {"# later\n---\n", []string{"f.yaml: holds no Proxy"}},
		"text":           {"hello\n", []string{`f.yaml: document 1: line 1: the document: "hello" is not a set of fields`}},
		"a list":         {"- a\n", []string{"document 1: line 1: the document: a list is not a set of fields"}},
		"an unknown field": {
			good + "metadata: {name: b}\nspecs: {}\n",
			[]string{"f.yaml: document 2: line 5: specs: unknown field; there are metadata, spec, status"},
		},
		"an unknown field below": {
			"metadata: {name: b}\nspec:\n  prot: 1\n",
			[]string{"document 1: line 3: spec.prot: unknown field", "port, provider"},
		},
		"a field twice": {
			"metadata: {name: b, name: c}\n", []string{"document 1: line 1: metadata.name: is there twice"},
		},
		"a port that is a word": {
			good + "metadata: {name: b}\nspec: {provider: local, port: http}\n",
			[]string{`f.yaml: document 2: line 5: spec.port: "http" is not a whole number`},
		},
		"a port with a fraction": {
			"metadata: {name: b}\nspec: {provider: local, port: 1.5}\n", []string{`spec.port: "1.5" is not a whole number`},
		},
		"a port that is huge": {
			"metadata: {name: b}\nspec: {provider: local, port: 99999999999999999999}\n",
			[]string{`spec.port: "99999999999999999999" is not a whole number`},
		},
		"a port in quotes": {
			"metadata: {name: b}\nspec: {provider: local, port: \"80\"}\n", []string{`spec.port: "80" is not a whole number`},
		},
		"a port out of range": {
			"metadata: {name: b}\nspec: {provider: local, port: 70000}\n",
			[]string{`document 1: spec.port: "70000" is not within 1 to 65535`},
		},
		"a name that is a number": {
			"metadata: {name: 7}\n", []string{`metadata.name: "7" is not text; put it in quotes`},
		},
		"a wrong name and a missing provider": {
			"metadata: {name: A_b}\nspec: {port: 1}\n", []string{`metadata.name: "A_b" is not a DNS label`, `spec.provider: ""`},
		},
		"a label key that is a number": {
			"metadata: {name: a, labels: {1: b}}\n", []string{"metadata.labels.1: the name is not text"},
		},
		"a label that is a truth value": {
			"metadata: {name: a, labels: {b: true}}\n", []string{`metadata.labels.b: "true" is not text`},
		},
		"a truth value that is a word": {
			"spec: {healthCheck: {disabled: maybe}}\n", []string{`spec.healthCheck.disabled: "maybe" is neither true nor false`},
		},
		"a list in the place of text": {
			"spec: {provider: [a]}\n", []string{"spec.provider: a list is not a single value"},
		},
		"text in the place of a list": {
			"status: {conditions: none}\n", []string{`status.conditions: "none" is not a list`},
		},
		"a fault in a list": {
			"status: {conditions: [{type: 1}]}\n", []string{`status.conditions[0].type: "1" is not text`},
		},
		"a time that is none": {
			"metadata: {createdAt: today}\n", []string{`metadata.createdAt: "today" is not a time`},
		},
		"broken YAML in the second document": {
			good + "a: [\n", []string{"f.yaml: document 2: is no YAML: "},
		},
		"broken JSON": {`{"metadata": {`, []string{"f.yaml: document 1: is no JSON: "}},
		"broken JSON in the second document": {
			`{"metadata": {"name": "a"}, "spec": {"provider": "a", "port": 1}} {"spec": }`, []string{"document 2: is no JSON: "},
		},
		"a label that is no label": {
			"metadata: {name: a, labels: {b: \"😀\"}}\n", []string{`metadata.labels.b: "😀" is not a label value`},
		},
		"a long value is cut": {
			"spec: {port: " + strings.Repeat("x", 300) + "}\n", []string{`spec.port: "` + strings.Repeat("x", 80) + `…" is not`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeProxies("f.yaml", strings.NewReader(tt.text), "default")
			require.Error(t, err)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestNoErrorHoldsUserData(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, text := range map[string]string{
		"a list in the place of inline":  "spec: {cloudInit: {inline: [" + secret + "]}}\n",
		"a number in the place of text":  "spec: {cloudInit: {inlineBase64: 0x0" + "1}}\n",
		"text in the place of cloudInit": "spec: {cloudInit: " + secret + "}\n",
		"wrong base64":                   "spec: {provider: a, port: 1, cloudInit: {inlineBase64: " + secret + "!}}\n",
		"two at once": "metadata: {name: a}\nspec: {provider: a, port: 1, cloudInit: {inline: " + secret +
			", inlineBase64: aHVudGVyMg==}}\n",
		"a broken document":   "spec: {cloudInit: {inline: 'x\n" + secret + "\n",
		"an unknown alias":    "spec: {cloudInit: {inline: *" + secret + "}}\n",
		"JSON that is cut":    `{"spec": {"cloudInit": {"inline": "` + secret,
		"text that is no set": "spec:\n  cloudInit: |\n    password: " + secret + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeProxies("f.yaml", strings.NewReader(text), "default")
			require.Error(t, err)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "0x01")
		})
	}
}

func TestTheSamplesAreTwoProxiesOnTwoPorts(t *testing.T) {
	t.Parallel()
	got, err := devSettings{}.sampleProxies()
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, v1.Metadata{
		Namespace: "default", Name: "sample-a", Labels: map[string]string{"team": "samples"},
	}, got[0].Metadata)
	require.Equal(t, "sample-b", got[1].Metadata.Name)
	require.Equal(t, v1.ProxySpec{Provider: "local", Port: 3128}, got[0].Spec)
	require.Equal(t, v1.ProxySpec{Provider: "local", Port: 3129}, got[1].Spec)

	file, err := os.ReadFile("../docs/samples/proxies.yaml")
	require.NoError(t, err)
	require.Equal(t, string(file), string(samples.Proxies))
}
