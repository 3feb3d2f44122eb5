package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/registry"
)

// secret stands for a credential in a providers file.
const secret = "hunter2"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoadFileReadsEntriesInTheirOrder(t *testing.T) {
	t.Parallel()
	entries, err := registry.LoadFile(write(t, `
providers:
  - {name: zebra, type: local, local: {size: 3}}
  - name: ant
    type: gcp
`))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "zebra", entries[0].Name)
	require.Equal(t, "local", entries[0].Type)
	require.JSONEq(t, `{"size": 3}`, string(entries[0].Block))
	require.Equal(t, "ant", entries[1].Name)
	require.Empty(t, entries[1].Block)
}

func TestLoadFileTakesNoProvidersOnlyWhereItSaysSo(t *testing.T) {
	t.Parallel()
	entries, err := registry.LoadFile(write(t, "providers: []\n"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestLoadFileRefuses(t *testing.T) {
	t.Parallel()
	long := "a123456789a123456789a123456789a123456789a123456789a123456789abcd" // 64 characters
	for name, c := range map[string]struct{ file, want string }{
		"an empty file":           {"", "providers: is missing or not a list"},
		"a file without the list": {"{}", "providers: is missing or not a list"},
		"a file that is a list":   {"[1]", "is not a mapping with the key providers"},
		"no list":                 {"providers: local", "providers: is missing or not a list"},
		"another key at the top":  {"providers: []\nport: 1", `unknown key "port", want providers`},
		"a second document": {
			"providers: []\n---\nproviders: [{name: a, type: local}]\n", "line 2: a second YAML document, want one",
		},
		"broken YAML": {"providers: [\npassword: '" + secret, "is not YAML: line "},
		"a secret taken for an alias": {
			"providers: [{name: a, type: local, local: {password: *" + secret + "}}]", "is not YAML",
		},
		"one key twice": {
			"providers: [{name: a, name: b, type: local}]", `is not YAML: line 1: key "name" already set in map`,
		},
		"an entry that is a word": {"providers: [local]", "providers[0]: is not a mapping"},
		"an empty entry":          {"providers:\n  -\n", "providers[0]: is not a mapping"},
		"an entry without a name": {"providers: [{type: local}]", `providers[0].name: "" is missing or not a string`},
		"a name that is a number": {"providers: [{name: 7, type: local}]", `providers[0].name: "7" is missing or`},
		"an entry without a type": {"providers: [{name: a}]", `providers[0].type: "" is missing or not a string`},
		"a name in capitals":      {"providers: [{name: Local, type: local}]", `[0].name: "Local" is not a DNS label`},
		"a name with a dot":       {"providers: [{name: a.b, type: local}]", `providers[0].name: "a.b" is not a DNS label`},
		"a name with a line end":  {`providers: [{name: "a\n", type: local}]`, `providers[0].name: "a\n" is not a DNS label`},
		"a name of 64 characters": {"providers: [{name: " + long + ", type: local}]", `"` + long + `" is not a DNS label`},
		"an empty name":           {`providers: [{name: "", type: local}]`, `providers[0].name: "" is not a DNS label`},
		"two providers of one name": {
			"providers: [{name: a, type: local}, {name: b, type: local}, {name: a, type: gcp}]",
			`providers[2].name: "a" is also the name of `,
		},
		"a block of another type": {
			"providers: [{name: a, type: local, gcp: {key: " + secret + "}}]",
			`providers[0]: unknown key "gcp" in "a", want name, type and a block named like the type, "local"`,
		},
		"a key in another case": {
			"providers: [{name: a, Type: local}]", `providers[0].type: "" is missing or not a string`,
		},
		"a key twice in two cases": {
			"providers: [{name: a, Name: b, type: local}]", `providers[0]: unknown key "Name" in "a", want name, type`,
		},
		"a key beside the block": {
			"providers: [{name: a, type: local, password: " + secret + "}]", `providers[0]: unknown key "password" in "a"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, c.file)
			entries, err := registry.LoadFile(path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), secret)
			require.Empty(t, entries)
		})
	}
}

func TestLoadFileNamesAFileThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nowhere.yaml")
	_, err := registry.LoadFile(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
}
