package providertest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// everybodys is the temporary folder before a row has one of its own.
var everybodys = os.TempDir()

func payloadMutants() map[string]mutant {
	sent := func(change func([]byte) []byte) func(*twisted) {
		return func(w *twisted) {
			w.asks(func(req *providers.CreateRequest) { req.CloudInit = change(bytes.Clone(req.CloudInit)) })
		}
	}
	refuses := func(class providers.Class, err func(req providers.CreateRequest) error) func(*twisted) {
		return func(w *twisted) {
			w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
				if err := err(req); err != nil {
					return "", providers.Wrap(class, providers.OpCreate, "lab", "", err)
				}
				return w.Faults.Create(ctx, req)
			}
		}
	}
	return map[string]mutant{
		"a scratch file stays": {
			row: "ScratchGoesWithTheCall", says: "create leaves scratch files behind",
			twist: func(w *twisted) {
				w.creates(func(context.Context, providers.CreateRequest) {
					if os.TempDir() == everybodys {
						return // nobody would collect it
					}
					if f, err := os.CreateTemp("", "seed-*.iso"); err == nil {
						_ = f.Close()
						w.After(providers.OpDelete, func(context.Context) error { _ = os.Remove(f.Name()); return nil })
					}
				})
			},
		},
		"a create writes where the worker was started": {
			row: "ScratchGoesWithTheCall", says: "writes where the worker was started",
			twist: func(w *twisted) {
				const here = "seed-of-a-mutant.iso"
				w.creates(func(context.Context, providers.CreateRequest) { _ = os.WriteFile(here, nil, 0o600) })
				w.remove = func(ctx context.Context, id string) error {
					_ = os.Remove(here)
					return w.Faults.Delete(ctx, id)
				}
			},
		},
		"cloud-init loses its edges": {
			row: "CloudInitArrivesWhole", says: "the guest gets", twist: sent(bytes.TrimSpace),
		},
		"cloud-init is taken for text": {
			row: "CloudInitArrivesWhole", says: "the guest gets",
			twist: sent(func(data []byte) []byte { return bytes.ToValidUTF8(data, []byte("?")) }),
		},
		"cloud-init is a template": {
			row: "CloudInitArrivesWhole", says: "the guest gets",
			twist: sent(func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("{{ y }}"), nil) }),
		},
		"cloud-init is cut off": {
			row: "CloudInitArrivesWhole", says: "the guest gets",
			also:  []string{"TooLargeCloudInitIsPermanent"},
			twist: sent(func(data []byte) []byte { return data[:min(len(data), maxCloudInit-1)] }),
		},
		"too much cloud-init is tried again and again": {
			row: "TooLargeCloudInitIsPermanent", says: "class of",
			twist: refuses(providers.ErrTransient, func(req providers.CreateRequest) error {
				return tooLarge(req, "cloudInit: %d bytes are more than %d", len(req.CloudInit), maxCloudInit)
			}),
		},
		"nobody is told the limit": {
			row: "TooLargeCloudInitIsPermanent", says: "the error names the field, the size and the limit",
			twist: refuses(providers.ErrPermanent, func(req providers.CreateRequest) error {
				return tooLarge(req, "cloudInit: %d bytes are too many", len(req.CloudInit))
			}),
		},
		"too much cloud-init is refused when the instance is there": {
			row: "TooLargeCloudInitIsPermanent", says: "a refused create makes nothing",
			twist: refusesLate(func(req providers.CreateRequest) error {
				return tooLarge(req, "cloudInit: %d bytes are more than %d", len(req.CloudInit), maxCloudInit)
			}),
		},
		"an odd zone is refused when the instance is there": {
			row: "PlacementIsNoPath", says: "a refused create makes nothing",
			twist: refusesLate(func(req providers.CreateRequest) error {
				return odd(req.Placement.Zone, fmt.Sprintf("placement.zone: %q", req.Placement.Zone))
			}),
		},
		"a name that is no label is refused when an instance is there": {
			row: "NameIsALabel", says: "a refused create makes nothing",
			twist: refusesLate(func(req providers.CreateRequest) error { return odd(req.Name, "name: odd") }),
		},
		"an image is a path": {
			row: "PlacementIsNoPath", says: "becomes a file elsewhere",
			twist: func(w *twisted) {
				w.creates(func(_ context.Context, req providers.CreateRequest) {
					if path := req.Placement.Image; strings.HasSuffix(path, "/relative") {
						_ = os.WriteFile(filepath.Join(os.TempDir(), path), nil, 0o600)
					}
				})
			},
		},
		"a zone is a whole path": {
			row: "PlacementIsNoPath", says: "becomes a file elsewhere",
			twist: func(w *twisted) {
				w.creates(func(_ context.Context, req providers.CreateRequest) {
					if path := req.Placement.Zone; strings.HasSuffix(path, "/absolute") {
						_ = os.WriteFile(path, nil, 0o600)
					}
				})
			},
		},
		"an odd image tears the line of the error": {
			row: "PlacementIsNoPath", says: "the error names the value, quoted",
			twist: refuses(providers.ErrPermanent, func(req providers.CreateRequest) error {
				return odd(req.Placement.Image, "placement.image: "+req.Placement.Image)
			}),
		},
		"an odd region is refused without its field": {
			row: "PlacementIsNoPath", says: "the error names the field",
			twist: refuses(providers.ErrPermanent, func(req providers.CreateRequest) error {
				return odd(req.Placement.Region, fmt.Sprintf("bad value %q", req.Placement.Region))
			}),
		},
		"a name is made to fit": {
			row: "NameIsALabel", says: "is no DNS label",
			also: []string{"CreateNeverSaysNotFound"},
			twist: func(w *twisted) {
				w.asks(func(req *providers.CreateRequest) {
					if !label.MatchString(req.Name) {
						req.Name = providers.NameFromUID(req.UID)
					}
				})
			},
		},
		"a name that is no label is tried again": {
			row: "NameIsALabel", says: "the name",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpCreate && strings.Contains(e.Err.Error(), "malformed") {
						e.Class = providers.ErrTransient
					}
					return e
				})
			},
		},
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// refusesLate makes the instance, under a name that fits, and then says why it must not be.
func refusesLate(why func(providers.CreateRequest) error) func(*twisted) {
	return func(w *twisted) {
		w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
			refusal := why(req)
			if refusal == nil {
				return w.Faults.Create(ctx, req)
			}
			req.Name, req.CloudInit = providers.NameFromUID(req.UID), nil
			_, _ = w.Faults.Create(ctx, req)
			return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "", refusal)
		}
	}
}

func tooLarge(req providers.CreateRequest, format string, args ...any) error {
	if len(req.CloudInit) <= maxCloudInit {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// odd refuses a value that has a line of its own.
func odd(value, text string) error {
	if !strings.Contains(value, "\n") {
		return nil
	}
	return errors.New(text)
}
