package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are those that tools/release publishes for.
func platforms() [][2]string {
	return [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}
}

// module is what a published binary holds of somebody else, with the files in which it
// says under which licence.
type module struct {
	path  string
	files []string // absolute, sorted
}

// moduleRoot returns the directory of the go.mod around the working directory.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("no go.mod around the working directory: %q", mod)
	}
	return filepath.Dir(mod), nil
}

// form is a line for each package of another module: the module, its folder, and the
// package's own.
const form = `{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Dir}}{{"\t"}}{{$.Dir}}{{end}}{{end}}`

// linked returns the modules whose packages a published binary holds, on whatever
// platform, in the order of their paths.
func linked(ctx context.Context, root string) ([]module, error) {
	folders := map[string]map[string]bool{}
	for _, p := range platforms() {
		list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", form, "./worker", "./starter")
		list.Dir = root
		list.Env = append(os.Environ(), "GOOS="+p[0], "GOARCH="+p[1], "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s/%s: %w", p[0], p[1], err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 3 { //nolint:mnd // the form's
				continue
			}
			if folders[fields[0]] == nil {
				folders[fields[0]] = map[string]bool{}
			}
			for _, folder := range upwards(fields[2], fields[1]) {
				folders[fields[0]][folder] = true
			}
		}
	}
	return modulesOf(folders)
}

// upwards are a package's folder and those above it, up to that of its module: code that
// was taken over has its licence beside it.
func upwards(from, to string) []string {
	folders := []string{to}
	for strings.HasPrefix(from, to+string(filepath.Separator)) {
		folders = append(folders, from)
		from = filepath.Dir(from)
	}
	return folders
}

// licenceName is how files with a licence are called.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)

func modulesOf(folders map[string]map[string]bool) ([]module, error) {
	var modules []module
	for path, its := range folders {
		m := module{path: path}
		for folder := range its {
			entries, err := os.ReadDir(folder)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				if entry.Type().IsRegular() && licenceName.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
					m.files = append(m.files, filepath.Join(folder, entry.Name()))
				}
			}
		}
		slices.Sort(m.files)
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return modules, nil
}
