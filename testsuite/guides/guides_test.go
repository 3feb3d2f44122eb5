package guides_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/testsuite/guides"
)

const root = "../.."

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(text)
}

func template(t *testing.T) []guides.Answer {
	t.Helper()
	return guides.Answers(read(t, "docs", "provider-spec-template.md"))
}

func guide(t *testing.T, typ string) []guides.Answer {
	t.Helper()
	return guides.Answers(read(t, "docs", "providers", typ+".md"))
}

// unanswered returns what is wrong with the answers of a guide.
func unanswered(questions, answers []guides.Answer) (faults []string) {
	given := map[string][]guides.Answer{}
	for _, a := range answers {
		given[a.Entry] = append(given[a.Entry], a)
	}
	for _, q := range questions {
		switch a := given[q.Entry]; {
		case len(a) == 0:
			faults = append(faults, q.Entry+" is not answered")
		case len(a) > 1:
			faults = append(faults, q.Entry+" is answered more than once")
		case a[0].Heading != q.Heading:
			faults = append(faults, q.Entry+" is answered under "+a[0].Heading+", not under "+q.Heading)
		case a[0].Text == "" || a[0].Text == q.Text || strings.HasPrefix(a[0].Text, "TODO"):
			faults = append(faults, q.Entry+" has no answer yet")
		}
	}
	return faults
}

func TestEveryGuideAnswersEveryQuestion(t *testing.T) {
	t.Parallel()
	for _, f := range all.Factories() {
		require.Empty(t, unanswered(template(t), guide(t, f.Type())), f.Type())
	}
}

func TestUnansweredFinds(t *testing.T) {
	t.Parallel()
	questions := guides.Answers("## A\n| entry | question |\n|---|---|\n| one | Which? |\n## B\n| two | Where? |\n")
	require.Len(t, questions, 2)
	for text, want := range map[string][]string{
		"## A\n| one | 1 |\n## B\n| two | 2 |\n":              nil,
		"## A\n| one | 1 |\n## More\n## B\n\n| two | 2 |\n":   nil,
		"## A\n| one | Which? |\n## B\n| two | |\n":           {"one has no answer yet", "two has no answer yet"},
		"## A\n| one | TODO |\n## B\n":                        {"one has no answer yet", "two is not answered"},
		"## A\n| one | 1 |\n| two | 2 |\n":                    {"two is answered under A, not under B"},
		"## A\n| one | 1 |\n| one | 1 |\n## B\n| two | 2 |\n": {"one is answered more than once"},
		"## A\n| `one` | 1 |\n## B\n| Two | 2 |\n":            {"one is not answered", "two is not answered"},
	} {
		require.Equal(t, want, unanswered(questions, guides.Answers(text)), text)
	}
}

// A question that stands twice could be answered under one heading only.
func TestTheQuestionnaireAsksForEachThingOnceAndForEveryAxis(t *testing.T) {
	t.Parallel()
	asked := map[string]string{}
	for _, q := range template(t) {
		require.NotContains(t, asked, q.Entry)
		require.Contains(t, q.Text, "?", "%s asks nothing", q.Entry)
		asked[q.Entry] = q.Heading
	}
	for _, axis := range (providers.Profile{}).Axes() {
		require.Equal(t, "Profile", asked[axis.Name], axis.Name)
	}
	for _, entry := range []string{
		"network", "placement", "ignored", "cloud-init", "cloud-init-limit", "marks", "crash-window", "leftovers",
		"id-shape", "foreign", "late-failure", "ambiguous", "scope", "unreadable", "same-name", "budgets",
		"credential-files", "tls", "rotation", "secrets", "targets", "lines", "spans", "captured", "real-backend", "limits",
	} {
		require.Contains(t, asked, entry)
	}
}

func TestEveryGuideTellsTheProfile(t *testing.T) {
	t.Parallel()
	types, err := guides.Profiles(t.Context(), root)
	require.NoError(t, err)
	require.Len(t, types, len(all.Factories()))
	for _, typ := range types {
		told := map[string]string{}
		for _, a := range guide(t, typ.Type) {
			told[a.Entry], _, _ = strings.Cut(a.Text, ": ")
		}
		for _, axis := range typ.Profile.Axes() {
			require.Equal(t, axis.Choice, told[axis.Name], "%s: axis %s", typ.Type, axis.Name)
		}
	}
}

func TestBlocksAreReadWithTheirFiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, []guides.Block{
		{Language: "go", File: "a.go", Code: "package a\n\n"},
		{Language: "", File: "", Code: "x ``` y\n"},
	}, guides.Blocks("text\n```go a.go\npackage a\n\n```\nmore\n```\nx ``` y\n```\n```go open.go\nx\n"))
}

func TestABlockInAListIsReadWithoutItsIndent(t *testing.T) {
	t.Parallel()
	require.Equal(t, []guides.Block{
		{Language: "sh", Code: "for x; do\n  y\n\ndone\nz\n"},
		{Code: "w\n"},
	}, guides.Blocks("1. text\n\n   ```sh\n   for x; do\n     y\n\n   done\n z\n   ```\n```\nw\n```\n"))
}
