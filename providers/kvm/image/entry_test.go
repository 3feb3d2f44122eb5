package image_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

const (
	waitFor = 10 * time.Second
	tick    = time.Millisecond
)

func TestEntryIsValidated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*image.Entry)
		says   string
	}{
		"as it should be":      {func(*image.Entry) {}, ""},
		"a file by its path":   {func(e *image.Entry) { e.URL = "/srv/a b.qcow2" }, ""},
		"a file by its URL":    {func(e *image.Entry) { e.URL = "file:///srv/a.qcow2" }, ""},
		"raw":                  {func(e *image.Entry) { e.Format = "raw" }, ""},
		"a short digest":       {func(e *image.Entry) { e.SHA256 = "abc" }, `sha256 "abc"`},
		"another format":       {func(e *image.Entry) { e.Format = "vmdk" }, `format "vmdk"`},
		"a size below nothing": {func(e *image.Entry) { e.Size = -1 }, "size -1"},
		"no URL":               {func(e *image.Entry) { e.URL = "" }, `url ""`},
		"a path without root":  {func(e *image.Entry) { e.URL = "a.qcow2" }, `url "a.qcow2"`},
		"another scheme":       {func(e *image.Entry) { e.URL = "ftp://u:s3cret@h/a?s3cret" }, `url "ftp://h/a?…"`},
		"a file of a host":     {func(e *image.Entry) { e.URL = "file://host/a" }, `url "file://host/a"`},
		"no host":              {func(e *image.Entry) { e.URL = "https:///a" }, `url "https:///a"`},
		"nonsense":             {func(e *image.Entry) { e.URL = "https://u:s3cret@h:x/%" }, "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := entryOf("https://user:s3cret@host/a?s3cret", nil)
			c.change(&entry)
			err := entry.Validate()
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, `image "debian-12"`)
			require.NotContains(t, err.Error(), "s3cret")
			require.ErrorIs(t, fetch(t, newPool(), entry), providers.ErrPermanent)
		})
	}
}

func TestVolumeFollowsFromTheContent(t *testing.T) {
	t.Parallel()
	entry := entryOf("https://host/a", []byte("one"))
	same := entry
	same.Name, same.URL, same.SHA256 = "other", "https://mirror/a", strings.ToUpper(entry.SHA256)
	require.Equal(t, entry.Volume(), same.Volume())
	require.NotEqual(t, entry.Volume(), entryOf("https://host/a", []byte("two")).Volume())
	raw := entry
	raw.Format = image.FormatRaw
	require.NotEqual(t, entry.Volume(), raw.Volume())
	require.Regexp(t, `^image-[0-9a-f]{64}\.qcow2$`, same.Volume())
}
