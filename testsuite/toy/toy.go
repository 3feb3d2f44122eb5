// Package toy is the provider that docs/adding-a-provider.md builds. An instance is a
// symbolic link whose text is its record: real, and seen by every process, but nobody
// can connect to one. It imports the contract. Start reading at Create.
package toy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Type is the kind of provider, as the configuration names it.
const Type = "toy"

// Config is the provider's block of the configuration.
type Config struct {
	// Dir holds a link for each instance. Required; an administrator makes it.
	Dir string `json:"dir"`
}

// Provider keeps links in a folder, and remembers nothing about them.
type Provider struct {
	name, installation, dir string
	// open is the seam: nothing reaches the backend but through it.
	open func(ctx context.Context, dir string) (*os.Root, error)
}

// New returns a provider. It touches nothing; its errors are about the configuration.
func New(_ context.Context, name, installation string, cfg Config) (*Provider, error) {
	if cfg.Dir == "" {
		return nil, errors.New(`dir: "" must name a folder`)
	}
	return &Provider{name: name, installation: installation, dir: cfg.Dir, open: open}, nil
}

// Profile is the answer on every axis of the contract.
func (*Provider) Profile() providers.Profile {
	return providers.Profile{
		Readiness: providers.ReadinessImmediate, CreateReturn: providers.CreateBlocking,
		DeleteReturn: providers.DeleteWaits, IPSource: providers.IPAssignedAtCreate,
		GCMark: providers.MarkWrittenMetadata, CreatedAt: providers.CreatedAtWritten,
		ListPartial: providers.ListFailWhole, Quota: providers.QuotaDetected,
		NotFound: providers.NotFoundErrorCode, PrimaryKey: providers.KeyName,
		ProvisioningState: providers.ProvisioningCreateBlocks, AsyncOps: providers.AsyncNone,
		SecondaryResources: providers.SecondaryNone, Credentials: providers.CredentialsNone,
		ClientKind: providers.ClientSystem, Timeouts: providers.TimeoutsCtxOnly,
		Logging: providers.LoggingOutcomeOnly, ChildSpans: providers.SpansNone, BackendTest: providers.TestUnit,
	}
}

// fault is an error whose class is known where it arises.
type fault struct {
	class providers.Class
	error
}

func (f fault) Unwrap() error { return f.error }

func permanent(format string, args ...any) error {
	return fault{providers.ErrPermanent, fmt.Errorf(format, args...)}
}

// classify gives an error its class; what is unknown is Transient.
func classify(err error) providers.Class {
	f, known := errors.AsType[fault](err)
	switch {
	case known:
		return f.class
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return providers.ErrQuotaExceeded
	case errors.Is(err, syscall.ENAMETOOLONG): // a link cannot hold so long a record
		return providers.ErrPermanent
	}
	return providers.ErrTransient
}

// open opens a folder, unless the call is over. Later system calls on it are not bounded.
func open(ctx context.Context, dir string) (*os.Root, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return os.OpenRoot(dir)
}

// ask does something in the folder. It writes the one line about the call, and gives
// its error the form that callers branch on.
func (p *Provider) ask(ctx context.Context, op, id string, do func(*os.Root) error) error {
	root, err := p.open(ctx, p.dir)
	if err == nil {
		defer func() { _ = root.Close() }()
		err = do(root)
	}
	log := providers.Logger(ctx).With(slog.String("provider", p.name), slog.String("providerID", id))
	if err == nil {
		log.LogAttrs(ctx, providers.LevelOutcome, "toy "+op)
		return nil
	}
	err = providers.Wrap(classify(err), op, p.name, id, err)
	log.LogAttrs(ctx, providers.LevelOutcome, "toy "+op+" failed", slog.String("error", err.Error()))
	return err
}

const idPrefix = "toy/"

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// nameIn returns the name in an ID that Create can have returned.
func nameIn(id string) (string, error) {
	name, ok := strings.CutPrefix(id, idPrefix)
	if !ok || !label.MatchString(name) {
		return "", permanent("providerID: %q is not %s and a DNS label", id, idPrefix)
	}
	return name, nil
}

