package v1_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestNamesOf(t *testing.T) {
	t.Parallel()
	namespace, name, ok := v1.NamesOf("crawl/a-1")
	require.True(t, ok)
	require.Equal(t, []string{"crawl", "a-1"}, []string{namespace, name})
	for _, bad := range []string{"", "a", "/a", "a/", "a/b/c", "A/b", "a/b_c", "proxy/a/b"} {
		namespace, name, ok = v1.NamesOf(bad)
		require.False(t, ok, bad)
		require.Empty(t, namespace+name, bad)
	}
}

func TestIsName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "0": true, "a-b": true, "a--b": true, "7up": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a_b": false, "a/b": false, "a b": false,
		"ä": false, "a\n": false, "\na": false, strings.Repeat("a", 64): false,
	} {
		require.Equal(t, want, v1.IsName(name), "%q", name)
	}
}

// good is a spec that nothing is wrong with.
func good(change func(*v1.ProxySpec)) v1.ProxySpec {
	s := v1.ProxySpec{Provider: "local", Port: 3128}
	change(&s)
	return s
}

func TestASpecIsTaken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1.ProxySpec){
		"with no more than it needs":   func(*v1.ProxySpec) {},
		"with everything":              func(s *v1.ProxySpec) { *s = full().Spec },
		"on the lowest port":           func(s *v1.ProxySpec) { s.Port = 1 },
		"on the highest port":          func(s *v1.ProxySpec) { s.Port = 65535 },
		"with a long placement":        func(s *v1.ProxySpec) { s.Placement.Image = strings.Repeat("i", 253) },
		"with text":                    func(s *v1.ProxySpec) { s.CloudInit.Inline = "#cloud-config" },
		"with bytes":                   func(s *v1.ProxySpec) { s.CloudInit.InlineBase64 = "AP8=" },
		"with as much as there may be": func(s *v1.ProxySpec) { s.CloudInit.Inline = long(v1.MaxInlineCloudInit) },
		"with a dotted secret":         func(s *v1.ProxySpec) { s.CloudInit.SecretRef = secret("a.b_c", "user-data.yaml") },
		"with no time at all":          func(s *v1.ProxySpec) { s.Deadlines.Delete = "0" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, good(change).Validate())
		})
	}
}

func TestASpecIsRefusedAndTheFieldNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change       func(*v1.ProxySpec)
		field, value string
	}{
		"no provider":       {func(s *v1.ProxySpec) { s.Provider = "" }, "spec.provider", ""},
		"a provider's type": {func(s *v1.ProxySpec) { s.Provider = "GCP" }, "spec.provider", "GCP"},
		"no port":           {func(s *v1.ProxySpec) { s.Port = 0 }, "spec.port", "0"},
		"a port below":      {func(s *v1.ProxySpec) { s.Port = -1 }, "spec.port", "-1"},
		"a port above":      {func(s *v1.ProxySpec) { s.Port = 65536 }, "spec.port", "65536"},
		"a line break in an image": {
			func(s *v1.ProxySpec) { s.Placement.Image = "a\nb" }, "spec.placement.image", "a\nb",
		},
		"a long region": {
			func(s *v1.ProxySpec) { s.Placement.Region = long(254) }, "spec.placement.region", long(80) + "…",
		},
		"a long zone": {
			func(s *v1.ProxySpec) { s.Placement.Zone = long(254) }, "spec.placement.zone", long(80) + "…",
		},
		"a long machine type": {
			func(s *v1.ProxySpec) { s.Placement.MachineType = long(254) }, "spec.placement.machineType", long(80) + "…",
		},
		"a long image": {
			func(s *v1.ProxySpec) { s.Placement.Image = long(254) }, "spec.placement.image", long(80) + "…",
		},
		"two user-datas": {
			func(s *v1.ProxySpec) { s.CloudInit = v1.CloudInit{Inline: "a", SecretRef: secret("a", "b")} },
			"spec.cloudInit", "2 fields",
		},
		"three user-datas": {
			func(s *v1.ProxySpec) {
				s.CloudInit = v1.CloudInit{Inline: "a", InlineBase64: "YQ==", SecretRef: secret("a", "b")}
			},
			"spec.cloudInit", "3 fields",
		},
		"user-data that is no base64": {
			func(s *v1.ProxySpec) { s.CloudInit.InlineBase64 = "hunter2!" }, "spec.cloudInit.inlineBase64", "8 characters",
		},
		"too much user-data": {
			func(s *v1.ProxySpec) { s.CloudInit.Inline = long(v1.MaxInlineCloudInit + 1) }, "spec.cloudInit", "524289 bytes",
		},
		"too many bytes of user-data": {
			func(s *v1.ProxySpec) {
				s.CloudInit.InlineBase64 = base64.StdEncoding.EncodeToString([]byte(long(v1.MaxInlineCloudInit + 1)))
			}, "spec.cloudInit", "524289 bytes",
		},
		"a secret without a name": {
			func(s *v1.ProxySpec) { s.CloudInit.SecretRef = secret("", "k") }, "spec.cloudInit.secretRef.name", "",
		},
		"a secret elsewhere": {
			func(s *v1.ProxySpec) { s.CloudInit.SecretRef = secret("../etc", "k") }, "spec.cloudInit.secretRef.name", "../etc",
		},
		"a key elsewhere": {
			func(s *v1.ProxySpec) { s.CloudInit.SecretRef = secret("a", "..") }, "spec.cloudInit.secretRef.key", "..",
		},
		"a key that is a path": {
			func(s *v1.ProxySpec) { s.CloudInit.SecretRef = secret("a", "b/c") }, "spec.cloudInit.secretRef.key", "b/c",
		},
		"a proxy's password elsewhere": {
			func(s *v1.ProxySpec) { s.HealthCheck.ProxyAuthRef = secret("a", "") }, "spec.healthCheck.proxyAuthRef.key", "",
		},
		"a long target": {
			func(s *v1.ProxySpec) { s.HealthCheck.Target = long(254) }, "spec.healthCheck.target", long(80) + "…",
		},
		"a wait that is no time": {
			func(s *v1.ProxySpec) { s.HealthCheck.ReplaceAfter = "soon" }, "spec.healthCheck.replaceAfter", "soon",
		},
		"a deadline without a unit": {
			func(s *v1.ProxySpec) { s.Deadlines.Provisioning = "30" }, "spec.deadlines.provisioning", "30",
		},
		"a deadline in the past": {
			func(s *v1.ProxySpec) { s.Deadlines.FirstHealthy = "-1s" }, "spec.deadlines.firstHealthy", "-1s",
		},
		"a deadline in days": {
			func(s *v1.ProxySpec) { s.Deadlines.Delete = "1d" }, "spec.deadlines.delete", "1d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, good(c.change).Validate(), c.field, c.value)
		})
	}
}

