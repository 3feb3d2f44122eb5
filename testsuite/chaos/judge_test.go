package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const ours = "uid-a"

func wished() wish {
	return wish{Name: "a", Living: true, Spec: v1.ProxySpec{
		Provider: providerName, Port: 3128, Placement: v1.Placement{Zone: zones[0]}, CloudInit: v1.CloudInit{Inline: "one"},
	}}
}

func made(id, uid string) holding {
	spec := wished().Spec
	raw, _ := json.Marshal(mark{spec.Placement, spec.Port, v1.Digest(spec.CloudInit.Bytes()), "v1:h"})
	return holding{ID: id, UID: uid, SpecMark: string(raw)}
}

// fine is one proxy that was made, replaced, and is as it should be.
func fine() evidence {
	p := v1.Proxy{Metadata: v1.Metadata{Name: "a", UID: ours, Generation: 2}, Spec: wished().Spec}
	p.Status = v1.ProxyStatus{Phase: v1.PhaseRunning, ProviderID: "zone-a/a-2", SpecHash: "v1:h", ObservedGeneration: 2}
	first, second := made("zone-b/a-1", ours), made("zone-a/a-2", ours)
	return evidence{
		Wishes: []wish{wished()}, Proxies: map[string]v1.Proxy{"a": p}, Held: []holding{second},
		Log: []happening{{first, false}, {first, true}, {second, false}},
	}
}

func TestTheJudgementOfOneProxy(t *testing.T) {
	t.Parallel()
	failed := holding{ID: "zone-a/a-1", UID: ours, Failed: true}
	show := func(e *evidence, change func(*v1.Proxy)) {
		p := e.Proxies["a"]
		change(&p)
		e.Proxies["a"] = p
	}
	for name, c := range map[string]struct {
		change                  func(*evidence)
		duplicates, leaks, lost int
	}{
		"all is well": {func(*evidence) {}, 0, 0, 0},
		"a create that was not idempotent made two": {func(e *evidence) {
			e.Log = append(e.Log, happening{made("zone-a/a-3", ours), false})
			e.Held = append(e.Held, made("zone-a/a-3", ours))
		}, 1, 1, 0},
		"the next one came while the last one was on its way out": {func(e *evidence) {
			e.Log[1], e.Log[2] = e.Log[2], e.Log[1]
		}, 1, 0, 0},
		"two at a time of two proxies are none too many": {func(e *evidence) {
			e.Log = append(e.Log, happening{made("zone-a/b-1", "uid-b"), false}, happening{made("zone-a/b-1", "uid-b"), true})
		}, 0, 0, 0},
		"a create that failed late is no instance": {func(e *evidence) {
			e.Log = append([]happening{{failed, false}}, e.Log...)
		}, 0, 0, 0},
		"what a failed create left is a leak": {func(e *evidence) {
			e.Held = append(e.Held, failed)
		}, 0, 1, 0},
		"a delete that never reached the backend leaks": {func(e *evidence) {
			e.Wishes[0].Living = false
			delete(e.Proxies, "a")
		}, 0, 1, 0},
		"an instance of nobody is a leak": {func(e *evidence) {
			e.Held = append(e.Held, made("zone-a/b-1", "uid-b"))
		}, 0, 1, 0},
		"a delete that worked": {func(e *evidence) {
			e.Wishes[0].Living, e.Held = false, nil
			delete(e.Proxies, "a")
		}, 0, 0, 0},
		"a delete that was forgotten": {func(e *evidence) { e.Wishes[0].Living = false }, 0, 1, 1},
		"a proxy that vanished": {func(e *evidence) {
			delete(e.Proxies, "a")
			e.Held = nil
		}, 0, 0, 1},
		"an instance that vanished": {func(e *evidence) { e.Held = nil }, 0, 0, 1},
		"an apply that was forgotten": {func(e *evidence) {
			e.Wishes[0].Spec.Port++
		}, 0, 0, 1},
		"another cloud-init": {func(e *evidence) {
			e.Wishes[0].Spec.CloudInit.Inline = "two"
		}, 0, 0, 1},
		"the wrong zone": {func(e *evidence) {
			e.Wishes[0].Spec.Placement.Zone = zones[1]
		}, 0, 0, 1},
		"another spec hash": {func(e *evidence) {
			show(e, func(p *v1.Proxy) { p.Status.SpecHash = "v1:other" })
		}, 0, 0, 1},
		"a generation that nobody looked at": {func(e *evidence) {
			show(e, func(p *v1.Proxy) { p.Metadata.Generation++ })
		}, 0, 0, 1},
		"a hold that was forgotten": {func(e *evidence) { e.Wishes[0].Held = true }, 0, 0, 1},
		"a resume that was forgotten": {func(e *evidence) {
			show(e, func(p *v1.Proxy) { p.Status.Held = true })
		}, 0, 0, 1},
		"a replace that was forgotten": {func(e *evidence) {
			e.Wishes[0].Replaced = "zone-a/a-2"
		}, 0, 0, 1},
		"a replace that worked": {func(e *evidence) { e.Wishes[0].Replaced = "zone-b/a-1" }, 0, 0, 0},
		"it is not running yet": {func(e *evidence) {
			show(e, func(p *v1.Proxy) { p.Status.Phase = v1.PhaseBlocked })
		}, 0, 0, 1},
		"an operation that was never accepted": {func(e *evidence) {
			e.Wishes[0].Open = "hold"
		}, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fine()
			c.change(&e)
			v := judge(e)
			require.Equal(t, []int{c.duplicates, c.leaks, c.lost}, []int{v.Duplicates, v.Leaks, v.Lost}, v.Report)
			require.Len(t, v.Report, c.duplicates+c.leaks+c.lost, "one line for each")
			require.Equal(t, c.duplicates+c.leaks+c.lost == 0, v.clean())
		})
	}
}
