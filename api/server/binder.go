package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/server/strictjson"
)

// binder reads the body of a request; the generated code calls it.
type binder struct {
	limit int64 // bytes
}

// Bind decodes the body into target, or says exactly what is wrong with it. Where a
// body may be left out and is, it returns io.EOF, as the generated code expects.
func (b binder) Bind(target any, c echo.Context) error {
	if c.Request().Method == http.MethodPost && c.Request().ContentLength == 0 && c.Path() != reportPath {
		return io.EOF
	}
	if err := checkMediaType(c.Request().Header); err != nil {
		return err
	}
	body, err := b.read(c)
	if err != nil {
		return err
	}
	return strictjson.Decode(body, target, proxyRules)
}

func checkMediaType(header http.Header) error {
	given := header.Get(echo.HeaderContentType)
	media, params, err := mime.ParseMediaType(given)
	charset, hasCharset := params["charset"]
	if err != nil || media != echo.MIMEApplicationJSON || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return &problem{unsupportedMedia, echo.HeaderContentType, given, "is not application/json in UTF-8"}
	}
	if encoding := header.Get(echo.HeaderContentEncoding); encoding != "" {
		return &problem{unsupportedMedia, echo.HeaderContentEncoding, encoding, "is not supported; send the plain body"}
	}
	return nil
}

func (b binder) read(c echo.Context) ([]byte, error) {
	// MaxBytesReader must see net/http's own writer, or the rest of the body is waited for.
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, c.Request().Body, b.limit))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &tooLarge):
		return nil, &problem{
			bodyTooLarge, strictjson.Root, size(c.Request()),
			fmt.Sprintf("is more than %d bytes", b.limit),
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &problem{kind: bodyTooSlow, detail: "the body did not arrive in time"}
	default:
		return nil, &problem{kind: malformedRequest, detail: "the body ended before its announced end"}
	}
}

// size is what a request says about the length of its body.
func size(r *http.Request) string {
	if r.ContentLength < 0 {
		return "of unknown length"
	}
	return fmt.Sprintf("%d bytes", r.ContentLength)
}

// proxyRules are how a body is read. What only the fleet decides is read
// past, so that an answer of GET can be sent back, also to an older server.
var proxyRules = strictjson.Rules{
	Ignored: []string{"status", "metadata.uid", "metadata.generation", "metadata.createdAt"},
	Hidden:  mayBeSecret,
}

// mayBeSecret reports whether a path holds a cloud-init, or what may be one in the
// wrong place: a text under an unknown name, at the top or in the spec.
func mayBeSecret(path string, known bool) bool {
	inSpec, isSpec := strings.CutPrefix(path, "spec.")
	inCloudInit, isCloudInit := strings.CutPrefix(path, "spec.cloudInit.")
	switch {
	case strings.HasSuffix(path, "inline"), strings.HasSuffix(path, "inlineBase64"), path == "spec.cloudInit":
		return true
	case isCloudInit: // a reference is no secret
		return !known || !strings.HasPrefix(inCloudInit, "secretRef.")
	case isSpec:
		return !known && !strings.Contains(inSpec, ".")
	default:
		return !known && !strings.Contains(path, ".")
	}
}