// record is the text of a link. A link is made in one system call, with its text or not
// at all: no crash leaves half an instance, and none is without its marks.
type record struct {
	Managed  string             `json:"managed"`
	Instance providers.Instance `json:"instance"`
}

// newRecord takes no label, which could replace a mark, and no user-data.
func newRecord(id string, req providers.CreateRequest) (string, error) {
	text, err := json.Marshal(record{Managed: providers.MarkManagedYes, Instance: providers.Instance{
		ID: id, IP: "127.0.0.1", State: providers.StateRunning, CreatedAt: time.Now().UTC(),
		UID: req.UID, Installation: req.Installation, Owner: req.Owner, SpecMark: req.SpecMark,
	}})
	return string(text), err
}

// read finds the record of an ID. The folder is open, so a link that is not in it is
// gone; a folder that is missing has failed before.
func read(root *os.Root, id string) (r record, _ error) {
	name, err := nameIn(id)
	if err != nil {
		return r, err
	}
	text, err := root.Readlink(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fault{providers.ErrNotFound, err}
	}
	if err == nil && json.Unmarshal([]byte(text), &r) != nil {
		err = permanent("link %s holds no record", name)
	}
	return r, err
}

// Create makes the link of an instance.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	id := idPrefix + req.Name
	return id, p.ask(ctx, providers.OpCreate, id, func(root *os.Root) error {
		name, err := nameIn(id)
		if err != nil {
			return err
		}
		text, err := newRecord(id, req)
		if err != nil {
			return err
		}
		if err := root.Symlink(text, name); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return checkHolder(root, id, providers.Holder{UID: req.UID, Installation: req.Installation})
	})
}

// checkHolder refuses an instance of somebody else. Without the managed mark it is
// nobody's, whatever else it says.
func checkHolder(root *os.Root, id string, wanted providers.Holder) error {
	r, err := read(root, id)
	var found providers.Holder
	if r.Managed == providers.MarkManagedYes {
		found = providers.Holder{UID: r.Instance.UID, Installation: r.Instance.Installation}
	}
	switch {
	case err != nil && classify(err) == providers.ErrNotFound:
		return errors.New("the link was removed just now") // Transient: another try makes it
	case err == nil && found != wanted:
		return fault{providers.ErrPermanent, &providers.ForeignError{Found: found, Wanted: wanted}}
	}
	return err
}

// Get reads the link.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	var r record
	err := p.ask(ctx, providers.OpGet, id, func(root *os.Root) (err error) {
		r, err = read(root, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &r.Instance, nil
}

// Delete removes the link.
func (p *Provider) Delete(ctx context.Context, id string) error {
	return p.ask(ctx, providers.OpDelete, id, func(root *os.Root) error {
		name, err := nameIn(id)
		if err == nil {
			err = root.Remove(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// ListByTag returns the instances of Inventory.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	inventory, err := p.Inventory(ctx)
	return inventory.Instances, err
}

// Inventory lists the links of this installation, and names those that hold no record.
func (p *Provider) Inventory(ctx context.Context) (all providers.Inventory, _ error) {
	err := p.ask(ctx, providers.OpList, "", func(root *os.Root) error {
		entries, err := fs.ReadDir(root.FS(), ".")
		for _, e := range entries {
			r, err := read(root, idPrefix+e.Name())
			switch {
			case err != nil && classify(err) != providers.ErrNotFound:
				all.Omitted = append(all.Omitted, e.Name())
			case r.Managed == providers.MarkManagedYes && r.Instance.Installation == p.installation:
				all.Instances = append(all.Instances, r.Instance)
			}
		}
		return err
	})
	return all, err
}

// Check has one target, the folder.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	status := providers.TargetStatus{Target: p.dir, Ready: true, Reason: providers.ReasonReachable}
	if err := p.ask(ctx, "check", "", func(*os.Root) error { return nil }); err != nil {
		status.Ready, status.Reason, status.Message = false, providers.ReasonUnreachable, err.Error()
	}
	return []providers.TargetStatus{status}
}
