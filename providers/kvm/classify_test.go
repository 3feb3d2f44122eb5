package kvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

func load(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// answer is what a libvirt was seen to say.
type answer struct {
	Name, Op, Call, Message, Want string
	Code                          uint32
}

func (a answer) err() error {
	switch {
	case a.Code != 0:
		return &rpcError{"a", a.Call, libvirt.Error{Code: a.Code, Message: a.Message}}
	case a.Name == "rpc-interrupted":
		return &rpcError{"a", a.Call, libvirt.ErrInterrupted}
	default:
		return &rpcError{"a", a.Call, libvirt.ErrUnsupported}
	}
}

// done are the answers that mean that a step is done already, by call.
var done = map[string]func(error) bool{
	"DomainDestroy":          func(err error) bool { return noDomain(err) || notRunning(err) },
	"DomainCreate":           alreadyRunning,
	"StorageVolLookupByName": noVolume,
}

func TestClassifyCapturedAnswers(t *testing.T) {
	t.Parallel()
	var answers []answer
	load(t, "answers.json", &answers)
	require.NotEmpty(t, answers)
	for _, a := range answers {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			switch a.Want {
			case "ok":
				require.True(t, done[a.Call](a.err()))
			case "never-called":
				_, called := reflect.TypeFor[api]().MethodByName(a.Call)
				require.False(t, called, "now it is called: say what its answer means")
			case "never-met": // the flags that it asks for are always given
				require.NotZero(t, undefineAll&libvirt.DomainUndefineManagedSave)
				require.NotZero(t, undefineAll&libvirt.DomainUndefineSnapshotsMetadata)
				require.Equal(t, providers.ErrTransient, classify(a.Op, a.err()))
			case "retry-with-flags":
				flags, older := unknownFlags(a.err())
				require.True(t, older)
				require.Equal(t, uint64(0x100000), flags)
			default:
				require.Equal(t, providers.Class(a.Want), classify(a.Op, a.err()), a.Message)
			}
		})
	}
}

// Of what is alike in words or in number, one is success and the other is not.
func TestAnswersThatAreAlike(t *testing.T) {
	t.Parallel()
	invalid := func(text string) error {
		return says(libvirt.ErrOperationInvalid, "Requested operation is not valid: %s", text)
	}
	for name, yes := range map[string]bool{
		"a running domain":   alreadyRunning(invalid("domain is already running")),
		"a stopped domain":   notRunning(invalid("domain is not running")),
		"a file in the pool": volumeExists(invalid("volume target path '/x' already exists")),
		"a name in use":      nameTaken(says(libvirt.ErrOperationFailed, "domain 'x' already exists with uuid y")),
	} {
		require.True(t, yes, name)
	}
	for name, no := range map[string]bool{
		"an inactive network":         alreadyRunning(invalid("network 'isol' is not active")),
		"an inactive pool":            notRunning(invalid("storage pool 'p' is not active")),
		"a running domain, destroyed": notRunning(invalid("domain is already running")),
		"a full disk":                 volumeExists(says(libvirt.ErrSystemError, "No space left on device")),
		"another number":              alreadyRunning(says(libvirt.ErrInternalError, "domain is already running")),
		"a link that broke":           noDomain(io.EOF),
		"a bad argument":              second(unknownFlags(says(libvirt.ErrInvalidArg, "unsupported flags"))),
	} {
		require.False(t, no, name)
	}
}

func second[T any](_ T, yes bool) bool { return yes }

func TestClassifyOtherErrors(t *testing.T) {
	t.Parallel()
	link := func(r conn.Reason) error {
		return &conn.Error{Host: "a", Stage: conn.StageDial, Reason: r, Err: io.EOF}
	}
	for name, c := range map[string]struct {
		op   string
		err  error
		want providers.Class
	}{
		"gone, says Get":          {providers.OpGet, says(libvirt.ErrNoDomain, "x"), providers.ErrNotFound},
		"gone, says Create":       {providers.OpCreate, says(libvirt.ErrNoDomain, "x"), providers.ErrTransient},
		"gone, says Delete":       {providers.OpDelete, says(libvirt.ErrNoDomain, "x"), providers.ErrTransient},
		"gone, says a list":       {providers.OpList, says(libvirt.ErrNoDomain, "x"), providers.ErrTransient},
		"no volume":               {providers.OpGet, says(libvirt.ErrNoStorageVol, "x"), providers.ErrTransient},
		"no network":              {providers.OpGet, says(libvirt.ErrNoNetwork, "x"), providers.ErrPermanent},
		"a right that is missing": {providers.OpGet, says(libvirt.ErrAccessDenied, "x"), providers.ErrPermanent},
		"a busy device": {
			providers.OpDelete, says(libvirt.ErrResourceBusy, "x"), providers.ErrTransient,
		},
		"a full quota": {
			providers.OpCreate, says(libvirt.ErrSystemError, "Disk quota exceeded"), providers.ErrQuotaExceeded,
		},
		"no memory for libvirt": {
			providers.OpCreate, says(libvirt.ErrNoMemory, "out of memory"), providers.ErrQuotaExceeded,
		},
		"no /dev/kvm": {
			providers.OpCreate, says(libvirt.ErrInternalError, "Could not access KVM kernel module: x"), providers.ErrPermanent,
		},
		"an internal error": {
			providers.OpCreate, says(libvirt.ErrInternalError, "x"), providers.ErrTransient,
		},
		"a number of a newer libvirt": {providers.OpCreate, says(4711, "x"), providers.ErrTransient},
		"a host that is down":         {providers.OpGet, link(conn.Unreachable), providers.ErrTransient},
		"another host key":            {providers.OpGet, link(conn.HostKeyMismatch), providers.ErrPermanent},
		"a login that is refused":     {providers.OpGet, link(conn.Unauthorized), providers.ErrPermanent},
		"a key that is not there yet": {providers.OpGet, link(conn.FileMissing), providers.ErrTransient},
		"a connection that was lost":  {providers.OpCreate, link(conn.ConnectionLost), providers.ErrTransient},
		"a call after the connection": {providers.OpGet, syscall.EINVAL, providers.ErrTransient},
		"a context that ended":        {providers.OpGet, context.Canceled, providers.ErrTransient},
		"a deadline": {
			providers.OpGet, fmt.Errorf("x: %w", context.DeadlineExceeded), providers.ErrTransient,
		},
		"no error of a backend at all":       {providers.OpGet, errors.New("odd"), providers.ErrTransient},
		"what was decided where it arose":    {providers.OpGet, fmt.Errorf("x: %w", permanent("y")), providers.ErrPermanent},
		"a procedure that is not known here": {providers.OpGet, libvirt.ErrUnsupported, providers.ErrPermanent},
	} {
		require.Equal(t, c.want, classify(c.op, &rpcError{"a", "X", c.err}), name)
	}
}
