package guides_test

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/testsuite/guides"
)

// folders returns those of the repository in which a file of that name is, as
// "/tools/lint", sorted.
func folders(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && path != root
			if hidden || slices.Contains([]string{"bin", "dist", "node_modules", "testdata"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.Name() == name {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			found = append(found, filepath.Join("/", rel))
			return err
		}
		return nil
	}))
	slices.Sort(found)
	return found
}

func TestDependabotLooksIntoEveryFolder(t *testing.T) {
	t.Parallel()
	var file struct {
		Version int
		Updates []struct {
			Ecosystem string `yaml:"package-ecosystem"`
			Directory string
			Schedule  struct{ Interval string }
			Groups    map[string]struct{ Patterns []string }
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, ".github", "dependabot.yml"))))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	require.Equal(t, 2, file.Version)
	got := map[string][]string{}
	for _, update := range file.Updates {
		require.Contains(t, []string{"daily", "weekly", "monthly"}, update.Schedule.Interval)
		got[update.Ecosystem] = append(got[update.Ecosystem], update.Directory)
	}
	for _, found := range got {
		slices.Sort(found)
	}
	require.Equal(t, map[string][]string{
		"gomod": folders(t, "go.mod"), "docker": folders(t, "Dockerfile"),
		"docker-compose": folders(t, "docker-compose.yaml"),
	}, got)
	modules, _, _ := strings.Cut(strings.SplitN(read(t, "Makefile"), "MODULES  :=", 2)[1], "\nPACKAGES")
	var tidied []string
	for _, module := range strings.Fields(strings.ReplaceAll(modules, "\\", " ")) {
		tidied = append(tidied, filepath.Join("/", module))
	}
	slices.Sort(tidied)
	require.Equal(t, tidied, got["gomod"], "MODULES in the Makefile")
}

var (
	testName   = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	testStart  = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	ourTarget  = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	ourSetting = regexp.MustCompile(`\bEGRESSFLEET_[A-Z_]+\b`)
	ourLink    = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
)

// tests are the names of every test of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, found := range testStart.FindAllStringSubmatch(read(t, rel), -1) {
			names[found[1]] = true
		}
		return nil
	}))
	return names
}

// A claim about safety is worth the test that holds it.
func TestEveryClaimOfTheSecurityPageNamesATestThatIsThere(t *testing.T) {
	t.Parallel()
	known, claims := tests(t), 0
	page := read(t, "SECURITY.md")
	for _, found := range testName.FindAllStringSubmatch(page, -1) {
		require.True(t, known[found[1]], "%s is named in SECURITY.md, and is no test", found[1])
	}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[len(cells)-1]) == "held by" {
			continue
		}
		claims++
		last := cells[len(cells)-1]
		require.True(t, testName.MatchString(last) || strings.Contains(last, "not ours"), "no test holds: %s", line)
	}
	require.Greater(t, claims, 20)
}

// operate are the pages of whoever runs a fleet.
func operate(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 5)
	return append(pages, filepath.Join(root, "docs", "production.md"), filepath.Join(root, "SECURITY.md"))
}

func TestWhatTheRunbooksNameIsThere(t *testing.T) {
	t.Parallel()
	var settings strings.Builder
	require.NoError(t, config.WriteReference(&settings))
	integration := read(t, "providers", "gcp", "integration_test.go")
	others := []string{config.EnvDevDir, config.EnvUIPort}
	for _, path := range operate(t) {
		rel, err := filepath.Rel(root, path)
		require.NoError(t, err)
		text := read(t, rel)
		for _, found := range ourTarget.FindAllStringSubmatch(code(text), -1) {
			require.Contains(t, read(t, "Makefile"), "\n"+found[1]+":", "%s: make %s", rel, found[1])
		}
		for _, name := range ourSetting.FindAllString(text, -1) {
			known := strings.Contains(settings.String(), name) || slices.Contains(others, name) ||
				strings.HasPrefix(name, config.EnvSecretPrefix) || strings.Contains(integration, `"`+name+`"`)
			require.True(t, known, "%s: %s is no setting", rel, name)
		}
		for _, link := range ourLink.FindAllStringSubmatch(text, -1) {
			require.FileExists(t, filepath.Join(filepath.Dir(path), link[1]), "%s links to it", rel)
		}
	}
}

// code is what a page shows as code, in blocks and within lines.
func code(text string) string {
	var b strings.Builder
	for _, block := range guides.Blocks(text) {
		b.WriteString(block.Code + "\n")
	}
	for _, inline := range regexp.MustCompile("`[^`\n]+`").FindAllString(text, -1) {
		b.WriteString(inline + "\n")
	}
	return b.String()
}

func TestEveryRunbookIsInTheIndex(t *testing.T) {
	t.Parallel()
	index := read(t, "docs", "runbooks", "README.md")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	require.NoError(t, err)
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" {
			require.True(t, strings.Contains(index, "("+name+")") || strings.Contains(index, "`"+name+"`"),
				"docs/runbooks/README.md does not list %s", name)
		}
	}
}
