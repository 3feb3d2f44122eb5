package access

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
)

// entry is one token in the file.
type entry struct {
	Name       string   `yaml:"name"`
	SHA256     string   `yaml:"sha256"`
	Scopes     []Scope  `yaml:"scopes"`
	Namespaces []string `yaml:"namespaces"`
	Labels     string   `yaml:"labels"` // a selector
	// PerSecond is how many requests a second it may make for long; twice as many at once.
	PerSecond *float64 `yaml:"requestsPerSecond"`
}

const (
	usualPerSecond = 50 // of a token that says nothing
	atOnce         = 2  // seconds' worth of requests
)

// book is what a file says.
type book []page

type page struct {
	sum   []byte
	grant *Grant
}

// find returns the grant of a token, or nil.
func (b book) find(token string) *Grant {
	if at := b.index(token); at >= 0 {
		return b[at].grant
	}
	return nil
}

// index returns where a token is, or -1. It compares with every page, so that the time
// it takes says nothing.
func (b book) index(token string) int {
	sum, at := sha256.Sum256([]byte(token)), -1
	for i, p := range b {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], p.sum), i, at)
	}
	if token == "" {
		return -1
	}
	return at
}

// become hands the grants of tokens that may what they might before to the next book,
// allowance and all, and ends the others.
func (b book) become(next book) {
	for _, was := range b {
		at := slices.IndexFunc(next, func(p page) bool { return bytes.Equal(p.sum, was.sum) })
		if at >= 0 && next[at].grant.same(was.grant) {
			next[at].grant = was.grant
			continue
		}
		was.grant.end(at < 0)
	}
}

// mayBeHash is what a hash looks like, and a token as well.
var mayBeHash = regexp.MustCompile(`[0-9a-fA-F]{16,}`)

// parse reads a file. Errors name the key and the value, but never a hash, also where one
// stands in the place of a key.
func parse(text []byte) (book, error) {
	all, err := read(text)
	if err != nil {
		return nil, errors.New(mayBeHash.ReplaceAllString(err.Error(), "(hidden)"))
	}
	return all, nil
}

func read(text []byte) (book, error) {
	var file struct {
		Tokens []entry `yaml:"tokens"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	switch err := decoder.Decode(&file); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, errors.New(strings.ReplaceAll(err.Error(), "access.", ""))
	case decoder.Decode(new(any)) != io.EOF: //nolint:errorlint // anything else is one document too many
		return nil, errors.New("holds more than one YAML document")
	}
	if len(file.Tokens) == 0 {
		return nil, errors.New("tokens: is empty: nobody could ask for anything")
	}
	var all book
	for i, e := range file.Tokens {
		at := "tokens[" + strconv.Itoa(i) + "]"
		p, err := e.page()
		if err != nil {
			return nil, fmt.Errorf("%s.%w", at, err)
		}
		for j, other := range all {
			if other.grant.Name == e.Name {
				return nil, fmt.Errorf("%s.name: %q is that of tokens[%d], too", at, e.Name, j)
			}
			if bytes.Equal(other.sum, p.sum) {
				return nil, fmt.Errorf("%s.sha256: is that of tokens[%d], too", at, j)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (e entry) page() (page, error) {
	if !dnsLabel.MatchString(e.Name) {
		return page{}, fmt.Errorf("name: %q is not a DNS label: lower-case letters, digits and -, at most 63", e.Name)
	}
	sum, err := hex.DecodeString(e.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return page{}, fmt.Errorf("sha256: is not a SHA-256 of %d hexadecimal digits", 2*sha256.Size)
	}
	scope, err := e.most()
	if err != nil {
		return page{}, err
	}
	for i, namespace := range e.Namespaces {
		if !dnsLabel.MatchString(namespace) {
			return page{}, fmt.Errorf("namespaces[%d]: %q is not a DNS label", i, namespace)
		}
	}
	selector, err := selectorOf(e.Labels)
	if err != nil {
		return page{}, err
	}
	perSecond := usualPerSecond * 1.0
	if e.PerSecond != nil {
		perSecond = *e.PerSecond
	}
	if perSecond <= 0 || perSecond > 1e6 {
		return page{}, fmt.Errorf("requestsPerSecond: %v is not above 0 and at most 1000000", perSecond)
	}
	return page{sum, &Grant{
		Name: e.Name, scope: scope, namespaces: e.Namespaces, selector: selector,
		allowance: rate.NewLimiter(rate.Limit(perSecond), max(1, int(atOnce*perSecond))), over: make(chan struct{}),
	}}, nil
}

func selectorOf(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err == nil && strings.Contains(text, "\x00") { // behind which Parse reads nothing
		err = errors.New("it holds a zero byte")
	}
	if err != nil {
		return nil, fmt.Errorf("labels: %q is not a label selector: %w", text, err)
	}
	return selector, nil
}

// most is the highest of the scopes, which holds the others.
func (e entry) most() (Scope, error) {
	if len(e.Scopes) == 0 {
		return "", fmt.Errorf("scopes: is empty; the scopes are %v", Scopes())
	}
	for i, s := range e.Scopes {
		if !slices.Contains(Scopes(), s) {
			return "", fmt.Errorf("scopes[%d]: %q is not one of %v", i, s, Scopes())
		}
	}
	return slices.MaxFunc(e.Scopes, func(a, b Scope) int {
		return cmp.Compare(slices.Index(Scopes(), a), slices.Index(Scopes(), b))
	}), nil
}
