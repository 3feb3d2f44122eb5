package layers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Fault is one thing that the code of a provider does and must leave to others.
type Fault struct {
	Line int
	What string // "context.Background", an import, a field
	Why  string // what to do instead
}

func (f Fault) String() string { return fmt.Sprintf("line %d: %s: %s", f.Line, f.What, f.Why) }

// What a provider is told instead.
const (
	useLogger  = "take the logger of the call, providers.Logger(ctx)"
	useContext = "pass the caller's context on; context.WithoutCancel keeps its values"
	useConfig  = "take it from the configuration, or a flag that the constructor is given"
	useStack   = "the decorators count and trace each operation"
	useLimit   = "stream it, or read no more than io.LimitReader lets through: a payload may be larger than the memory"
	useTemp    = `scratch files go to the temporary folder: the first argument is ""`
)

// forbiddenNames are package names and what must not be used of them; "*" is all.
func forbiddenNames() map[string]map[string]string {
	slog := map[string]string{}
	for _, name := range []string{
		"Default", "SetDefault", "SetLogLoggerLevel", "With", "Log", "LogAttrs", "Debug", "Info", "Warn", "Error",
		"DebugContext", "InfoContext", "WarnContext", "ErrorContext",
	} {
		slog[name] = useLogger
	}
	flags := map[string]string{}
	for _, name := range []string{
		"Parse", "CommandLine", "Args", "Arg", "NArg", "Lookup", "Set", "Visit", "VisitAll", "Var", "Func", "BoolFunc",
		"Bool", "BoolVar", "Int", "IntVar", "Int64", "Int64Var", "Uint", "UintVar", "Uint64", "Uint64Var",
		"String", "StringVar", "Float64", "Float64Var", "Duration", "DurationVar", "TextVar",
	} {
		flags[name] = useConfig
	}
	return map[string]map[string]string{
		"log/slog": slog,
		"log":      {"*": useLogger},
		"fmt":      {"Print": useLogger, "Printf": useLogger, "Println": useLogger},
		"context":  {"Background": useContext, "TODO": useContext},
		"os": {
			"Stdout": useLogger, "Stderr": useLogger,
			"Getenv": useConfig, "LookupEnv": useConfig, "Environ": useConfig, "ExpandEnv": useConfig, "Args": useConfig,
		},
		"flag":    flags,
		"syscall": {"Getenv": useConfig, "Environ": useConfig},
	}
}

// forbiddenImports are paths, with all below them.
func forbiddenImports() map[string]string {
	return map[string]string{
		"github.com/prometheus": useStack, "go.opentelemetry.io/otel/metric": useStack,
		"go.opentelemetry.io/otel/sdk": useStack, "expvar": useStack,
	}
}

// forbiddenTypes are what no struct and no variable of a package may keep.
func forbiddenTypes() map[string]string {
	return map[string]string{
		"log/slog.Logger": useLogger, "log/slog.Handler": useLogger, "log.Logger": useLogger,
		"context.Context": useContext,
	}
}

// forbiddenTexts are names that the decorators use.
func forbiddenTexts() []string {
	return []string{"provider.create", "provider.get", "provider.delete", "provider.list", "egressfleet_provider_"}
}

// Duties says where a file of a provider does what is not its job, in the order of
// its lines. Only the file is looked at, so a name counts where its import says so.
func Duties(files *token.FileSet, file *ast.File) []Fault {
	d := &duties{files: files, uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: noImporter{}, Error: func(error) {}}
	_, _ = check.Check(file.Name.Name, files, []*ast.File{file}, &types.Info{Uses: d.uses}) // names are all we need
	for _, spec := range file.Imports {
		d.imports(spec)
	}
	for _, declared := range file.Decls {
		d.keeps(declared)
	}
	ast.Inspect(file, d.visit)
	slices.SortStableFunc(d.found, func(a, b Fault) int { return a.Line - b.Line })
	return d.found
}

