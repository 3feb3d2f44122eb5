package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// maxCloudInit is the limit of a stock, in bytes: below what the suite likes to send.
const maxCloudInit = 16 << 10

// stock is the fake with a volume for each instance and a limit for user-data.
type stock struct {
	*fake.Faults
	mu      sync.Mutex
	volumes map[volumeKey]*volume
	halfway bool // creates fail once their volume is there
}

// volumeKey: two that want one name have a volume each until one of them loses.
type volumeKey struct{ id, uid string }

type volume struct {
	providers.Leftover
	busy int // creates that are under way
}

func newStock(f *fake.Faults) *stock { return &stock{Faults: f, volumes: map[volumeKey]*volume{}} }

// stockOf finds the stock of a provider that is a mutant, or nearly one.
func stockOf(t *testing.T, p providers.Provider) *stock {
	t.Helper()
	w, ok := providers.As[*twisted](p)
	require.True(t, ok)
	return w.stock
}

// Create makes the volume first, and takes it away again from whoever may not have the name.
func (k *stock) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	if len(req.CloudInit) > maxCloudInit {
		return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "",
			fmt.Errorf("cloudInit: %d bytes are more than the limit of %d", len(req.CloudInit), maxCloudInit))
	}
	made, halfway := k.begin(req)
	if halfway {
		k.end(req, false)
		return "", providers.Wrap(providers.ErrTransient, providers.OpCreate, "lab", "", errors.New("out of luck"))
	}
	id, err := k.Faults.Create(ctx, req)
	k.end(req, made && err != nil)
	return id, err
}

func (k *stock) begin(req providers.CreateRequest) (made, halfway bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := volumeKey{fake.ID(req.Name), req.UID}
	if k.volumes[key] == nil {
		k.put(req)
		made = true
	}
	k.volumes[key].busy++
	return made, k.halfway
}

func (k *stock) end(req providers.CreateRequest, drop bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := volumeKey{fake.ID(req.Name), req.UID}
	v, ok := k.volumes[key]
	if !ok { // a delete took it meanwhile
		return
	}
	v.busy--
	if drop && v.busy == 0 {
		delete(k.volumes, key)
	}
}

// put needs the lock.
func (k *stock) put(req providers.CreateRequest) {
	k.volumes[volumeKey{fake.ID(req.Name), req.UID}] = &volume{Leftover: providers.Leftover{
		ID: fake.ID(req.Name), Kind: "volume", UID: req.UID, Installation: req.Installation,
		Owner: req.Owner, CreatedAt: time.Now(),
	}}
}

// Delete takes the volumes, too.
func (k *stock) Delete(ctx context.Context, id string) error {
	err := k.Faults.Delete(ctx, id)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		maps.DeleteFunc(k.volumes, func(at volumeKey, _ *volume) bool { return at.id == id })
	}
	return err
}

// Inventory lists the volumes of this installation that no instance and no create has.
func (k *stock) Inventory(ctx context.Context) (providers.Inventory, error) {
	all, err := k.Faults.Inventory(ctx)
	if err != nil {
		return all, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, v := range k.volumes {
		used := slices.ContainsFunc(k.Instances(), func(i providers.Instance) bool { return i.ID == key.id })
		if !used && v.busy == 0 && v.Installation == fake.DefaultInstallation {
			all.Leftovers = append(all.Leftovers, v.Leftover)
		}
	}
	slices.SortFunc(all.Leftovers, func(a, b providers.Leftover) int { return strings.Compare(a.ID+a.UID, b.ID+b.UID) })
	return all, nil
}

// of names the volumes of a UID.
func (k *stock) of(uid string) (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.volumes {
		if key.uid == uid {
			names = append(names, "volume "+key.id)
		}
	}
	return names
}

// has reports whether a name has a volume already.
func (k *stock) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.volumes {
		if key.id == fake.ID(name) {
			return true
		}
	}
	return false
}

// failHalfway is Suite.FailHalfway.
func (k *stock) failHalfway() (heal func()) {
	set := func(halfway bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.halfway = halfway
	}
	set(true)
	return func() { set(false) }
}

// orphan is Suite.Orphan.
func (k *stock) orphan(req providers.CreateRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(req)
}
