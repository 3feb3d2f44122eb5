// Package openapi is the HTTP contract of api/openapi.yaml as Go: the routes, the
// requests and the answers. All of it is generated but this file; the types that
// people know are those of api/v1. Start reading at StrictServerInterface, which
// api/server implements.
package openapi

//go:generate go tool -modfile=../../../tools/openapi/go.mod oapi-codegen -config ../../oapi-codegen.yaml ../../openapi.yaml
