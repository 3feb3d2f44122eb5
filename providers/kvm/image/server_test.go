package image_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// origin serves one file, and fails as it is told.
type origin struct {
	mu      sync.Mutex
	content []byte
	etag    string
	cuts    []int  // after how many bytes each answer ends; the last ones end well
	noRange bool   // every answer is the whole file
	chunked bool   // no answer says how long it is
	status  int    // instead of the file
	then    func() // after each answer
	asked   []string
	*httptest.Server
}

func newOrigin(t *testing.T, content []byte) *origin {
	t.Helper()
	o := &origin{content: content, etag: `"one"`}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

// answer is what is decided about one request while others change the origin.
type answer struct {
	content, rest    []byte
	etag             string
	from, cut        int
	status           int
	chunked, partial bool
	then             func()
}

func (o *origin) decide(r *http.Request) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := answer{content: o.content, etag: o.etag, cut: -1, status: o.status, chunked: o.chunked, then: o.then}
	if len(o.cuts) > 0 {
		a.cut, o.cuts = o.cuts[0], o.cuts[1:]
	}
	o.asked = append(o.asked, strings.TrimSpace(r.Header.Get("Range")+" "+r.Header.Get("If-Range")))
	_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &a.from)
	if given := r.Header.Get("If-Range"); err != nil || o.noRange || given != "" && given != o.etag {
		a.from = 0
	}
	a.partial = a.from > 0
	if a.status == 0 && a.partial && a.from >= len(a.content) {
		a.status = http.StatusRequestedRangeNotSatisfiable
	}
	a.rest = a.content[min(a.from, len(a.content)):]
	return a
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	a := o.decide(r)
	if a.then != nil {
		defer a.then()
	}
	if a.status != 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(a.content)))
		w.WriteHeader(a.status)
		return
	}
	a.write(w)
}

func (a answer) write(w http.ResponseWriter) {
	if a.etag != "" {
		w.Header().Set("ETag", a.etag)
	}
	if !a.chunked {
		w.Header().Set("Content-Length", fmt.Sprint(len(a.rest)))
	}
	if a.partial {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", a.from, len(a.content)-1, len(a.content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	if a.cut >= 0 && a.cut < len(a.rest) {
		_, _ = w.Write(a.rest[:a.cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(a.rest)
	_ = http.NewResponseController(w).Flush()
}

func (o *origin) ranges() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// entry is the catalogue's word for what the server has now.
func (o *origin) entry() image.Entry { return entryOf(o.URL+"/debian-12.qcow2", o.content) }

func entryOf(url string, content []byte) image.Entry {
	return image.Entry{Name: "debian-12", URL: url, SHA256: digest(content), Format: image.FormatQCOW2}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// noise is content in which no two places are alike.
func noise(seed uint64, size int) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed)})
	content := make([]byte, size)
	_, _ = random.Read(content)
	return content
}
