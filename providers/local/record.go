package local

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// recordVersion is the form of record that this program writes and reads.
const recordVersion = 1

// record is what Create writes before anything runs; Get reads it back. It never
// holds the cloud-init. Serialised: add fields, never rename or retype.
type record struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	// Marks holds UID, installation, owner and spec under their contract names, and
	// nowhere else, so that they cannot contradict each other.
	Marks     map[string]string   `json:"marks"`
	Labels    map[string]string   `json:"labels,omitempty"`
	Placement providers.Placement `json:"placement"`
	Address   netip.Addr          `json:"address"`
	Port      int                 `json:"port"`
	Attempt   int                 `json:"attempt"`
	CreatedAt time.Time           `json:"createdAt"`
	// StartingAt is when a process was last about to be started: later than CreatedAt
	// where a Create was cut off and repeated.
	StartingAt time.Time `json:"startingAt"`
}

func newRecord(req providers.CreateRequest, now time.Time) record {
	return record{
		Version: recordVersion,
		Name:    req.Name,
		Marks: map[string]string{
			providers.MarkManaged:      providers.MarkManagedYes,
			providers.MarkUID:          req.UID,
			providers.MarkInstallation: req.Installation,
			providers.MarkOwner:        req.Owner,
			providers.MarkSpec:         req.SpecMark,
		},
		Labels:    req.Labels,
		Placement: req.Placement,
		Port:      req.Port,
		Attempt:   req.Attempt,
		CreatedAt: now.UTC(),
	}
}

func (r record) uid() string          { return r.Marks[providers.MarkUID] }
func (r record) installation() string { return r.Marks[providers.MarkInstallation] }
func (r record) managed() bool        { return r.Marks[providers.MarkManaged] == providers.MarkManagedYes }

func (r record) endpoint() netip.AddrPort {
	return netip.AddrPortFrom(r.Address, uint16(r.Port)) //nolint:gosec // checked: 1 to 65535
}

// checkOwner refuses a record that another Proxy or installation made: adopting it
// would hand out an instance that somebody else will delete.
func (r record) checkOwner(req providers.CreateRequest) error {
	if r.managed() && r.uid() == req.UID && r.installation() == req.Installation {
		return nil
	}
	return &classed{providers.ErrPermanent, &providers.ForeignError{
		Found:  providers.Holder{UID: r.uid(), Installation: r.installation()},
		Wanted: providers.Holder{UID: req.UID, Installation: req.Installation},
	}}
}

// instance shows a record as it is read back; its state is added by observe.
func (r record) instance() providers.Instance {
	return providers.Instance{
		ID:           formatID(r.Name),
		UID:          r.uid(),
		Installation: r.installation(),
		Owner:        r.Marks[providers.MarkOwner],
		SpecMark:     r.Marks[providers.MarkSpec],
		CreatedAt:    r.CreatedAt,
	}
}

// parseRecord reads what newRecord and allocate made, and says what is wrong with
// anything else.
func parseRecord(name string, data []byte) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, err
	}
	switch {
	case r.Version != recordVersion:
		return record{}, fmt.Errorf("version: %d, this program knows %d", r.Version, recordVersion)
	case r.Name != name:
		return record{}, fmt.Errorf("name: %q in the folder of %q", r.Name, name)
	case !r.Address.IsValid() || !loopback.Contains(r.Address):
		return record{}, fmt.Errorf("address: %q is not within %s", r.Address, loopback)
	case r.Port < firstPort || r.Port > lastPort:
		return record{}, fmt.Errorf("port: %d", r.Port)
	}
	return r, nil
}

func encodeRecord(r record) ([]byte, error) { return json.MarshalIndent(r, "", "  ") }