func TestWhatIsMissingIsCalledRequired(t *testing.T) {
	t.Parallel()
	const label = "is required: a DNS label: 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
	require.EqualError(t, v1.ProxySpec{Port: 1}.Validate(), `spec.provider: "" `+label)
	require.EqualError(t, v1.ProxySpec{Provider: "local"}.Validate(), `spec.port: "0" is required: 1 to 65535`)
	require.EqualError(t, v1.Metadata{Name: "a"}.Validate(), `metadata.namespace: "" `+label)
	require.EqualError(t, v1.Metadata{Namespace: "a"}.Validate(), `metadata.name: "" `+label)
}

func secret(name, key string) *v1.SecretRef { return &v1.SecretRef{Name: name, Key: key} }

func long(n int) string { return strings.Repeat("x", n) }

// refused checks a *FieldError and that its text names the field and the value.
func refused(t *testing.T, err error, field, value string) {
	t.Helper()
	var wrong *v1.FieldError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, field, wrong.Field)
	require.Equal(t, value, wrong.Value)
	require.NotEmpty(t, wrong.Problem)
	require.EqualError(t, err, fmt.Sprintf("%s: %q %s", field, value, wrong.Problem))
}

func TestNamesAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, v1.Metadata{Namespace: "default", Name: "a"}.Validate())
	refused(t, v1.Metadata{Namespace: "de/fault", Name: "a"}.Validate(), "metadata.namespace", "de/fault")
	refused(t, v1.Metadata{Namespace: "default", Name: "A"}.Validate(), "metadata.name", "A")
	refused(t, v1.Metadata{Namespace: "default"}.Validate(), "metadata.name", "")
	labels := map[string]string{"a b": "c"}
	refused(t, v1.Metadata{Namespace: "default", Name: "a", Labels: labels}.Validate(), "metadata.labels", "a b")
}

func TestALabelIsTaken(t *testing.T) {
	t.Parallel()
	require.NoError(t, v1.ValidateLabels(nil))
	for _, key := range []string{
		"a", "A-b_c.d", "example.com/pool", "a/b", long(63), strings.Repeat("a.", 126) + "a/b", "my-proxy-operator-x",
	} {
		require.NoError(t, v1.ValidateLabels(map[string]string{key: ""}), "%q", key)
	}
	for _, value := range []string{"", "a", "A-b_c.d", long(63), "1"} {
		require.NoError(t, v1.ValidateLabels(map[string]string{"a": value}), "%q", value)
	}
}

func TestALabelIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"", "/", "/a", "a/", "a/b/c", "-a", "a-", "a b", "Ex.com/a", "a..b/c", "ä", "a\n", long(64),
		"proxy-operator-uid", "proxy-operator-", "example.com/proxy-operator-uid", "proxy-operator-x/a",
	} {
		refused(t, v1.ValidateLabels(map[string]string{key: ""}), "metadata.labels", key)
	}
	for _, value := range []string{"a b", "-", "a/b", "ä", long(64)} {
		refused(t, v1.ValidateLabels(map[string]string{"team": value}), "metadata.labels.team", value)
	}
	require.Error(t, v1.ValidateLabels(map[string]string{strings.Repeat("a.", 127) + "a/b": ""}), "a long prefix")
	both := map[string]string{"b b": "", "a a": ""}
	refused(t, v1.ValidateLabels(both), "metadata.labels", "a a")
}

func TestALongValueIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	err := v1.Metadata{Namespace: "x" + strings.Repeat("ä", 100), Name: "a"}.Validate()
	refused(t, err, "metadata.namespace", "x"+strings.Repeat("ä", 39)+"…")
}
