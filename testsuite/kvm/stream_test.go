//go:build integration && linux

package kvm

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/providers/kvm/conn"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
)

// A libvirtd with much to do begins a download before it has answered to the call. What
// does not know that reads nothing, and then waits for ever.
func TestWhatManyStoreAtOnceIsReadBackWhole(t *testing.T) {
	const many, each = 8, 20
	b := newBench(t)
	for _, cfg := range b.cfg.Hosts {
		host := conn.New(conn.Config{
			Host: cfg.Name, Address: cfg.Address, User: cfg.User, KeyFile: cfg.KeyFile,
			KnownHostsFile: cfg.KnownHostsFile, Bridge: conn.Bridge(cfg.Transport), Command: cfg.Command,
			StuckAfter: 5 * time.Second,
		})
		var all errgroup.Group
		for i := range many {
			all.Go(func() error {
				for range each {
					if err := host.Do(t.Context(), storeAndRead("stored-"+strconv.Itoa(i))); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		require.NoError(t, host.Close())
	}
}

func storeAndRead(name string) func(*libvirt.Libvirt) error {
	const size = 40 << 10
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	return func(l *libvirt.Libvirt) error {
		pool, err := l.StoragePoolLookupByName(kvmlab.Pool)
		if err != nil {
			return err
		}
		vol, err := l.StorageVolCreateXML(pool, fmt.Sprintf("<volume><name>%s</name><capacity>%d</capacity></volume>",
			name, size), 0)
		if err != nil {
			return err
		}
		if err := l.StorageVolUpload(vol, bytes.NewReader(data), 0, size, 0); err != nil {
			return err
		}
		var got bytes.Buffer
		if err := l.StorageVolDownload(vol, &got, 0, size, 0); err != nil {
			return err
		}
		if !bytes.Equal(data, got.Bytes()) {
			return fmt.Errorf("%s: %d of %d bytes were read back", name, got.Len(), size)
		}
		return l.StorageVolDelete(vol, 0)
	}
}
