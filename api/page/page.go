// Package page is the fleet as people look at it in a browser: views, which are pure
// functions of api/v1, and the templates that write them as HTML. It imports api/v1 and
// knows neither the fleet nor who serves it. Nothing here looks at a cloud-init.
// Start reading at NewFleet and NewProxy.
package page

import (
	"embed"
	"html/template"
	"io"
	"sync"
)

//go:embed templates/*.html
var templates embed.FS

// ContentSecurityPolicy is what every page is served with: nothing but its own files, and
// nothing inline.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Viewer is who looks at a page.
type Viewer struct {
	Who string // the name of the token
	// Known says that tokens are asked for, so that there is a session to leave.
	Known    bool
	MayWrite bool
}

// parsed are the templates of each page, by the name of its file.
var parsed = sync.OnceValues(func() (map[string]*template.Template, error) {
	all := map[string]*template.Template{}
	for _, name := range []string{"fleet", "proxy", "ask", "sorry"} {
		t, err := template.New("layout.html").Funcs(template.FuncMap{"asset": AssetPath}).
			ParseFS(templates, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
})

func write(w io.Writer, name string, view any) error {
	all, err := parsed()
	if err != nil {
		return err
	}
	return all[name].Execute(w, view)
}

// Write writes the page.
func (f Fleet) Write(w io.Writer) error { return write(w, "fleet", f) }

// Write writes the page.
func (p Proxy) Write(w io.Writer) error { return write(w, "proxy", p) }

// Ask is a page that asks whether something is meant.
type Ask struct {
	Viewer
	Title, Namespace, Name string
	Path                   string // of the proxy
	Action, Label          string
	Says                   []string // what it will do
	Key                    string   // names the request, so that a form sent twice has one effect
	Danger                 bool
}

// Write writes the page.
func (a Ask) Write(w io.Writer) error { return write(w, "ask", a) }

// Sorry is a page that says what went wrong.
type Sorry struct {
	Viewer
	Status        int
	Title, Detail string
	Says          string // what to do
}

// Write writes the page.
func (s Sorry) Write(w io.Writer) error { return write(w, "sorry", s) }
