package server

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api"
)

//go:embed docs.html
var docsText string

// docsPage is openapi.yaml for people, made when somebody asks first.
var docsPage = sync.OnceValues(renderDocs)

// showContract answers with the contract itself.
func showContract(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", api.OpenAPI)
}

// showDocs answers with the contract as a page, which loads nothing.
func showDocs(c echo.Context) error {
	page, err := docsPage()
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentSecurityPolicy,
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	return c.HTMLBlob(http.StatusOK, page)
}

// operationDoc is one route of the page.
type operationDoc struct {
	ID, Method, Path, Scope string
	*openapi3.Operation
	Answers []answerDoc
}

type answerDoc struct{ Code, Description string }

type tagDoc struct {
	*openapi3.Tag
	Operations []operationDoc
}

func renderDocs() ([]byte, error) {
	contract, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, err
	}
	page, err := template.New("docs").Funcs(template.FuncMap{"blocks": blocks}).Parse(docsText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, map[string]any{
		"Info": contract.Info, "Tags": tagsOf(contract), "Schemas": schemasOf(contract),
	})
	return out.Bytes(), err
}

func tagsOf(contract *openapi3.T) (tags []tagDoc) {
	for _, tag := range contract.Tags {
		t := tagDoc{Tag: tag}
		for _, path := range contract.Paths.InMatchingOrder() {
			for method, operation := range contract.Paths.Find(path).Operations() {
				if slices.Contains(operation.Tags, tag.Name) {
					t.Operations = append(t.Operations, operationOf(contract.Paths.Find(path), path, method, operation))
				}
			}
		}
		slices.SortFunc(t.Operations, func(a, b operationDoc) int {
			return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
		})
		tags = append(tags, t)
	}
	return tags
}

func operationOf(item *openapi3.PathItem, path, method string, operation *openapi3.Operation) operationDoc {
	scope, _ := operation.Extensions["x-scope"].(string)
	whole := *operation
	whole.Parameters = append(slices.Clone(item.Parameters), operation.Parameters...)
	doc := operationDoc{ID: operation.OperationID, Method: method, Path: path, Scope: scope, Operation: &whole}
	for code, answer := range operation.Responses.Map() {
		if answer.Value.Description != nil {
			doc.Answers = append(doc.Answers, answerDoc{code, *answer.Value.Description})
		}
	}
	slices.SortFunc(doc.Answers, func(a, b answerDoc) int { return strings.Compare(a.Code, b.Code) })
	return doc
}

// schemaDoc is one kind of document.
type schemaDoc struct {
	Name string
	*openapi3.Schema
	Fields []fieldDoc
}

type fieldDoc struct {
	Name, Type, Description string
	Required                bool
}

func schemasOf(contract *openapi3.T) (schemas []schemaDoc) {
	for name, ref := range contract.Components.Schemas {
		s := schemaDoc{Name: name, Schema: ref.Value}
		for field, of := range ref.Value.Properties {
			s.Fields = append(s.Fields, fieldDoc{
				field, typeOf(of), of.Value.Description, slices.Contains(ref.Value.Required, field),
			})
		}
		slices.SortFunc(s.Fields, func(a, b fieldDoc) int { return strings.Compare(a.Name, b.Name) })
		schemas = append(schemas, s)
	}
	slices.SortFunc(schemas, func(a, b schemaDoc) int { return strings.Compare(a.Name, b.Name) })
	return schemas
}

// typeOf is what a field holds: a type, or the name of a kind of document.
func typeOf(ref *openapi3.SchemaRef) string {
	const prefix = "#/components/schemas/"
	switch {
	case strings.HasPrefix(ref.Ref, prefix):
		return strings.TrimPrefix(ref.Ref, prefix)
	case len(ref.Value.AllOf) == 1:
		return typeOf(ref.Value.AllOf[0])
	case ref.Value.Items != nil:
		return "list of " + typeOf(ref.Value.Items)
	case ref.Value.Type != nil:
		return strings.Join(ref.Value.Type.Slice(), " or ")
	default:
		return "anything"
	}
}

// blocks are the paragraphs and lists of a description.
func blocks(text string) (all []template.HTML) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		block := "<p>" + marked(part) + "</p>"
		if list, ok := strings.CutPrefix(part, "- "); ok {
			block = "<ul><li>" + strings.Join(strings.Split(marked(list), "\n- "), "</li><li>") + "</li></ul>"
		}
		all = append(all, template.HTML(block)) //nolint:gosec // escaped by marked
	}
	return all
}

// marked is a text with what is `so` as code.
func marked(text string) string {
	var out strings.Builder
	for i, piece := range strings.Split(template.HTMLEscapeString(text), "`") {
		if i%2 == 1 {
			piece = "<code>" + piece + "</code>"
		}
		out.WriteString(piece)
	}
	return strings.ReplaceAll(out.String(), "**", "")
}
