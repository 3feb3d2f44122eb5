package gcp_test

import (
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// labs finds the lab of a provider that the suite was given.
type labs struct{ all sync.Map }

func (m *labs) open(t *testing.T) providers.Provider {
	l := newLab(t)
	m.all.Store(l.Provider, l)
	return l.Provider
}

func (m *labs) of(t *testing.T, p providers.Provider) *lab {
	t.Helper()
	l, ok := m.all.Load(p)
	require.True(t, ok)
	return l.(*lab)
}

func TestContract(t *testing.T) {
	t.Parallel()
	m := new(labs)
	providertest.Suite{
		New:          m.open,
		Installation: installation,
		Name:         providerName,
		Request: func(_ *testing.T, req *providers.CreateRequest) {
			req.Placement = providers.Placement{Zone: zoneA}
		},
		Secrets:    []string{strings.ReplaceAll(privateKey(), "\n", "\\n")[40:120], "first-of-the-keys"},
		Checker:    true,
		Inventory:  true,
		ListsState: true,
		Lab:        m.hooks(),
	}.Run(t)
}

// hooks are what a test can do to the server, and to what stands before it.
func (m *labs) hooks() providertest.Lab {
	var keys atomic.Int64
	return providertest.Lab{
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
			other := m.of(t, p).reopen(installation)
			m.all.Store(other, m.of(t, p))
			return other
		},
		Neighbour: func(t *testing.T, p providers.Provider, installation string) providers.Provider {
			return m.of(t, p).reopen(installation)
		},
		Plant: func(t *testing.T, p providers.Provider) []string { return m.of(t, p).plant() },
		Squat: func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
			m.of(t, p).squat(req, missing)
		},
		Orphan: func(t *testing.T, p providers.Provider, req providers.CreateRequest) { m.of(t, p).orphan(req) },
		Leftovers: func(t *testing.T, p providers.Provider, uid string) []string {
			return m.of(t, p).leftovers(uid)
		},
		Delivered:    func(t *testing.T, p providers.Provider, id string) []byte { return m.of(t, p).delivered(id) },
		MaxCloudInit: gcp.MaxUserData, MaxBinaryCloudInit: gcp.MaxBinaryUserData,
		Backend: gcp.Watch,
		Break:   func(t *testing.T, p providers.Provider) func() { return m.of(t, p).gate.with(down) },
		Stall:   func(t *testing.T, p providers.Provider) func() { return m.of(t, p).gate.stall() },
		HalfWay: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).cloud.Inject(gcefake.Fault{Method: "instances.insert", After: true, Drop: true})
		},
		Part: &providertest.Part{
			Name:  "zones/" + zoneB,
			Place: func(req *providers.CreateRequest) { req.Placement = providers.Placement{Zone: zoneB} },
			Cut:   func(t *testing.T, p providers.Provider) func() { return m.of(t, p).cloud.Zone(zoneB).CutOff() },
		},
		Mount: func(t *testing.T, p providers.Provider, c providertest.Credential) {
			m.of(t, p).credential(c, time.Now().Format("key-150405.000000000")+string(rune('a'+keys.Add(1)%26)))
		},
		Refuse: func(t *testing.T, p providers.Provider) func() { return m.of(t, p).gate.with(unauthorized) },
		Exhaust: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).cloud.Zone(zoneA).Stockout(gcefake.SoldOutLate)
		},
		Confuse: func(t *testing.T, p providers.Provider) func() { return m.of(t, p).gate.with(htmlNotFound) },
		Lag:     func(t *testing.T, p providers.Provider) func() { return m.of(t, p).lag() },
		FailLate: func(t *testing.T, p providers.Provider, class providers.Class) {
			m.of(t, p).cloud.FailLate(gcefake.Late{Times: 1, Failure: lateFailure(class)})
		},
		PowerOff: func(t *testing.T, p providers.Provider, id string) { m.of(t, p).machine(id).PowerOff() },
		Odd: func(t *testing.T, p providers.Provider, id string) {
			m.of(t, p).machine(id).State("HIBERNATING_2030")
		},
		CallWithin: 10 * time.Second,
	}
}

func lateFailure(class providers.Class) gcefake.Failure {
	name := map[providers.Class]string{
		providers.ErrQuotaExceeded: "op-quota", providers.ErrTransient: "op-internal",
		providers.ErrPermanent: "op-org-policy",
	}[class]
	return gcefake.Failed(name, project, zoneA, "it")
}

// plant puts instances there that Create did not make.
func (l *lab) plant() []string {
	l.Helper()
	var ids []string
	for _, drop := range []string{"all", providers.MarkManaged, providers.MarkInstallation} {
		req := request()
		msg := gcp.Build(l.T, l.Provider, req, zoneA)
		switch drop {
		case "all":
			msg.Labels, msg.Metadata = map[string]string{"team": "web"}, nil
		case providers.MarkManaged:
			msg.Labels[drop] = "yes"
		default:
			msg.Labels[drop] = "elsewhere"
		}
		l.cloud.Plant(gcefake.Place{Zone: zoneA, Name: req.Name}, msg)
		ids = append(ids, "zones/"+zoneA+"/instances/"+req.Name)
	}
	return ids
}

func (l *lab) squat(req providers.CreateRequest, missing string) {
	l.Helper()
	msg := gcp.Build(l.T, l.Provider, req, zoneA)
	delete(msg.Labels, missing)
	l.cloud.Plant(gcefake.Place{Zone: zoneA, Name: req.Name}, msg)
}

// orphan puts a disk there that an instance had long ago.
func (l *lab) orphan(req providers.CreateRequest) {
	l.Helper()
	made := gcp.Build(l.T, l.Provider, req, zoneA).GetDisks()[0].GetInitializeParams()
	l.cloud.PlantDisk(gcefake.Place{Zone: zoneA, Name: req.Name}, &computepb.Disk{
		Labels: made.GetLabels(), Description: made.Description,
		CreationTimestamp: proto.String(time.Now().Add(-time.Hour).Format(time.RFC3339)),
	})
}

func (l *lab) leftovers(uid string) (left []string) {
	name := providers.NameFromUID(uid)
	for _, i := range l.cloud.Instances() {
		if i.GetName() == name {
			left = append(left, i.GetSelfLink())
		}
	}
	for _, d := range l.cloud.Disks() {
		if d.GetName() == name {
			left = append(left, d.GetSelfLink())
		}
	}
	return left
}

// delivered is what cloud-init of the guest reads.
func (l *lab) delivered(id string) []byte {
	l.Helper()
	text, ok := l.machine(id).Guest("user-data")
	require.True(l, ok)
	if encoding, _ := l.machine(id).Guest("user-data-encoding"); encoding == "base64" {
		raw, err := base64.StdEncoding.DecodeString(text)
		require.NoError(l, err)
		return raw
	}
	return []byte(text)
}

func (l *lab) credential(c providertest.Credential, next string) {
	l.Helper()
	switch c {
	case providertest.CredentialMissing:
		l.remove()
	case providertest.CredentialUnreadable:
		l.mount("{ this is no key")
	case providertest.CredentialRotated:
		l.gate.takes(next)
		l.mount(keyFile(l.T, next))
	}
}

func (l *lab) lag() (restore func()) {
	slow := usualPace()
	slow.GetLag, slow.ListLag = 20*step, 30*step
	l.cloud.SetPace(slow)
	return func() { l.cloud.SetPace(usualPace()) }
}
