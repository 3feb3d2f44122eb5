package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// The files in the folder of an instance. All but the record exist only while a
// process may live.
const (
	recordFile = "record.json"
	recordTemp = "record.json.tmp" // one name is enough: its writer holds the folder's lock
	aliveFile  = "alive"           // its lock is the process's life; alive.go
	logFile    = "log"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
)

// errNoRecord: the folder of instances is there, and has no such instance.
var errNoRecord = errors.New("no such instance")

// store is the folder that holds one folder per instance.
type store struct {
	root string
	// seen is whether this value of the provider ever found root. A root that was
	// there and is not any more was unmounted, moved or removed.
	seen *atomic.Bool
}

func newStore(dir, provider string) store {
	return store{root: filepath.Join(dir, provider, "instances"), seen: new(atomic.Bool)}
}

func (s store) folder(name string) string     { return filepath.Join(s.root, name) }
func (s store) file(name, file string) string { return filepath.Join(s.root, name, file) }

// present says whether root is there; false and nil mean that it never was, as
// far as this value of the provider knows. One that vanished is an error: nothing
// that was in it may read as gone, or come twice.
func (s store) present() (bool, error) {
	seen := s.seen.Load() // before the look, or a first Create at the same time reads as a loss
	_, err := os.Stat(s.root)
	switch {
	case err == nil:
		s.seen.Store(true)
		return true, nil
	case missing(err) && !seen:
		return false, nil
	case missing(err):
		return false, s.vanished()
	default:
		return false, err
	}
}

// mustBePresent is for calls about an ID: Create returned it, so root was there.
func (s store) mustBePresent() error {
	ok, err := s.present()
	if err == nil && !ok {
		return s.vanished()
	}
	return err
}

func (s store) vanished() error {
	return transient("dir: %s is missing, so nothing can be told about its instances: "+
		"mount it, or make it again (mkdir -p) if they are really gone", s.root)
}

// ensure makes root at the first Create.
func (s store) ensure() error {
	if ok, err := s.present(); ok || err != nil {
		return err
	}
	if err := os.MkdirAll(s.root, folderMode); err != nil {
		return err
	}
	s.seen.Store(true)
	return nil
}

// lock locks the folder of an instance that is there.
func (s store) lock(ctx context.Context, name string) (*dirLock, error) {
	return lockDir(ctx, s.folder(name))
}

// lockNew locks the folder of an instance, and makes it where there is none.
func (s store) lockNew(ctx context.Context, name string) (*dirLock, error) {
	for {
		if err := os.Mkdir(s.folder(name), folderMode); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		l, err := s.lock(ctx, name)
		if !missing(err) {
			return l, err
		}
		// A Delete removed it while its lock was waited for.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// lockAll locks the allocation of addresses. Its holder takes no other lock.
func (s store) lockAll(ctx context.Context) (*dirLock, error) { return lockDir(ctx, s.root) }

// read returns the record of an instance. errNoRecord is certain; a record that
// makes no sense is ErrPermanent, for only a person can mend or delete it.
func (s store) read(name string) (record, error) {
	path := s.file(name, recordFile)
	data, err := os.ReadFile(path) //nolint:gosec // the name is a label
	if missing(err) {
		// Only under a root that is still there does this mean anything.
		if err := s.mustBePresent(); err != nil {
			return record{}, err
		}
		return record{}, errNoRecord
	}
	if err != nil {
		return record{}, err
	}
	r, err := parseRecord(name, data)
	if err != nil {
		return record{}, permanent("record %s cannot be read: %w", path, err)
	}
	return r, nil
}

// names lists the folders that can be instances. Whatever else somebody put there
// is none of ours.
func (s store) names() ([]string, error) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() && isLabel(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// changed returns when something was last added to or removed from the folder of
// an instance; the zero time when it is gone.
func (s store) changed(name string) (time.Time, error) {
	info, err := os.Stat(s.folder(name))
	if missing(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime().UTC(), nil
}

// remove takes away an instance whose process is gone. The record goes last: until
// then a crash leaves the instance listed. The caller holds its lock.
func (s store) remove(name string) error {
	entries, err := os.ReadDir(s.folder(name))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == recordFile {
			continue
		}
		if err := os.RemoveAll(s.file(name, e.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(s.file(name, recordFile)); err != nil && !missing(err) {
		return err
	}
	return os.Remove(s.folder(name))
}

// write replaces the record of an instance at once and for good: whoever reads
// finds the old one or the new one, also after a power failure. The caller holds
// the folder's lock.
func (s store) write(r record) error {
	data, err := encodeRecord(r)
	if err != nil {
		return err
	}
	temp := s.file(r.Name, recordTemp)
	if err := writeSynced(temp, data); err != nil {
		return fmt.Errorf("record %s: %w", temp, err)
	}
	if err := os.Rename(temp, s.file(r.Name, recordFile)); err != nil {
		return err
	}
	return syncFolder(s.folder(r.Name))
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode) //nolint:gosec // the name is a label
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the name is a label
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
