package codec

import (
	"crypto/cipher"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// keptFor is how soon a new key begins to encrypt.
	keptFor = 10 * time.Second
	// askedAgain is how soon the directory is read again for a key that is not known.
	askedAgain = time.Second
)

// Options say where keys come from.
type Options struct {
	// Dir holds one file for each key; its name is the key's id. Empty: no keys.
	Dir string
	// Current is the id of the key that encrypts; empty: the last name in byte order.
	Current string
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil is the system's
}

// Ring holds the keys of a directory. The current one encrypts, every one decrypts. It
// follows the directory: a key that is added is used within ten seconds, and a fault
// there leaves the keys as they were and is logged. It is safe for concurrent use.
type Ring struct {
	options Options

	mu      sync.Mutex
	keys    keys
	current string
	readAt  time.Time
	fault   string // the last one that was logged
}

// Open reads the keys. Without a directory the ring is empty: it encrypts nothing, and
// says of what is encrypted which key is missing.
func Open(o Options) (*Ring, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Ring{options: o, readAt: o.Now()}
	if o.Dir == "" {
		return r, nil
	}
	return r, r.read()
}

// HasKeys reports whether anything is encrypted.
func (r *Ring) HasKeys() bool { return r.options.Dir != "" }

// Current returns the id of the key that encrypts; "" without keys.
func (r *Ring) Current() string { id, _ := r.toEncrypt(); return id }

func (r *Ring) toEncrypt() (id string, key cipher.AEAD) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh(keptFor)
	return r.current, r.keys[r.current]
}

func (r *Ring) toDecrypt(id string) cipher.AEAD {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys[id] == nil {
		r.refresh(askedAgain)
	}
	return r.keys[id]
}

// refresh reads the directory again when what is known is older than age.
func (r *Ring) refresh(age time.Duration) {
	if !r.HasKeys() || r.options.Now().Sub(r.readAt) < age {
		return
	}
	err := r.read()
	switch {
	case err == nil:
		r.fault = ""
	case err.Error() != r.fault:
		r.fault = err.Error()
		r.options.Logger.Error("the encryption keys cannot be read again; those from before stay in use",
			slog.String("error", r.fault))
	}
}

func (r *Ring) read() error {
	r.readAt = r.options.Now()
	found, err := readKeys(r.options.Dir)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(found))
	current := names[len(names)-1]
	if want := r.options.Current; want != "" {
		if found[want] == nil {
			return fmt.Errorf("codec.current: %q is not a key in %s, which holds %s",
				want, r.options.Dir, strings.Join(names, ", "))
		}
		current = want
	}
	if r.current != current {
		r.options.Logger.Info("payloads are encrypted", slog.String("key", current), slog.Any("keys", names))
	}
	r.keys, r.current = found, current
	return nil
}
