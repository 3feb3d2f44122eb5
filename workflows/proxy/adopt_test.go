package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// inline is a cloud-init that an adopted proxy knows by its digest only.
const inline = "#cloud-config\npassword: hunter2\n"

func inlineSpec() v1.ProxySpec {
	s := spec
	s.CloudInit.Inline = inline
	return s
}

// survived is the backend with an instance of a life before.
func (sc *scene) survived(was v1.ProxySpec) (id string, in Input) {
	sc.t.Helper()
	state := State{Spec: was}
	inst := providers.Instance{
		ID: fake.ID(providers.NameFromUID("life-before")), UID: "life-before", Installation: fake.DefaultInstallation,
		Owner: "default/a", SpecMark: specMarkOf(was, state.userData()), State: providers.StateRunning, IP: "127.0.0.9",
	}
	sc.backend.Plant(inst)
	in, err := FromMark("fake", inst.UID, inst.ID, inst.SpecMark)
	require.NoError(sc.t, err)
	return inst.ID, in
}

// adopts executes the proxy of the life before until it closes.
func (sc *scene) adopts(in Input) {
	sc.t.Helper()
	sc.ExecuteWorkflow(WorkflowType, in)
	require.True(sc.t, sc.IsWorkflowCompleted())
	require.NoError(sc.t, sc.GetWorkflowError())
	require.Empty(sc.t, sc.backend.Instances())
}

func TestAnAdoptedProxyKeepsItsInstanceAndItsUID(t *testing.T) {
	sc := newScene(t)
	id, in := sc.survived(spec)
	sc.at(time.Hour, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Equal(t, id, sc.status().ProviderID)
		require.Equal(t, v1.ReasonFromMarks, sc.condition(v1.ConditionAdopted).Reason)
		require.Equal(t, v1.ReasonFromMarks, sc.timeline()[0].Reason)
		require.Zero(t, sc.backend.Calls(providers.OpCreate))
		require.Zero(t, sc.backend.Calls(providers.OpDelete))
	})
	sc.deleteAt(2 * time.Hour)
	sc.adopts(in)
	require.Zero(t, sc.backend.Calls(providers.OpCreate))
}

func TestAnInstanceThatWentBeforeItWasAdoptedIsMadeFromItsMarks(t *testing.T) {
	sc := newScene(t)
	id, in := sc.survived(spec)
	sc.backend.Lose(id)
	sc.at(time.Hour, func() { require.Equal(t, v1.PhaseRunning, sc.status().Phase) })
	sc.deleteAt(2 * time.Hour)
	sc.adopts(in)
	made := sc.backend.Requests()
	require.Len(t, made, 1)
	require.Equal(t, "life-before", made[0].UID)
	require.Greater(t, made[0].Attempt, 1_000_000, "above every attempt of the life before")
	require.Equal(t, providers.OpGet, sc.backend.Recorded()[0].Op, "it is looked at first")
}

func TestWithoutItsCloudInitNothingIsMade(t *testing.T) {
	for name, lose := range map[string]func(*scene, string){
		"it is gone":       func(sc *scene, id string) { sc.backend.Lose(id) },
		"it has stopped":   func(sc *scene, id string) { sc.backend.SetState(id, providers.StateStopped) },
		"its host is gone": func(sc *scene, id string) { sc.backend.SetState(id, providers.StateTerminated) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			id, in := sc.survived(inlineSpec())
			lose(sc, id)
			held := len(sc.backend.Instances())
			sc.at(3*time.Hour, func() {
				require.Equal(t, v1.PhaseBlocked, sc.status().Phase)
				c := sc.condition(v1.ConditionProvisioned)
				require.Equal(t, v1.ReasonCloudInitUnknown, c.Reason)
				require.Contains(t, c.Message, "apply the spec again")
				require.Equal(t, v1.ReasonCloudInitUnknown, sc.condition(v1.ConditionAdopted).Reason)
				require.Zero(t, sc.backend.Calls(providers.OpCreate))
				require.Zero(t, sc.backend.Calls(providers.OpDelete), "what may come back is not thrown away")
				require.Len(t, sc.backend.Instances(), held)
				sc.tell(UpdateApply, "again", ApplyInput{Spec: inlineSpec()})
			})
			sc.at(4*time.Hour, func() {
				require.Equal(t, v1.PhaseRunning, sc.status().Phase)
				_, told := sc.status().Condition(v1.ConditionAdopted)
				require.False(t, told)
			})
			sc.deleteAt(5 * time.Hour)
			sc.adopts(in)
			require.Len(t, sc.backend.Requests(), 1)
			require.Equal(t, inline, string(sc.backend.Requests()[0].CloudInit))
		})
	}
}

