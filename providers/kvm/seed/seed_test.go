package seed_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/kvm/seed"
)

func someSeed() seed.Seed {
	return seed.Seed{
		InstanceID: seed.InstanceID("uid-1", 1, "digest"), Hostname: "proxy-aaaaaaaaaaaaaaaa",
		UserData: []byte("#cloud-config\npackages: [tinyproxy]\n"), VendorData: seed.AgentVendorData(),
	}
}

// read returns an image's label and files, by the names as they are stored.
func read(t *testing.T, image []byte) (label string, files map[string][]byte) {
	t.Helper()
	opened, err := iso9660.OpenImage(bytes.NewReader(image))
	require.NoError(t, err)
	label, err = opened.Label()
	require.NoError(t, err)
	root, err := opened.RootDir()
	require.NoError(t, err)
	children, err := root.GetChildren()
	require.NoError(t, err)
	files = map[string][]byte{}
	for _, child := range children {
		content, err := io.ReadAll(child.Reader())
		require.NoError(t, err)
		files[child.Name()] = content
	}
	return label, files
}

func TestSeedHoldsWhatNoCloudReads(t *testing.T) {
	t.Parallel()
	s := someSeed()
	s.NetworkConfig = []byte("version: 2\n")
	image, err := s.ISO()
	require.NoError(t, err)
	label, files := read(t, image)
	require.Equal(t, "cidata", label)
	var meta map[string]string
	require.NoError(t, json.Unmarshal(files["meta-data"], &meta))
	require.Equal(t, map[string]string{"instance-id": s.InstanceID, "local-hostname": s.Hostname}, meta)
	delete(files, "meta-data")
	require.Equal(t, map[string][]byte{
		"user-data": s.UserData, "vendor-data": s.VendorData, "network-config": s.NetworkConfig,
	}, files)
}

func TestNoNetworkConfigIsNoFile(t *testing.T) {
	t.Parallel()
	image, err := someSeed().ISO()
	require.NoError(t, err)
	_, files := read(t, image)
	require.NotContains(t, files, "network-config")
	require.Len(t, files, 3)
}

func TestUserDataArrivesByteForByte(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 512<<10)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	for name, userData := range map[string][]byte{
		"nothing":                     {},
		"one byte":                    {0},
		"a sector":                    bytes.Repeat([]byte{'a'}, 2048),
		"a sector and a byte":         bytes.Repeat([]byte{'a'}, 2049),
		"CRLF":                        []byte("#cloud-config\r\npackages: [squid]\r\n"),
		"a BOM":                       []byte("\xef\xbb\xbf#cloud-config\n"),
		"UTF-16":                      []byte("\xff\xfe#\x00c\x00"),
		"NUL bytes":                   []byte("#!/bin/sh\n\x00\x01\n"),
		"gzip":                        zipped(t, "#cloud-config\n"),
		"what looks like an own date": []byte(strings.Repeat("0", 64)),
		"512 KiB of noise":            noise,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := someSeed()
			s.UserData = userData
			image, err := s.ISO()
			require.NoError(t, err)
			require.Zero(t, len(image)%512, "a disk has whole sectors")
			_, files := read(t, image)
			require.Contains(t, files, "user-data")
			require.True(t, bytes.Equal(userData, files["user-data"]), "the guest reads other bytes than the user gave")
		})
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestEqualSeedsAreEqualImages compares images of which the second is of another
// moment: the writer's own dates go down to hundredths of a second.
func TestEqualSeedsAreEqualImages(t *testing.T) {
	t.Parallel()
	first, err := someSeed().ISO()
	require.NoError(t, err)
	second, err := someSeed().ISO()
	require.NoError(t, err)
	require.Equal(t, first, second)
	dates := first[16*2048+813 : 16*2048+813+4*17]
	require.Equal(t, strings.Repeat(strings.Repeat("0", 16)+"\x00", 4), string(dates), "no date is given")
	other := someSeed()
	other.UserData = append(other.UserData, '\n')
	third, err := other.ISO()
	require.NoError(t, err)
	require.NotEqual(t, first, third)
}

// TestNothingStaysInTheTemporaryFolder is not parallel: the folder is the process's.
func TestNothingStaysInTheTemporaryFolder(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	_, err := someSeed().ISO()
	require.NoError(t, err)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "user-data may be secret")
}

func TestSeedWithoutInstanceIDIsRefused(t *testing.T) {
	t.Parallel()
	s := someSeed()
	s.InstanceID = ""
	_, err := s.ISO()
	require.ErrorContains(t, err, "InstanceID")
	require.NotContains(t, err.Error(), "tinyproxy")
}

func TestInstanceID(t *testing.T) {
	t.Parallel()
	base := seed.InstanceID("uid-1", 1, "digest")
	require.Equal(t, base, seed.InstanceID("uid-1", 1, "digest"), "a repetition is the same instance")
	require.Regexp(t, `^i-[0-9a-f]{20}$`, base)
	for name, other := range map[string]string{
		"another uid":                  seed.InstanceID("uid-2", 1, "digest"),
		"another attempt":              seed.InstanceID("uid-1", 2, "digest"),
		"other user-data":              seed.InstanceID("uid-1", 1, "digest2"),
		"parts that only join to ours": seed.InstanceID("uid-", 11, "digest"),
	} {
		require.NotEqual(t, base, other, name)
	}
}

func TestAgentVendorData(t *testing.T) {
	t.Parallel()
	script := seed.AgentVendorData()
	require.True(t, bytes.HasPrefix(script, []byte("#!/bin/sh\n")), "a script touches no key of the user's cloud-config")
	script[0] = 'x'
	require.NotEqual(t, script, seed.AgentVendorData(), "each caller has a copy of its own")
}
