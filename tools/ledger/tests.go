package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// testsOf returns the tests and fuzz targets of a module as <folder>.<name>, with the
// files of every platform and build tag. Other modules below it are not looked at.
func testsOf(root fs.FS) (map[string]bool, error) {
	found := map[string]bool{}
	err := fs.WalkDir(root, ".", func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && foreign(root, at):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(at, "_test.go"):
			return nil
		}
		names, err := testsIn(root, at)
		for _, name := range names {
			found[path.Dir(at)+"."+name] = true
		}
		return err
	})
	return found, err
}

// foreign reports whether a folder has no package of ours: go itself ignores it, or it
// is another module.
func foreign(root fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "bin" {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func testsIn(root fs.FS, file string) ([]string, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && isTest(f) {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}

// isTest reports whether go test runs a function, as go vet defines it.
func isTest(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	if f.Recv != nil || len(params) != 1 {
		return false
	}
	for prefix, param := range map[string]string{"Test": "T", "Fuzz": "F"} {
		rest, ok := strings.CutPrefix(f.Name.Name, prefix)
		first, _ := utf8.DecodeRuneInString(rest)
		if ok && (rest == "" || !unicode.IsLower(first)) && isPointerTo(params[0].Type, "testing", param) {
			return true
		}
	}
	return false
}

func isPointerTo(expr ast.Expr, pkg, name string) bool {
	star, ok := expr.(*ast.StarExpr)
	if !ok {
		return false
	}
	selector, ok := star.X.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == pkg
}
