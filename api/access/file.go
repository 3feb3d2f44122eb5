package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is between two looks at the file: that late is a change at most.
const lookEvery = time.Second

// File is the list of tokens, as it is now. Safe for concurrent use.
type File struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex
	looked time.Time
	text   []byte // as it was read last
	book   book   // of the last text that was right
	fault  string // that the log has told: one look every other second would fill it
}

// Open reads a file of tokens. Its error names the file, the key and the value; no
// token and no hash is in it. Now is the clock; nil is the system's.
func Open(path string, log *slog.Logger, now func() time.Time) (*File, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if now == nil {
		now = time.Now
	}
	f := &File{path: path, log: log, now: now, looked: now()}
	text, err := os.ReadFile(path) //nolint:gosec // it is configuration
	if err != nil {
		return nil, fmt.Errorf("api.tokensFile: %w", err)
	}
	if f.book, err = parse(text); err != nil {
		return nil, fmt.Errorf("api.tokensFile: %s: %w", path, err)
	}
	f.text = text
	return f, nil
}

// Find returns what a token may do, or nil for one that is not in the file. A file that
// turned bad changes nothing, and the log says why: whoever is taken out of it is let in
// until it can be read again.
func (f *File) Find(token string) *Grant {
	return f.current().find(token)
}

// Look reads the file again, where that is due: a grant is over also while nobody asks.
func (f *File) Look() { f.current() }

func (f *File) current() book {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return f.book
}

// look reads the file again, where that is due.
func (f *File) look() {
	now := f.now()
	if now.Sub(f.looked) < lookEvery {
		return
	}
	f.looked = now
	text, err := os.ReadFile(f.path)
	if err == nil && bytes.Equal(text, f.text) {
		f.fault = ""
		return
	}
	var next book
	if err == nil {
		f.text = text
		next, err = parse(text)
	}
	if err != nil && err.Error() == f.fault {
		return
	}
	if err != nil {
		f.fault = err.Error()
		f.log.Error("the tokens are those of before", slog.String("file", f.path), slog.String("error", err.Error()))
		return
	}
	f.book.become(next)
	f.book, f.fault = next, ""
	f.log.Info("the tokens were read anew", slog.String("file", f.path), slog.Int("tokens", len(next)))
}
