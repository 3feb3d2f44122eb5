package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/all"
)

// proven is what "go test -json" printed of a suite of two rows and two mutants, and
// of a provider that leaves one row out.
func proven(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/proven.jsonl")
	require.NoError(t, err)
	return string(text)
}

func planned() plan {
	return plan{
		rows:  []string{"SecretsStayInside", "CancelledCallReturns"},
		proof: proof, suites: []string{ofProviders + "local"},
	}
}

// end is the last line about a test, which says how it ended.
func end(action, pkg, test string) string {
	return `"Action":"` + action + `","Package":"` + module + "/" + pkg + `","Test":"` + test + `","Elapsed"`
}

// endOf is the last line about a package.
func endOf(action, pkg string) string {
	return `"Action":"` + action + `","Package":"` + module + "/" + pkg + `","Elapsed"`
}

// without takes the lines away that hold a text.
func without(stream, text string) string {
	var kept []string
	for line := range strings.Lines(stream) {
		if !strings.Contains(line, text) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestTally(t *testing.T) {
	t.Parallel()
	const suite, local = "testsuite/providertest", "providers/local"
	const logged, check = testMutants + "/cloud-init_is_logged", testMutants + "/a_check_outlives_its_context"
	turn := func(from, to string) func(string) string {
		return func(stream string) string { return strings.ReplaceAll(stream, from, to) }
	}
	drop := func(text string) func(string) string {
		return func(stream string) string { return without(stream, text) }
	}
	for name, c := range map[string]struct {
		change  func(string) string
		plan    func(*plan)
		closing string
		problem string // a part of one; empty: there is none
	}{
		"all is proven": {
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
		},
		"a mutant lives": {
			change:  turn(end(passed, suite, logged), end(failed, suite, logged)),
			closing: "providertest: 2 rows, 2 mutants, 1 killed",
			problem: "mutant cloud-init_is_logged is alive",
		},
		"a mutant that was skipped lives": {
			change:  turn(end(passed, suite, logged), end(skipped, suite, logged)),
			closing: "providertest: 2 rows, 2 mutants, 1 killed",
			problem: "mutant cloud-init_is_logged is alive",
		},
		"a mutant whose test did not end lives": {
			change:  drop(end(passed, suite, check)),
			closing: "providertest: 2 rows, 2 mutants, 1 killed",
			problem: "mutant a_check_outlives_its_context is alive",
		},
		"the steps of a mutant's test are no mutants": {
			change: func(stream string) string {
				return stream + `{` + end(passed, suite, logged+"/SecretsStayInside") + `:0}`
			},
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
		},
		"a mutant with a slash in its name is one": {
			change: func(stream string) string {
				return stream + `{` + end(passed, suite, testMutants+"/create/is_slow") + `:0}`
			},
			closing: "providertest: 2 rows, 3 mutants, 3 killed",
		},
		"no mutant ran": {
			change:  drop(testMutants + "/"),
			closing: "providertest: 2 rows, 0 mutants, 0 killed",
			problem: "no mutant ran",
		},
		"the test of the mutants fails by itself": {
			change:  turn(end(passed, suite, testMutants), end(failed, suite, testMutants)),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: testMutants + " did not pass",
		},
		"a row has no mutant": {
			change:  turn(end(passed, suite, testHasMutants), end(failed, suite, testHasMutants)),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "a row has no mutant",
		},
		"nobody asked whether every row has a mutant": {
			change:  drop(testHasMutants),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: testHasMutants + " did not pass",
		},
		"a row ran nowhere": {
			plan:    func(p *plan) { p.rows = append(p.rows, "CreateIsIdempotent") },
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "row CreateIsIdempotent has passed for no provider",
		},
		"a row passes for no provider": {
			change: func(stream string) string {
				return strings.ReplaceAll(without(stream, end(passed, local, "TestContract/SecretsStayInside")),
					`"Action":"pass","Package":"`+proof+`","Test":"TestTheFakeMeetsTheContract/when_all_is_immediate/Secrets`,
					`"Action":"skip","Package":"`+proof+`","Test":"TestTheFakeMeetsTheContract/when_all_is_immediate/Secrets`)
			},
			closing: "providertest: 1 rows, 2 mutants, 2 killed",
			problem: "row SecretsStayInside has passed for no provider",
		},
		"a row is skipped in one suite and passes in another": {
			change: func(stream string) string {
				return without(stream, `"TestContract/`) + `{` +
					end(skipped, suite, "TestOfAnother/SecretsStayInside") + `:0}` + `{` +
					end(skipped, local, "TestContract/SecretsStayInside") + `:0}`
			},
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
		},
		"a provider's suite fails": {
			change:  turn(endOf(passed, local), endOf(failed, local)),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/local: fail",
		},
		"a provider's tests do not end": {
			change:  drop(endOf(passed, local)),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/local did not end",
		},
		"a provider runs no row": {
			change:  drop(`"TestContract/`),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/local ran no row: it needs a TestContract",
		},
		"a provider has no tests": {
			plan:    func(p *plan) { p.suites = append(p.suites, ofProviders+"kvm") },
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/kvm did not end",
		},
		"another user of the suite fails": {
			plan:    func(p *plan) { p.suites, p.others = nil, p.suites },
			change:  turn(endOf(passed, local), endOf(failed, local)),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/local: fail",
		},
		"another user of the suite may have no provider": {
			plan:    func(p *plan) { p.suites, p.others = nil, p.suites },
			change:  drop(`"TestContract/`),
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
		},
		"a row is left out with a reason": {
			plan: func(p *plan) {
				p.reasons = map[string]string{ofProviders + "local": "`CancelledCallReturns`: none."}
			},
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
		},
		"a row is left out without a reason": {
			plan:    func(p *plan) { p.reasons = map[string]string{ofProviders + "local": "None."} },
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/local leaves out CancelledCallReturns, and its guide has no reason",
		},
		"a row that does not fit the profile needs no reason": {
			change:  turn("is not checked: it needs Suite.Stall", "does not fit the profile: it has no calls"),
			plan:    func(p *plan) { p.reasons = map[string]string{ofProviders + "local": "None."} },
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
		},
		"a reason is out of date": {
			plan: func(p *plan) {
				p.reasons = map[string]string{ofProviders + "local": "`CancelledCallReturns`, `SecretsStayInside`"}
			},
			closing: "providertest: 2 rows, 2 mutants, 2 killed",
			problem: "providers/local does not leave out SecretsStayInside, and its guide says under left-out that it does",
		},
		"nothing ran": {
			change:  func(string) string { return "" },
			closing: "providertest: 0 rows, 0 mutants, 0 killed",
			problem: "no mutant ran",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, p := proven(t), planned()
			if c.change != nil {
				changed := c.change(stream)
				require.NotEqual(t, stream, changed, "the case changes the lines")
				stream = changed
			}
			if c.plan != nil {
				c.plan(&p)
			}
			events, err := decode(strings.NewReader(stream))
			require.NoError(t, err)
			r := tally(events, p)
			require.Equal(t, c.closing, r.closing())
			problems := strings.Join(r.Problems, "\n")
			if c.problem == "" {
				require.Empty(t, problems)
			}
			require.Contains(t, problems, c.problem)
		})
	}
}

func TestWhatWasLeftOutIsNamed(t *testing.T) {
	t.Parallel()
	events, err := decode(strings.NewReader(proven(t)))
	require.NoError(t, err)
	require.Equal(t, []string{
		module + "/testsuite/providertest: 2 of 2 rows passed",
		module + "/providers/local: 1 of 2 rows passed; left out: CancelledCallReturns",
	}, tally(events, planned()).Suites)
}

func TestAReportWithAProblemIsAnError(t *testing.T) {
	t.Parallel()
	stream := strings.ReplaceAll(proven(t), `"Action":"pass"`, `"Action":"fail"`) + `
{"ImportPath":"example.com/a","Action":"build-output","Output":"a.go:1:1: syntax error\n"}
{"ImportPath":"example.com/a","Action":"build-fail"}`
	events, err := decode(strings.NewReader(stream))
	require.NoError(t, err)
	var out bytes.Buffer
	require.ErrorContains(t, show(&out, tally(events, planned()), events), "the contract is not proven")
	require.Contains(t, out.String(), "a.go:1:1: syntax error\n")
	require.Contains(t, out.String(), "CancelledCallReturns is not checked")
	require.True(t, strings.HasSuffix(out.String(), "\nprovidertest: 0 rows, 2 mutants, 0 killed\n"), out.String())

	out.Reset()
	events, err = decode(strings.NewReader(proven(t)))
	require.NoError(t, err)
	require.NoError(t, show(&out, tally(events, planned()), events))
	require.NotContains(t, out.String(), "=== RUN", "what passed is not printed")
	require.True(t, strings.HasSuffix(out.String(), "\nprovidertest: 2 rows, 2 mutants, 2 killed\n"))
}

func TestAStreamThatBreaksOffIsAnError(t *testing.T) {
	t.Parallel()
	_, err := decode(strings.NewReader(`{"Action":"start"}` + "\n" + `{"Action":`))
	require.ErrorContains(t, err, "go test -json")
}

func TestEveryRegisteredTypeHasToRunTheSuite(t *testing.T) {
	t.Parallel()
	suites, others := suitesOf([]listing{
		{ImportPath: ofProviders + "new", TestImports: []string{proof}},
		{ImportPath: ofProviders + "local", XTestImports: []string{"testing", proof}},
		{ImportPath: ofProviders + "decorators", XTestImports: []string{"testing"}},
		{ImportPath: module + "/testsuite/a", XTestImports: []string{proof}},
		{ImportPath: proof, XTestImports: []string{proof}},
	}, all.Factories())
	require.Equal(t, []string{module + "/testsuite/a"}, others)
	require.Contains(t, suites, ofProviders+"new")
	for _, f := range all.Factories() {
		require.Contains(t, suites, ofProviders+f.Type())
	}
	require.Len(t, suites, len(all.Factories())+1)
	suites, _ = suitesOf(nil, all.Factories())
	require.Len(t, suites, len(all.Factories()), "also those whose tests do not use it")
}
