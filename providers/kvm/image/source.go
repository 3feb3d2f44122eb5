package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// stream is the rest of an image, from a place on.
type stream struct {
	io.ReadCloser
	from, total int64
	// validator is the server's word for this very content; "" when it has none.
	validator string
}

// open returns an image from a place on, or from its beginning where that cannot be
// had: the server knows no ranges, or its content is not the validator's any more.
func open(ctx context.Context, client *http.Client, entry Entry, from int64, validator string) (*stream, error) {
	path, address, err := entry.location()
	if err != nil {
		return nil, &Error{Class: providers.ErrPermanent, Err: err}
	}
	if address == nil {
		return openFile(entry, path, from, validator)
	}
	s, err := request(ctx, client, entry, from, validator)
	if err == nil && s.from != from && s.from != 0 {
		err = errors.Join(entry.fail(providers.ErrTransient, "asked for bytes from %d, and the server sent them from %d",
			from, s.from), s.Close())
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openFile(entry Entry, path string, from int64, validator string) (*stream, error) {
	file, err := os.Open(path) //nolint:gosec // the catalogue names it
	if err != nil {
		return nil, entry.fail(providers.ErrPermanent, "%w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, errors.Join(entry.fail(providers.ErrPermanent, "%w", err), file.Close())
	}
	s := &stream{ReadCloser: file, total: info.Size(), validator: info.ModTime().UTC().String()}
	if from > info.Size() || validator != "" && validator != s.validator {
		return s, nil
	}
	if s.from, err = file.Seek(from, io.SeekStart); err != nil {
		return nil, errors.Join(entry.fail(providers.ErrTransient, "%w", err), file.Close())
	}
	return s, nil
}

func request(ctx context.Context, client *http.Client, entry Entry, from int64, validator string) (*stream, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, entry.URL, http.NoBody)
	if err != nil {
		return nil, entry.fail(providers.ErrPermanent, "%w", public(err))
	}
	req.Header.Set("Accept-Encoding", "identity") // the digest is of the file, not of what it unpacks to
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		if validator != "" {
			req.Header.Set("If-Range", validator)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, entry.fail(providers.ErrTransient, "%w", public(err))
	}
	s, err := answered(entry, resp, from)
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return s, nil
}

func answered(entry Entry, resp *http.Response, from int64) (*stream, error) {
	s := &stream{ReadCloser: resp.Body, validator: validatorOf(resp.Header)}
	switch {
	case resp.StatusCode == http.StatusOK && resp.ContentLength < 0 && entry.Size == 0:
		return nil, entry.fail(providers.ErrPermanent,
			"the server does not say how long the file is: set the image's size, or serve it with a Content-Length")
	case resp.StatusCode == http.StatusOK && resp.ContentLength < 0:
		s.total = entry.Size
		return s, nil
	case resp.StatusCode == http.StatusOK:
		s.total = resp.ContentLength
		return s, nil
	case resp.StatusCode == http.StatusPartialContent:
		var err error
		s.from, s.total, err = contentRange(resp.Header.Get("Content-Range"))
		if err != nil {
			return nil, entry.fail(providers.ErrTransient, "%w", err)
		}
		return s, nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && from > 0:
		return beyond(entry, resp, from)
	}
	return nil, entry.fail(classOf(resp.StatusCode), "the server answered %s", resp.Status)
}

// beyond is the answer to a place where nothing is: the end of a file that is stored
// as a whole, or a file that is shorter now.
func beyond(entry Entry, resp *http.Response, from int64) (*stream, error) {
	total, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes */")
	n, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil {
		n = -1 // it does not say: the digest of what is stored will
	}
	if n >= 0 && n != from {
		return nil, errShorter
	}
	return &stream{ReadCloser: resp.Body, from: from, total: from, validator: validatorOf(resp.Header)},
		checkSize(entry, from)
}

// errShorter says that more is stored than there is to have.
var errShorter = errors.New("more is stored than the source has")

func checkSize(entry Entry, total int64) error {
	if entry.Size > 0 && total != entry.Size {
		return entry.fail(providers.ErrPermanent, "has %d bytes, and size says %d", total, entry.Size)
	}
	return nil
}

// validatorOf returns what If-Range may carry: a strong ETag, else a date.
func validatorOf(header http.Header) string {
	if tag := header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return header.Get("Last-Modified")
}

// contentRange reads "bytes 5-9/10", of which the end has to be the file's.
func contentRange(header string) (from, total int64, err error) {
	var last int64
	if _, err := fmt.Sscanf(header, "bytes %d-%d/%d", &from, &last, &total); err != nil || last != total-1 || from > last {
		return 0, 0, fmt.Errorf("the server sent a part as %q, and the bytes up to the end were asked for", header)
	}
	return from, total, nil
}

func classOf(status int) providers.Class {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return providers.ErrTransient
	}
	if status >= 400 && status < 500 {
		return providers.ErrPermanent
	}
	return providers.ErrTransient
}

// public takes the URL out of an error of net/http, which may be that of a redirect
// and hold a signature.
func public(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
