package providertest_test

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// failures runs a row in time of its own: what is waited for takes none, and a busy
// machine changes nothing.
func failures(t *testing.T, s providertest.Suite, row string) (found []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		found = s.Failures(t, row)
		<-time.After(time.Hour) // what the row left behind ends in this time
	})
	return found
}

// reference is a suite over the fake of a profile, with calls that give up soon.
func reference(wrap func(*fake.Faults) providers.Provider, opts ...fake.Option) providertest.Suite {
	s := suite(wrap, append([]fake.Option{fake.WithCallTimeout(callTimeout)}, opts...)...)
	s.RunningWithin, s.GoneWithin, s.PromptWithin = mutantBounds, mutantBounds, mutantBounds
	s.Lab.CallWithin = 2 * callTimeout
	return s
}

const callTimeout = 20 * time.Millisecond

// plainProfile is the profile that the others differ from.
func plainProfile() providers.Profile { return fake.New("").Profile() }

// with returns p with another choice on the n-th axis.
func with(p providers.Profile, n int, choice string) providers.Profile {
	reflect.ValueOf(&p).Elem().Field(n).SetString(choice)
	return p
}

// TestTheReferencePassesUnderEveryChoice changes one axis at a time.
func TestTheReferencePassesUnderEveryChoice(t *testing.T) {
	t.Parallel()
	var ran sync.Map
	t.Run("axis", func(t *testing.T) {
		for n, axis := range plainProfile().Axes() {
			for _, choice := range providertest.Choices()[axis.Name] {
				t.Run(axis.Name+" "+choice, func(t *testing.T) {
					t.Parallel()
					passes(t, with(plainProfile(), n, choice), &ran)
				})
			}
		}
		t.Run("a list that leaves out, and logs", func(t *testing.T) { // what takes two answers
			t.Parallel()
			p := plainProfile()
			p.ListPartial, p.Logging = providers.ListOmitUnreachable, providers.LoggingOutcomeOnly
			passes(t, p, &ran)
		})
	})
	for _, row := range providertest.Rows() {
		_, ok := ran.Load(row.Name)
		require.True(t, ok || row.Apart, "no profile of the reference runs row %s", row.Name)
	}
}

// TestTheReferencePassesUnderEveryPairOfChoices has profiles in which every choice
// meets every choice on another axis.
func TestTheReferencePassesUnderEveryPairOfChoices(t *testing.T) {
	t.Parallel()
	for n, p := range pairwise() {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			passes(t, p, new(sync.Map))
		})
	}
}

// passes runs every row that fits the profile; those in which a create ends half-way
// with a dead worker, and once more with an error.
func passes(t *testing.T, p providers.Profile, ran *sync.Map) {
	t.Helper()
	for again, how := range []func() error{dies, fails} {
		s := reference(bare, fake.WithProfile(p))
		s.Lab.HalfWay = halfWay(how)
		for _, row := range providertest.Rows() {
			if why := s.LeftOut(row, p); why != "" {
				t.Log(why)
				continue
			}
			if row.Apart { // TestTheFakeMeetsTheContract runs it
				continue
			}
			if again > 0 && !strings.Contains(row.Needs, "HalfWay") {
				continue
			}
			t.Run(row.Name, func(t *testing.T) {
				require.Empty(t, failures(t, s, row.Name), "of %v", p.Axes())
				ran.Store(row.Name, true)
			})
		}
	}
}