func TestOneThatIsBlockedForItsCloudInitCanBeDeleted(t *testing.T) {
	sc := newScene(t)
	id, in := sc.survived(inlineSpec())
	sc.backend.SetState(id, providers.StateStopped)
	sc.deleteAt(time.Hour)
	sc.adopts(in)
	require.Zero(t, sc.backend.Calls(providers.OpCreate))
}

func TestWhatIsAppliedToAnAdoptedProxy(t *testing.T) {
	standIn, moved, other := inlineSpec().Redacted(), inlineSpec(), inlineSpec()
	moved.Placement.Zone, other.CloudInit.Inline = "b", "#cloud-config\n"
	health := standIn
	health.HealthCheck.ReplaceAfter = "10m"
	for name, tc := range map[string]struct {
		spec    v1.ProxySpec
		made    int  // instances, besides that of the life before
		adopted bool // it says so still
	}{
		"the same":                            {inlineSpec(), 0, false},
		"another placement, with the content": {moved, 1, false},
		"another cloud-init":                  {other, 1, false},
		"what is shown":                       {standIn, 0, true},
		"another health check to what is shown": {
			health, 0, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			_, in := sc.survived(inlineSpec())
			sc.at(time.Hour, func() { sc.tell(UpdateApply, "again", ApplyInput{Spec: tc.spec}) })
			sc.at(2*time.Hour, func() {
				require.Equal(t, v1.PhaseRunning, sc.status().Phase)
				_, told := sc.status().Condition(v1.ConditionAdopted)
				require.Equal(t, tc.adopted, told)
			})
			sc.deleteAt(3 * time.Hour)
			sc.adopts(in)
			require.Len(t, sc.backend.Requests(), tc.made)
		})
	}
}

func TestWhatNeedsAnotherInstanceIsRefusedWhileTheCloudInitIsNotKnown(t *testing.T) {
	sc := newScene(t)
	_, in := sc.survived(inlineSpec())
	moved := inlineSpec().Redacted()
	moved.Placement.Zone = "b"
	sc.at(time.Hour, func() {
		refused := rejected(t, "spec.cloudInit.inline")
		sc.UpdateWorkflow(UpdateReplace, "replace", refused, ReplaceInput{})
		sc.UpdateWorkflow(UpdateApply, "move", refused, ApplyInput{Spec: moved})
	})
	sc.deleteAt(2 * time.Hour)
	sc.adopts(in)
	require.Zero(t, sc.backend.Calls(providers.OpCreate))
}

