package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// captured are answers of the real machine, made here so that they are never old.
func captured(t *testing.T) map[string]error {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("no program"), 0o700))
	_, noFile := os.ReadFile(filepath.Join(dir, "none"))
	_, noFolder := os.ReadDir(filepath.Join(file, "x"))
	_, noAddress := net.Listen("tcp4", "192.0.2.1:0")
	return map[string]error{
		"noFile": noFile, "noFolder": noFolder, "noAddress": noAddress,
		"noProgram": exec.Command(garbage).Run(), //nolint:noctx // ends at once
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	machine := captured(t)
	path := func(e syscall.Errno) error { return &os.PathError{Op: "write", Path: "/x", Err: e} }
	fork := func(e syscall.Errno) error { return &os.PathError{Op: "fork/exec", Path: "/x", Err: e} }
	_, malformed := parseID("x")
	for name, c := range map[string]struct {
		err  error
		want providers.Class
	}{
		"decided: not found":                   {notFound("x"), providers.ErrNotFound},
		"decided: quota":                       {quota("x"), providers.ErrQuotaExceeded},
		"decided: transient":                   {transient("x"), providers.ErrTransient},
		"decided: permanent":                   {permanent("x"), providers.ErrPermanent},
		"decided, and wrapped again":           {fmt.Errorf("more: %w", permanent("x")), providers.ErrPermanent},
		"decided against the errno inside":     {transient("%w", syscall.ENOSPC), providers.ErrTransient},
		"a malformed ID":                       {malformed, providers.ErrPermanent},
		"the call was cancelled":               {context.Canceled, providers.ErrTransient},
		"the call ran out of time":             {fmt.Errorf("lock: %w", context.DeadlineExceeded), providers.ErrTransient},
		"disk full":                            {path(syscall.ENOSPC), providers.ErrQuotaExceeded},
		"disk quota":                           {path(syscall.EDQUOT), providers.ErrQuotaExceeded},
		"descriptors of the process":           {path(syscall.EMFILE), providers.ErrQuotaExceeded},
		"descriptors of the machine":           {path(syscall.ENFILE), providers.ErrQuotaExceeded},
		"processes":                            {fork(syscall.EAGAIN), providers.ErrQuotaExceeded},
		"memory":                               {fork(syscall.ENOMEM), providers.ErrQuotaExceeded},
		"buffers":                              {os.NewSyscallError("socket", syscall.ENOBUFS), providers.ErrQuotaExceeded},
		"an executable that is none":           {machine["noProgram"], providers.ErrPermanent},
		"an executable that is being replaced": {startFailed(fork(syscall.ETXTBSY)), providers.ErrTransient},
		"an executable that is missing":        {startFailed(fork(syscall.ENOENT)), providers.ErrTransient},
		"an executable that may not be run":    {startFailed(fork(syscall.EACCES)), providers.ErrPermanent},
		"a file system without locks":          {path(syscall.ENOTSUP), providers.ErrPermanent},
		"no lock service":                      {path(syscall.ENOLCK), providers.ErrPermanent},
		"a file that is missing":               {machine["noFile"], providers.ErrTransient},
		"a file in the place of a folder":      {machine["noFolder"], providers.ErrTransient},
		"no permission on the folder":          {path(syscall.EACCES), providers.ErrTransient},
		"a read-only disk":                     {path(syscall.EROFS), providers.ErrTransient},
		"a disk that fails":                    {path(syscall.EIO), providers.ErrTransient},
		"not an error of the machine at all":   {errors.New("boom"), providers.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, c.err)
			require.Equal(t, c.want, classify(c.err))
		})
	}
}

func TestBindErrorsSayWhatToChange(t *testing.T) {
	t.Parallel()
	bind := func(e syscall.Errno) error { return &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", e)} }
	for name, c := range map[string]struct {
		at   string
		err  error
		want providers.Class
		says string
	}{
		"a port that wants a privilege": {"127.0.0.1:80", bind(syscall.EACCES), providers.ErrPermanent, "spec.port: 80"},
		"a port that is forbidden":      {"127.0.0.1:3128", bind(syscall.EACCES), providers.ErrPermanent, "spec.port: 3128"},
		"a filter that forbids it":      {"127.0.0.1:3128", bind(syscall.EPERM), providers.ErrPermanent, "spec.port: 3128"},
		"an address that is not there":  {"127.64.0.1:3128", bind(syscall.EADDRNOTAVAIL), providers.ErrPermanent, otherRange},
		"the real machine says so":      {"192.0.2.1:0", captured(t)["noAddress"], providers.ErrPermanent, "addressRange"},
		"no descriptors":                {"127.0.0.1:3128", bind(syscall.EMFILE), providers.ErrQuotaExceeded, "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := explainBind(netip.MustParseAddrPort(c.at), c.err)
			require.Equal(t, c.want, classify(err))
			require.ErrorContains(t, err, c.says)
		})
	}
}
