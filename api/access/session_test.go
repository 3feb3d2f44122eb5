package access_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
)

const other = "t0ken-of-another"

func two(more string) string {
	return one(more) + "- {name: other, sha256: " + sum(other) + ", scopes: [admin]}\n"
}

func TestASessionHoldsForEveryProcessWithTheFile(t *testing.T) {
	t.Parallel()
	d, elsewhere := newDesk(t, two("scopes: [read]")), newDesk(t, two("scopes: [write]"))
	until := d.now.Add(time.Hour)
	session := d.Session(secret, until)
	require.NotContains(t, session, secret)
	require.NotEqual(t, session, d.Session(secret, until), "two browsers have two")
	grant, ends := elsewhere.Resume(session, d.now)
	require.NotNil(t, grant)
	require.Equal(t, "crawler", grant.Name)
	require.True(t, grant.May(access.ScopeWrite), "it may what the token may now")
	require.True(t, ends.Equal(until))
	require.Empty(t, d.Session("nonsense", until), "who has no token has no session")
	require.Empty(t, d.Session("", until))
}

func TestASessionThatIsNoneIsNobodys(t *testing.T) {
	t.Parallel()
	d := newDesk(t, two("scopes: [read]"))
	until := d.now.Add(time.Hour)
	good := d.Session(secret, until)
	parts := strings.Split(good, ".")
	with := func(at int, value string) string {
		changed := append([]string{}, parts...)
		changed[at] = value
		return strings.Join(changed, ".")
	}
	require.Len(t, parts, 4)
	flipped := []byte(parts[3])
	flipped[0] ^= 1
	for name, session := range map[string]string{
		"nothing":               "",
		"dots":                  "...",
		"the token":             secret,
		"its hash":              sum(secret),
		"another version":       with(0, "v2"),
		"another name":          with(1, "other"),
		"nobody's name":         with(1, "nobody"),
		"a later end":           with(2, "9999999999"),
		"an end that is no end": with(2, "soon"),
		"no seal":               with(3, ""),
		"another seal":          with(3, string(flipped)),
		"half a seal":           with(3, parts[3][:len(parts[3])/2]),
		"a seal with more":      with(3, parts[3]+"AAAA"),
		"another's seal":        with(3, strings.Split(d.Session(other, until), ".")[3]),
		"one part more":         good + ".",
		"a reader of the file":  d.Forge("crawler", "a guess", until),
		"another who reads it":  d.Forge("crawler", sum(secret), until),
	} {
		grant, _ := d.Resume(session, d.now)
		require.Nil(t, grant, name)
	}
	grant, _ := d.Resume(d.Forge("crawler", secret, until), d.now)
	require.NotNil(t, grant, "the token is all that a forger lacks")
	grant, _ = d.Resume(good, until.Add(-time.Second))
	require.NotNil(t, grant)
	grant, _ = d.Resume(good, until)
	require.Nil(t, grant, "it is over")
}

func TestASessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	d := newDesk(t, two("scopes: [read]"))
	session := d.Session(secret, d.now.Add(time.Hour))
	d.write(two("scopes: [read], namespaces: [a]"))
	d.now = d.now.Add(time.Second)
	grant, _ := d.Resume(session, d.now)
	require.NotNil(t, grant, "a token that changes keeps it")
	require.False(t, grant.Enters("b"))
	for name, text := range map[string]string{
		"removed":  strings.Replace(two("scopes: [read]"), "crawler", "another", 1),
		"replaced": strings.Replace(two("scopes: [read]"), sum(secret), sum("rotated"), 1),
	} {
		d.write(text)
		d.now = d.now.Add(time.Second)
		grant, _ := d.Resume(session, d.now)
		require.Nil(t, grant, name)
	}
	require.NotContains(t, filepath.Base(d.path)+d.log.String(), secret)
}

func TestAGrantIsOverWhenTheFileSaysSomethingElse(t *testing.T) {
	t.Parallel()
	const was, slow = "scopes: [read], namespaces: [a], labels: team=x, requestsPerSecond: 1", "requestsPerSecond: 1.0"
	admin := "tokens:\n" + strings.TrimPrefix(two(was), one(was))
	for name, c := range map[string]struct {
		text          string
		over, removed bool
	}{
		"written anew":               {two("labels: team=x, namespaces: [a], scopes: [read], " + slow), false, false},
		"in another order":           {strings.Replace(one(was), "tokens:\n", admin, 1), false, false},
		"another one is gone":        {one(was), false, false},
		"it is gone":                 {strings.Replace(two(was), sum(secret), sum("x"), 1), true, true},
		"less":                       {two(strings.Replace(was, "read", "discovery", 1)), true, false},
		"more":                       {two(strings.Replace(was, "read", "write", 1)), true, false},
		"another namespace":          {two(strings.Replace(was, "[a]", "[b]", 1)), true, false},
		"every namespace":            {two(strings.Replace(was, "namespaces: [a], ", "", 1)), true, false},
		"other labels":               {two(strings.Replace(was, "team=x", "team=y", 1)), true, false},
		"another rate":               {two(strings.Replace(was, "Second: 1", "Second: 2", 1)), true, false},
		"another name":               {strings.Replace(two(was), "crawler", "spider", 1), true, false},
		"a file that cannot be read": {"tokens: []\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, two(was))
			grant, neighbour := d.Find(secret), d.Find(other)
			require.False(t, grant.Removed())
			require.Zero(t, grant.Take(d.now))
			d.write(c.text)
			d.Look()
			require.False(t, isOver(grant), "no second has passed")
			d.now = d.now.Add(time.Second)
			d.Look()
			require.Equal(t, c.over, isOver(grant))
			require.Equal(t, c.removed, grant.Removed())
			require.Equal(t, name == "another one is gone", isOver(neighbour))
			if !c.over {
				require.Same(t, grant, d.Find(secret), "with what is left of its allowance")
			}
		})
	}
	require.Nil(t, access.Everything().Over())
	require.False(t, access.Everything().Removed())
	require.False(t, access.Of(t.Context()).Removed())
}

func isOver(g *access.Grant) bool {
	select {
	case <-g.Over():
		return true
	default:
		return false
	}
}