func TestReadingASpecMark(t *testing.T) {
	t.Parallel()
	ref := spec
	ref.CloudInit.SecretRef = &v1.SecretRef{Name: "squid", Key: "conf"}
	placed := spec
	placed.Placement = v1.Placement{Region: "r", Zone: "z", MachineType: "m", Image: "i"}
	digest := v1.Digest([]byte(inline))
	for name, tc := range map[string]struct {
		spec   v1.ProxySpec
		digest string
	}{
		"no cloud-init": {spec, ""}, "a placement": {placed, ""},
		"inline": {inlineSpec(), digest}, "a reference": {ref, digest},
	} {
		in, err := FromMark("fake", "u", "mem/a", specMarkOf(tc.spec, tc.digest))
		require.NoError(t, err, name)
		require.Equal(t, tc.spec.Redacted(), in.Spec, name)
		require.Equal(t, specHash(tc.spec, tc.digest), in.Adopt.MadeFrom, name)
	}
	whole := specMarkOf(inlineSpec(), digest)
	for name, tc := range map[string]struct{ mark, says string }{
		"nothing":                 {"", "spec mark"},
		"no JSON":                 {"hunter2", "spec mark"},
		"another port":            {strings.Replace(whole, "3128", "3129", 1), "specHash"},
		"no hash":                 {strings.Replace(whole, `"specHash"`, `"x"`, 1), "specHash"},
		"a hash to come":          {strings.Replace(whole, `"v1:`, `"v9:`, 1), "newer release"},
		"another digest":          {strings.Replace(whole, `256":"`+digest, `256":"`+v1.Digest(nil), 1), "cloudInitSHA256"},
		"a stand-in cut off":      {strings.Replace(whole, "d:sha256:"+digest, "d:sha256:hunter2", 1), "cloudInit"},
		"a content":               {`{"port":3128,"cloudInit":{"inline":"hunter2"},"specHash":"x"}`, "cloudInit"},
		"a port that is none":     {specMarkOf(v1.ProxySpec{Provider: "fake"}, ""), "spec.port"},
		"a reference with spaces": {strings.Replace(specMarkOf(ref, digest), "squid", "a b", 1), "secretRef"},
	} {
		_, err := FromMark("fake", "u", "mem/a", tc.mark)
		require.ErrorContains(t, err, tc.says, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
	_, err := FromMark("fake", "no label", "mem/a", whole)
	require.ErrorContains(t, err, "uid")
}

func TestTheInputOfAnAdoption(t *testing.T) {
	t.Parallel()
	standIn := `{"provider":"fake","port":3128,"cloudInit":{"inline":"` + inlineSpec().Redacted().CloudInit.Inline + `"}}`
	for name, tc := range map[string]struct{ input, field string }{
		"whole":               {`{"spec":` + standIn + `,"uid":"u","adopt":{"id":"mem/a","madeFrom":"v1:x"}}`, ""},
		"without a UID":       {`{"spec":` + standIn + `,"adopt":{"id":"mem/a","madeFrom":"v1:x"}}`, "adopt"},
		"without an instance": {`{"spec":` + standIn + `,"uid":"u","adopt":{"madeFrom":"v1:x"}}`, "adopt"},
		"without a hash":      {`{"spec":` + standIn + `,"uid":"u","adopt":{"id":"mem/a"}}`, "adopt"},
		"a stand-in alone":    {`{"spec":` + standIn + `}`, "spec.cloudInit.inline"},
		"a stand-in with a UID": {
			`{"spec":` + standIn + `,"uid":"u"}`, "spec.cloudInit.inline",
		},
	} {
		var in Input
		require.NoError(t, json.Unmarshal([]byte(tc.input), &in))
		if err := in.validate(); tc.field == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tc.field, name)
		}
	}
}

func unknown(s *State) { s.Spec = inlineSpec().Redacted(); s.MadeFrom = specHash(s.Spec, s.userData()) }

func TestDecideWithoutACloudInit(t *testing.T) {
	runs := plan{actionNone, v1.PhaseRunning, v1.ReasonCreated, watch(paceSteady)}
	forget := cannotMake()
	forget.Do = actionForget
	leaves := plan{actionNone, v1.PhaseReplacing, v1.ReasonReplacing, watch(paceBusy)}
	decides(t, map[string]decision{
		"it runs":                         {made(unknown), running, runs},
		"it has stopped":                  {made(unknown), seeing(providers.StateStopped), cannotMake()},
		"another spec is wanted":          {made(unknown, moved), running, cannotMake()},
		"a replacement was asked for":     {made(unknown, banned), running, cannotMake()},
		"it is gone for sure":             {made(unknown, missed), gone, forget},
		"there is none":                   {State{Spec: inlineSpec().Redacted()}, nothing, cannotMake()},
		"the backend is deleting it":      {made(unknown), leaving(running), leaves},
		"it is to be deleted for good":    {made(unknown, deleting), running, remove},
		"it is gone and deleted for good": {made(unknown, deleting, missed), gone, finish},
	})
}
