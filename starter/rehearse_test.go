package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const rehearsed = `metadata: {name: runs, labels: {team: a, env: c}}
spec: {provider: gcp, port: 3129, placement: {region: europe-west1, zone: europe-west1-b},
  cloudInit: {inline: "password: hunter3"}}
---
metadata: {name: waits}
spec: {provider: gcp, port: 3128}
---
metadata: {name: new}
spec: {provider: local, port: 1, healthCheck: {replaceAfter: 10m}}
---
metadata: {name: six, namespace: crawl, labels: {team: b}}
spec: {provider: local, port: 80}
`

func TestADryRunShowsTheDifferenceAndAsksForNothing(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	out, errOut, code := run(t.Context(), f, rehearsed, "apply", "-f", "-", "--dry-run")
	require.Zero(t, code, errOut)
	require.Empty(t, f.asked)
	require.NotContains(t, out, "hunter")
	golden(t, "dry-run.txt", out)
}

func TestADryRunIsAnObjectToo(t *testing.T) {
	t.Parallel()
	out, errOut, code := run(t.Context(), fleetOfThree(), rehearsed, "apply", "-f", "-", "--dry-run", "-o", "json")
	require.Zero(t, code, errOut)
	require.NotContains(t, out, "hunter")
	var all []rehearsal
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, 4)
	require.True(t, all[0].ReplacesInstance)
	require.Equal(t, rehearsal{Namespace: "default", Name: "waits", Outcome: wouldNothing}, all[1])
	require.False(t, all[3].ReplacesInstance, "labels replace nothing")
}

func TestADryRunRefusesWhatApplyRefuses(t *testing.T) {
	t.Parallel()
	f := fleetOfThree()
	f.proxies[1].Status.Phase = v1.PhaseDeleting
	out, errOut, code := run(t.Context(), f, `metadata: {name: runs}
spec: {provider: local, port: 1}
---
metadata: {name: waits}
spec: {provider: gcp, port: 3128}
`, "apply", "-f", "-", "--dry-run")
	require.Empty(t, out)
	require.Equal(t, exitConflict, code)
	require.Equal(t, `starter: apply default/runs: spec.provider: "local" never changes; it is gcp
apply default/waits: status.phase: "Deleting" takes no new spec; apply again once it is gone
`, errOut)
}

// Whatever of a spec is changed, a dry run sees it; what the hash of a spec covers
// replaces the instance.
func TestADryRunComparesEveryField(t *testing.T) {
	t.Parallel()
	key := v1.SecretRef{Name: "n", Key: "k"}
	for name, c := range map[string]struct {
		change   func(*v1.ProxySpec)
		replaces bool
	}{
		"port":          {func(s *v1.ProxySpec) { s.Port = 1 }, true},
		"zone":          {func(s *v1.ProxySpec) { s.Placement.Zone = "z" }, true},
		"user-data":     {func(s *v1.ProxySpec) { s.CloudInit.Inline = "other" }, true},
		"secret":        {func(s *v1.ProxySpec) { s.CloudInit = v1.CloudInit{SecretRef: &key} }, true},
		"health check":  {func(s *v1.ProxySpec) { s.HealthCheck.Disabled = true }, false},
		"deadlines":     {func(s *v1.ProxySpec) { s.Deadlines.Delete = "1h" }, false},
		"proxy's login": {func(s *v1.ProxySpec) { s.HealthCheck.ProxyAuthRef = &key }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was := fleetOfThree().proxies[0]
			is := was
			c.change(&is.Spec)
			r, err := compare(&was, is)
			require.NoError(t, err)
			require.Equal(t, wouldChange, r.Outcome)
			require.Equal(t, c.replaces, r.ReplacesInstance)
			require.Contains(t, r.Diff, "\n+")
			require.NotContains(t, r.Diff, "hunter2")
		})
	}
}

func TestADryRunKnowsNoUserDataByItsStandIn(t *testing.T) {
	t.Parallel()
	was := fleetOfThree().proxies[0]
	is := was
	is.Spec = is.Spec.Redacted()
	r, err := compare(&was, is)
	require.NoError(t, err)
	require.Equal(t, wouldNothing, r.Outcome, "it stands for what is there")
	_, err = compare(nil, is)
	require.ErrorContains(t, err, "spec.cloudInit.inline")
}

// tree writes files below a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func one(name string) string {
	return "metadata: {name: " + name + "}\nspec: {provider: local, port: 1}\n"
}

func TestApplyTakesFolders(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"b.yaml": one("b") + "---\n" + one("b2"),
		"a.json": `{"metadata": {"name": "a"}, "spec": {"provider": "local", "port": 1}}`,
		"c.yml":  one("c"), "README.md": "no Proxy", ".d.yaml": "no Proxy",
		"deep/e.yaml": one("e"), ".git/f.yaml": "no Proxy",
	})
	for name, c := range map[string]struct {
		args, want []string
	}{
		"a folder":             {[]string{"-f", dir}, []string{"a", "b", "b2", "c"}},
		"and those in it":      {[]string{"-f", dir, "-R"}, []string{"a", "b", "b2", "c", "e"}},
		"and standard input":   {[]string{"-f", "-", "-f", dir}, []string{"z", "a", "b", "b2", "c"}},
		"and a file elsewhere": {[]string{"-f", dir + "/deep/e.yaml", "-f", dir}, []string{"e", "a", "b", "b2", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeFleet{}
			_, errOut, code := run(t.Context(), f, one("z"), append([]string{"apply"}, c.args...)...)
			require.Zero(t, code, errOut)
			var want []string
			for _, name := range c.want {
				want = append(want, "apply default/"+name)
			}
			require.Equal(t, want, f.asked)
		})
	}
}

func TestApplyRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"empty/README.md": "nothing", "twice/a.yaml": one("a"), "twice/sub/b.yaml": one("b") + "---\n" + one("a"),
		"other/p.yaml": "providers: []\n",
	})
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"a folder without files": {
			[]string{"-f", dir + "/empty"}, "empty: has no file that ends in .yaml, .yml or .json; -R", exitFailure,
		},
		"a folder that is not": {[]string{"-f", dir + "/none"}, "none: no such file", exitFailure},
		"a file of something else": {
			[]string{"-f", dir + "/other"}, "other/p.yaml: document 1: line 1: providers: unknown field", exitFailure,
		},
		"standard input twice": {[]string{"-f", "-", "-f", "-"}, "-f -: the standard input can be read once only", exitUsage},
		"one that is there twice": {
			[]string{"-f", dir + "/twice", "-R"}, dir + `/twice/sub/b.yaml: document 2: metadata.name: "a" of ` +
				`namespace "default" is there twice; first in ` + dir + "/twice/a.yaml: document 1", exitFailure,
		},
		"a file that is read twice": {
			[]string{"-f", dir + "/twice", "-f", dir + "/twice/a.yaml"}, "is there twice; first in", exitFailure,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeFleet{}
			_, errOut, code := run(t.Context(), f, one("z"), append([]string{"apply"}, c.args...)...)
			require.Contains(t, errOut, c.want)
			require.Equal(t, c.code, code)
			require.Empty(t, f.asked)
		})
	}
}
