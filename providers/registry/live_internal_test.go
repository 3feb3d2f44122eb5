package registry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatKeepsAProvider(t *testing.T) {
	t.Parallel()
	entry := func(name, typ, block string) Entry {
		return Entry{Name: name, Type: typ, Block: []byte(block), at: "file: providers[0]"}
	}
	before := func() *held {
		return &held{entry: entry("a", "mem", `{"size":1}`), credentials: digests{"key": "1"}}
	}
	for name, c := range map[string]struct {
		was  *held
		is   Entry
		now  digests
		fits bool
	}{
		"nothing changed": {before(), entry("a", "mem", `{"size":1}`), digests{"key": "1"}, true},
		"another place in the file": {
			before(),
			Entry{Name: "a", Type: "mem", Block: []byte(`{"size":1}`), at: "file: providers[7]"},
			digests{"key": "1"},
			true,
		},
		"another block":             {before(), entry("a", "mem", `{"size":2}`), digests{"key": "1"}, false},
		"no block":                  {before(), entry("a", "mem", ``), digests{"key": "1"}, false},
		"another type":              {before(), entry("a", "gcp", `{"size":1}`), digests{"key": "1"}, false},
		"another credential":        {before(), entry("a", "mem", `{"size":1}`), digests{"key": "2"}, false},
		"a credential that is gone": {before(), entry("a", "mem", `{"size":1}`), digests{"key": absent}, false},
		"nothing was there":         {nil, entry("a", "mem", ``), nil, false},
		"an empty block for none":   {&held{entry: entry("a", "mem", "")}, entry("a", "mem", "null"), digests{}, true},
	} {
		require.Equal(t, c.fits, c.was.fits(c.is, c.now), name)
	}
}

func TestCompareSaysWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	a, b, c := &held{}, &held{}, &held{}
	got := compare(
		&Set{held: map[string]*held{"kept": a, "changed": b, "removed": c}},
		&Set{held: map[string]*held{"kept": a, "changed": c, "added": b}},
	)
	require.Equal(t, Change{
		Kept: []string{"kept"}, Added: []string{"added"}, Changed: []string{"changed"}, Removed: []string{"removed"},
	}, got)
	require.Equal(t, []string{"added", "changed", "removed"}, got.Touched())
}
