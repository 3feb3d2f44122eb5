package v1_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	userData = "#cloud-config\npassword: hunter2\n"
	// userDataDigest is what sha256sum says.
	userDataDigest = "fd2dccab4801c86a3fd9bfaf7d937827680adbfbd4d899f7b7f53cb98592cd18"
)

func TestTextAndItsBytesAreOneUserData(t *testing.T) {
	t.Parallel()
	text := v1.CloudInit{Inline: userData}
	raw := v1.CloudInit{InlineBase64: base64.StdEncoding.EncodeToString([]byte(userData))}
	require.Equal(t, userData, string(text.Bytes()))
	require.Equal(t, userData, string(raw.Bytes()))
	require.Equal(t, text.Redacted(), raw.Redacted())
	require.Empty(t, v1.CloudInit{SecretRef: &v1.SecretRef{Name: "a", Key: "b"}}.Bytes())
}

func TestUserDataIsShownAsDigestAndSize(t *testing.T) {
	t.Parallel()
	require.Equal(t, userDataDigest, v1.Digest([]byte(userData)))
	spec := v1.ProxySpec{Provider: "local", Port: 3128, CloudInit: v1.CloudInit{Inline: userData}}
	shown := spec.Redacted()
	require.Equal(t, fmt.Sprintf("redacted:sha256:%s:%d", userDataDigest, len(userData)), shown.CloudInit.Inline)
	require.True(t, shown.CloudInit.IsRedacted())
	require.Equal(t, shown, shown.Redacted(), "what is redacted stays so")
	require.Equal(t, userData, spec.CloudInit.Inline, "the spec itself is left alone")
}

func TestWhatHoldsNoContentIsShownAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]v1.CloudInit{
		"nothing":     {},
		"a reference": {SecretRef: &v1.SecretRef{Name: "a", Key: "b"}},
	} {
		require.Equal(t, c, c.Redacted(), name)
		require.False(t, c.IsRedacted(), name)
	}
}

func TestAStandInWrittenBackMeansAsItWas(t *testing.T) {
	t.Parallel()
	for name, was := range map[string]v1.CloudInit{
		"of text":  {Inline: userData},
		"of bytes": {InlineBase64: base64.StdEncoding.EncodeToString([]byte(userData))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := v1.ProxySpec{Provider: "local", Port: 3128, CloudInit: was}
			written := old.Redacted()
			written.Port = 3129
			got, err := written.Restored(old)
			require.NoError(t, err)
			require.Equal(t, v1.ProxySpec{Provider: "local", Port: 3129, CloudInit: was}, got)
		})
	}
}

func TestAStandInOfAnotherContentIsRefused(t *testing.T) {
	t.Parallel()
	other := v1.ProxySpec{CloudInit: v1.CloudInit{Inline: "other"}}.Redacted()
	_, err := other.Restored(v1.ProxySpec{CloudInit: v1.CloudInit{Inline: userData}})
	refused(t, err, "spec.cloudInit.inline", other.CloudInit.Inline)
	require.NotContains(t, err.Error(), "hunter2")

	_, err = other.Restored(v1.ProxySpec{})
	refused(t, err, "spec.cloudInit.inline", other.CloudInit.Inline)
}

func TestANewContentReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	fresh := v1.ProxySpec{CloudInit: v1.CloudInit{Inline: "new"}}
	got, err := fresh.Restored(v1.ProxySpec{CloudInit: v1.CloudInit{Inline: userData}})
	require.NoError(t, err)
	require.Equal(t, fresh, got)
}

func TestAStandInSaysWhatItStandsFor(t *testing.T) {
	t.Parallel()
	shown := v1.CloudInit{Inline: "password: hunter2"}.Redacted()
	digest, stands := shown.StandsFor()
	require.True(t, stands)
	require.Equal(t, v1.Digest([]byte("password: hunter2")), digest)
	for name, c := range map[string]v1.CloudInit{
		"nothing":              {},
		"a content":            {Inline: "password: hunter2"},
		"a reference":          {SecretRef: &v1.SecretRef{Name: "a", Key: "b"}},
		"no size":              {Inline: "redacted:sha256:" + digest},
		"a size of nothing":    {Inline: "redacted:sha256:" + digest + ":0"},
		"no digest":            {Inline: "redacted:sha256:abc:17"},
		"a text after it":      {Inline: shown.Inline + "\nrun: x"},
		"beside another one":   {Inline: shown.Inline, InlineBase64: "eA=="},
		"beside a secret":      {Inline: shown.Inline, SecretRef: &v1.SecretRef{Name: "a", Key: "b"}},
		"a digest in capitals": {Inline: "redacted:sha256:" + strings.ToUpper(digest) + ":17"},
	} {
		_, stands := c.StandsFor()
		require.False(t, stands, name)
	}
}