type duties struct {
	files *token.FileSet
	uses  map[*ast.Ident]types.Object
	found []Fault
}

// noImporter finds no package: a file that uses one is checked without it.
type noImporter struct{}

func (noImporter) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not looked at", path)
}

func (d *duties) fault(at token.Pos, what, why string) {
	d.found = append(d.found, Fault{d.files.Position(at).Line, what, why})
}

func (d *duties) imports(spec *ast.ImportSpec) {
	path := text(spec.Path)
	for forbidden, why := range forbiddenImports() {
		if under(path, forbidden) {
			d.fault(spec.Pos(), path, why)
		}
	}
	if spec.Name != nil && spec.Name.Name == "." {
		d.fault(spec.Pos(), path, "a name must tell its package")
	}
}

// keeps looks at the variables of the package; structs are found by visit.
func (d *duties) keeps(declared ast.Decl) {
	general, ok := declared.(*ast.GenDecl)
	if !ok || general.Tok != token.VAR {
		return
	}
	for _, spec := range general.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			d.kept(value.Type)
		}
	}
}

func (d *duties) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.StructType:
		for _, field := range n.Fields.List {
			d.kept(field.Type)
		}
	case *ast.SelectorExpr:
		d.name(n)
	case *ast.CallExpr:
		d.call(n)
	case *ast.BasicLit:
		for _, forbidden := range forbiddenTexts() {
			if n.Kind == token.STRING && strings.HasPrefix(text(n), forbidden) {
				d.fault(n.Pos(), n.Value, useStack)
			}
		}
	}
	return true
}

// kept looks at the type of a field or variable.
func (d *duties) kept(kind ast.Expr) {
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	selector, ok := kind.(*ast.SelectorExpr)
	if !ok {
		return
	}
	what := d.path(selector) + "." + selector.Sel.Name
	if why, forbidden := forbiddenTypes()[what]; forbidden {
		d.fault(kind.Pos(), "a kept "+what, why)
	}
}

func (d *duties) name(selector *ast.SelectorExpr) {
	path := d.path(selector)
	names := forbiddenNames()[path]
	why, forbidden := names[selector.Sel.Name]
	if !forbidden {
		why, forbidden = names["*"]
	}
	if forbidden {
		d.fault(selector.Pos(), path+"."+selector.Sel.Name, why)
	}
}

func (d *duties) call(call *ast.CallExpr) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if built, ok := d.uses[f].(*types.Builtin); ok && strings.HasPrefix(built.Name(), "print") {
			d.fault(call.Pos(), built.Name(), useLogger)
		}
	case *ast.SelectorExpr:
		name := d.path(f) + "." + f.Sel.Name
		if (name == "os.CreateTemp" || name == "os.MkdirTemp") && len(call.Args) > 0 && !empty(call.Args[0]) {
			d.fault(call.Pos(), name, useTemp)
		}
		if name == "io.ReadAll" && len(call.Args) > 0 && !d.limited(call.Args[0]) {
			d.fault(call.Pos(), name, useLimit)
		}
	}
}

// path is the package that a selector selects from; "" where it selects from a value.
func (d *duties) path(selector *ast.SelectorExpr) string {
	from, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	if pkg, ok := d.uses[from].(*types.PkgName); ok {
		return pkg.Imported().Path()
	}
	return ""
}

// limited reports whether a reader ends after so many bytes, whatever is behind it.
func (d *duties) limited(reader ast.Expr) bool {
	made, ok := reader.(*ast.CallExpr)
	if !ok {
		return false
	}
	by, ok := made.Fun.(*ast.SelectorExpr)
	return ok && d.path(by)+"."+by.Sel.Name == "io.LimitReader"
}

func empty(arg ast.Expr) bool {
	literal, ok := arg.(*ast.BasicLit)
	return ok && text(literal) == ""
}

func text(literal *ast.BasicLit) string {
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return literal.Value
	}
	return value
}
