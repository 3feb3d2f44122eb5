package keypair

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/certificates"
)

func files(t *testing.T) Files {
	dir := t.TempDir()
	return Files{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		CertificateSetting: "the.certificate", KeySetting: "the.key",
	}
}

func issue(t *testing.T, to Files) {
	t.Helper()
	certificates.Write(t, to.Certificate, to.Key)
}

func TestACertificateIsFollowedAndABadOneChangesNothing(t *testing.T) {
	t.Parallel()
	files := files(t)
	issue(t, files)
	var log bytes.Buffer
	p, err := Open(files, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	first := p.Now()
	aSecondLater := func() *tls.Certificate { p.looked = time.Time{}; return p.Now() }
	require.Same(t, first, aSecondLater(), "nothing has changed")

	other := files
	other.Key = filepath.Join(t.TempDir(), "elsewhere")
	issue(t, other)
	require.Same(t, first, aSecondLater(), "the key is another's: a rotation is half done")
	require.Contains(t, log.String(), files.Key)
	require.NotContains(t, log.String(), "PRIVATE")
	issue(t, files)
	require.NotSame(t, first, aSecondLater())
	second := p.Now()
	require.NoError(t, os.Remove(files.Key))
	require.Same(t, second, aSecondLater())
}

func TestAFaultIsSaidWhenItChangesAndOnceAMinute(t *testing.T) {
	t.Parallel()
	files := files(t)
	issue(t, files)
	var log bytes.Buffer
	p, err := Open(files, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	key, err := os.ReadFile(files.Key)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		p.looked = time.Now()
		said := func(seconds int) int {
			log.Reset()
			for range seconds {
				<-time.After(lookEvery)
				p.Now()
			}
			return strings.Count(log.String(), "\n")
		}
		require.Zero(t, said(90))
		require.NoError(t, os.Remove(files.Key))
		require.Equal(t, 1, said(30), "it is not there")
		require.NoError(t, os.WriteFile(files.Key, []byte("none"), 0o600))
		require.Equal(t, 1, said(60), "it is there, and is none")
		require.Equal(t, 3, said(180), "and stays so")
		require.NoError(t, os.WriteFile(files.Key, key, 0o600))
		require.Zero(t, said(90))
		require.NoError(t, os.Remove(files.Key))
		require.Equal(t, 1, said(1), "it is gone again")
	})
}

func TestACertificateThatIsNoneIsNamed(t *testing.T) {
	t.Parallel()
	files := files(t)
	_, err := Open(files, slog.Default())
	require.ErrorContains(t, err, "the.certificate: open "+files.Certificate)
	issue(t, files)
	require.NoError(t, os.WriteFile(files.Key, []byte("s3cret"), 0o600))
	_, err = Open(files, slog.Default())
	require.ErrorContains(t, err, "the.certificate "+files.Certificate+" with the.key "+files.Key)
	require.NotContains(t, err.Error(), "s3cret")
	require.NoError(t, os.Remove(files.Key))
	_, err = Open(files, slog.Default())
	require.ErrorContains(t, err, "the.key: open "+files.Key)
}
