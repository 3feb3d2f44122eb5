package image_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// zeros is an image of so many zeros, which nobody has to hold.
type zeros int64

func (z zeros) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, ContentLength: int64(z), Request: r, Header: http.Header{},
		Body: io.NopCloser(io.LimitReader(zero{}, int64(z))),
	}, nil
}

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// bottomless is a pool that only counts what it is given.
type bottomless struct {
	*pool
	length int64
}

func (b *bottomless) StorageVolGetInfoFlags(libvirt.StorageVol, uint32) (int8, uint64, uint64, error) {
	return 0, 0, uint64(b.length), nil
}

func (b *bottomless) StorageVolUpload(_ libvirt.StorageVol, from io.Reader, _, _ uint64,
	_ libvirt.StorageVolUploadFlags,
) (err error) {
	b.length, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, from, make([]byte, 4<<20))
	return err
}

func (b *bottomless) StorageVolDownload(_ libvirt.StorageVol, to io.Writer, _, length uint64,
	_ libvirt.StorageVolDownloadFlags,
) error {
	_, err := io.Copy(to, io.LimitReader(zero{}, int64(length)))
	return err
}

// TestAnImageIsNeverHeld is not parallel: it measures what the process allocates.
func TestAnImageIsNeverHeld(t *testing.T) {
	const size = 256 * megabyte
	b := &bottomless{pool: newPool()}
	sum := sha256.New()
	_, err := io.Copy(sum, io.LimitReader(zero{}, size))
	require.NoError(t, err)
	entry := entryOf("https://mirror/a", nil)
	entry.SHA256 = hex.EncodeToString(sum.Sum(nil))
	host := b.host()
	host.Do = b.doAs(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, image.New(&http.Client{Transport: zeros(size)}).Fetch(t.Context(), host, entry))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*megabyte), "all that was ever allocated, in bytes")
}
