// Package image brings the base images of a catalogue into the storage pool of a
// host, once for each host, and finds those that are there as a whole. Bytes are
// streamed, never held; what was stored is read back before it counts. It knows the
// methods of libvirt that it needs, and neither a connection nor a domain.
// Start reading at Find and Fetcher.Fetch; lease.go has what other processes see.
package image

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// The formats that an entry may have.
const (
	FormatQCOW2 = "qcow2"
	FormatRaw   = "raw"
)

// Prefix begins the name of every volume of this package, and of no other.
const Prefix = "image-"

// Entry is one image of the catalogue.
type Entry struct {
	Name   string // the catalogue's, for people
	URL    string // https, http or file, or an absolute path on the worker
	SHA256 string // 64 hexadecimal digits, of the whole file
	Format string // FormatQCOW2 or FormatRaw
	Size   int64  // bytes; 0 when it is not known
}

var hexadecimal = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// Validate says what is wrong with an entry, naming the field, and quotes no
// credential that its URL holds.
func (e Entry) Validate() error {
	switch {
	case !hexadecimal.MatchString(e.SHA256):
		return fmt.Errorf("image %q: sha256 %q has to be the 64 hexadecimal digits of the file's SHA-256", e.Name, e.SHA256)
	case e.Format != FormatQCOW2 && e.Format != FormatRaw:
		return fmt.Errorf("image %q: format %q has to be %s or %s", e.Name, e.Format, FormatQCOW2, FormatRaw)
	case e.Size < 0:
		return fmt.Errorf("image %q: size %d has to be a number of bytes, or 0", e.Name, e.Size)
	}
	_, _, err := e.location()
	return err
}

// Volume is the name of the entry's volume. It follows from the content: an entry
// whose content changed is another volume, and what is in use stays as it is.
func (e Entry) Volume() string { return Prefix + strings.ToLower(e.SHA256) + "." + e.Format }

// location is the file's path, or else the address.
func (e Entry) location() (path string, address *url.URL, err error) {
	if filepath.IsAbs(e.URL) {
		return e.URL, nil, nil
	}
	parsed, err := url.Parse(e.URL)
	switch {
	case err != nil: // the error quotes the URL
		return "", nil, fmt.Errorf("image %q: url is not a URL", e.Name)
	case parsed.Scheme == "file" && parsed.Host == "" && filepath.IsAbs(parsed.Path):
		return parsed.Path, nil, nil
	case (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != "":
		return "", parsed, nil
	}
	return "", nil, fmt.Errorf("image %q: url %q has to be https://…, http://…, file:///… or an absolute path",
		e.Name, e.shown())
}

// shown is where the image comes from without what could be a secret: user, query
// and fragment.
func (e Entry) shown() string {
	parsed, err := url.Parse(e.URL)
	if err != nil {
		return "(not a URL)"
	}
	public := url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}
	if parsed.RawQuery != "" {
		return public.String() + "?…"
	}
	return public.String()
}

// Error is why an image is not there, with the class that says what helps. Errors of
// libvirt and of the connection stay what they are, within reach of errors.As.
type Error struct {
	Class providers.Class
	Err   error
}

// Error is the cause's text: it names the image and where it comes from.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap keeps both the class and the cause within reach of errors.Is and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

func (e Entry) fail(class providers.Class, format string, args ...any) error {
	return &Error{Class: class, Err: fmt.Errorf("image %q from %s: %w", e.Name, e.shown(), fmt.Errorf(format, args...))}
}
