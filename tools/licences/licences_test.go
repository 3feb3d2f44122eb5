package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
	"github.com/stretchr/testify/require"
)

func TestThePageIsCurrentAndEveryLicenceCanBeMet(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	require.NoError(t, err)
	found, err := survey(t.Context(), root)
	require.NoError(t, err)
	require.Greater(t, len(found), 50)
	text, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	require.Equal(t, pageOf(found), string(text), "make licences writes it anew")
	for _, l := range found {
		require.True(t, len(l.texts) > 0 || unlicensed()[l.path] != "", l.path)
	}
}

func TestALicenceIsJudged(t *testing.T) {
	t.Parallel()
	const excused = "github.com/nexus-rpc/nexus-proto-annotations"
	for name, tt := range map[string]struct {
		found licensed
		want  string // nothing: it may be
	}{
		"a licence that is allowed":       {licensed{path: "a", names: []string{"MIT"}}, ""},
		"two that are":                    {licensed{path: "a", names: []string{"Apache-2.0", "BSD-3-Clause"}}, ""},
		"copyleft":                        {licensed{path: "a", names: []string{"GPL-3.0"}}, "a: GPL-3.0 is not one of"},
		"weak copyleft":                   {licensed{path: "a", names: []string{"MPL-2.0"}}, "a: MPL-2.0 is not one of"},
		"one of two":                      {licensed{path: "a", names: []string{"AGPL-3.0", "MIT"}}, "a: AGPL-3.0 is not"},
		"no file":                         {licensed{path: "a"}, "a: has no file with a licence"},
		"no file, and that is known":      {licensed{path: excused}, ""},
		"a reason that is needed no more": {licensed{path: excused, names: []string{"MIT"}}, "has a licence now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.want == "" {
				require.NoError(t, judge(tt.found))
				return
			}
			require.ErrorContains(t, judge(tt.found), tt.want)
		})
	}
}

func TestTextsAreKnownByWhatTheySay(t *testing.T) {
	t.Parallel()
	reader, err := assets.DefaultClassifier()
	require.NoError(t, err)
	dir := t.TempDir()
	for name, asset := range map[string]string{
		"MIT": "pristine.txt", "GPL-3.0": "license.txt", "MPL-2.0": "license.txt", "Apache-2.0": "pristine.txt",
		"AGPL-3.0": "license.txt", "ISC": "license.txt", "BSD-3-Clause": "pristine.txt",
	} {
		text, err := assets.ReadLicenseFile("License/" + name + "/" + asset)
		require.NoError(t, err, name)
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, text, 0o600))
		got, err := read(module{path: "a", files: []string{file}}, reader)
		require.NoError(t, err)
		require.Equal(t, []string{name}, got.names)
	}
	own := filepath.Join(dir, "LICENSE")
	require.NoError(t, os.WriteFile(own, []byte("You may look at this, and nothing else."), 0o600))
	_, err = read(module{path: "a", files: []string{own}}, reader)
	require.ErrorContains(t, err, "a: no licence that is known is in "+own)
}

func TestTheFilesAreThoseBesideThePackageAndAbove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"LICENSE", "LICENSE.md", "COPYING", "licence-apache.txt", "license.go", "licenses.txt", "README",
		"third/LICENSE", "other/LICENSE",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	folders := map[string]bool{}
	for _, folder := range upwards(filepath.Join(dir, "third", "pkg"), dir) {
		folders[folder] = true
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "third", "pkg"), 0o755))
	found, err := modulesOf(map[string]map[string]bool{"a": folders})
	require.NoError(t, err)
	var names []string
	for _, file := range found[0].files {
		name, err := filepath.Rel(dir, file)
		require.NoError(t, err)
		names = append(names, name)
	}
	require.Equal(t, []string{"COPYING", "LICENSE", "LICENSE.md", "licence-apache.txt", "third/LICENSE"}, names)
}

func TestEachTextIsThereOnceWithItsModules(t *testing.T) {
	t.Parallel()
	got := textOf([]licensed{
		{path: "a", texts: []string{"one\n"}},
		{path: "b", texts: []string{"two", "one"}},
		{path: "c", texts: []string{"one"}},
	})
	require.Equal(t, "a\nb\nc\n\none\n\n"+strings.Repeat("-", 80)+"\n\nb\n\ntwo\n", got)
}
