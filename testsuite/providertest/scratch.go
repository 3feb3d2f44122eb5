package providertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func payloadRows() []Row {
	return []Row{
		{
			Name: "ScratchGoesWithTheCall", Section: "9", Apart: true, run: scratchGoesWithTheCall,
			Breaks: "the worker has a small disk for scratch and no other; it fills up, with secrets in it",
		},
		{
			Name: "CloudInitArrivesWhole", Section: "2.1", Needs: "Lab.Delivered", run: cloudInitArrivesWhole,
			Breaks: "the guest gets something else than the user wrote, and no proxy comes up",
		},
		{
			Name: "TooLargeCloudInitIsPermanent", Section: "2.1", Needs: "Lab.MaxCloudInit", run: tooLargeCloudInit,
			Breaks: "what can never be delivered is tried for ever, and the user is not told",
		},
		{
			Name: "PlacementIsNoPath", Section: "10", run: placementIsNoPath,
			Breaks: "a user of the API writes, reads or removes files of the worker or of the backend",
		},
		{
			Name: "NameIsALabel", Section: "6", run: nameIsALabel,
			Breaks: "a name becomes a file, an object and a part of the ID; one that is no label escapes from them",
		},
	}
}

// scratchGoesWithTheCall moves the folder for scratch to a place of its own, which
// takes a process of its own, and looks after every call.
func scratchGoesWithTheCall(s *scene) {
	req := s.request()
	req.CloudInit = bytes.Repeat([]byte("x"), largeCloudInit)
	if limit := s.suite.Lab.MaxCloudInit; limit > 0 {
		req.CloudInit = req.CloudInit[:min(largeCloudInit, limit)]
	}
	scratch, home := s.host.TempDir(), files(s, ".")
	require.NoError(s, os.Setenv("TMPDIR", scratch))
	require.Equal(s, scratch, os.TempDir(), "the temporary folder is the row's own")
	ctx := providers.WithLogger(s.Context(), new(watch).logger())
	s.tour(ctx, req, func(op string, _ any, _ error) {
		require.Empty(s, files(s, scratch), "%s leaves scratch files behind", op)
		require.Equal(s, home, files(s, "."), "%s writes where the worker was started", op)
	})
}

// files lists what is below a folder.
func files(t T, folder string) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if path != folder {
			all = append(all, path)
		}
		return err
	}))
	return all
}

// largeCloudInit is what one of the larger clouds takes, in bytes.
const largeCloudInit = 256 << 10

// cloudInitArrivesWhole sends what no text is: every byte, and many of them.
func cloudInitArrivesWhole(s *scene) {
	size := largeCloudInit
	if limit := s.suite.Lab.MaxCloudInit; limit > 0 {
		size = min(size, limit)
	}
	if limit := s.suite.Lab.MaxBinaryCloudInit; limit > 0 {
		size = min(size, limit)
	}
	large := make([]byte, size)
	_, err := rand.Read(large)
	require.NoError(s, err)
	for _, sent := range [][]byte{large, []byte("#cloud-config\r\n\tкey: \"$x\" %s {{ y }}\n\n"), {0, 0xff, '\n', 0xfe}} {
		req := s.request()
		req.CloudInit = bytes.Clone(sent)
		id := s.create(req)
		got := s.suite.Lab.Delivered(s.host, s.p, id)
		require.True(s, bytes.Equal(sent, got), "the guest gets %d bytes, not the %d that were sent", len(got), len(sent))
		s.delete(id)
	}
}

func tooLargeCloudInit(s *scene) {
	req := s.request()
	size := s.suite.Lab.MaxCloudInit + 1
	req.CloudInit = bytes.Repeat([]byte("#"), size)
	ctx, cancel := s.bounded()
	defer cancel()
	_, err := s.p.Create(ctx, req)
	s.mustBe(err, providers.OpCreate, providers.ErrPermanent)
	for _, word := range []string{"cloudInit", strconv.Itoa(size), strconv.Itoa(s.suite.Lab.MaxCloudInit)} {
		require.ErrorContains(s, err, word, "the error names the field, the size and the limit")
	}
	require.Empty(s, s.listed(req.UID), "a refused create makes nothing")
}

// placementField is one field of a Placement, by the name that users know.
type placementField struct {
	name string
	set  func(*providers.Placement, string)
}

func placementFields() []placementField {
	return []placementField{
		{"region", func(p *providers.Placement, v string) { p.Region = v }},
		{"zone", func(p *providers.Placement, v string) { p.Zone = v }},
		{"machineType", func(p *providers.Placement, v string) { p.MachineType = v }},
		{"image", func(p *providers.Placement, v string) { p.Image = v }},
	}
}

// unsafe returns values that are no file names. Those that lead somewhere lead into a folder.
func unsafe(folder string) []string {
	up := strings.Repeat("../", 32)
	return []string{
		filepath.Join(folder, "absolute"), up + strings.TrimPrefix(folder, "/") + "/relative",
		"..", "a/b", "a\x00b", "-rf", "a\n\xff",
	}
}

// placementIsNoPath tries each value in each field. A provider that does not use a
// field may ignore it.
func placementIsNoPath(s *scene) {
	outside := s.host.TempDir()
	for _, field := range placementFields() {
		for _, value := range unsafe(outside) {
			req := s.request()
			field.set(&req.Placement, value)
			ctx, cancel := s.bounded()
			id, err := s.p.Create(ctx, req)
			cancel()
			require.Empty(s, files(s, outside), "placement.%s %q becomes a file elsewhere", field.name, value)
			if err != nil {
				s.refusedValue(err, field.name, value)
				require.Empty(s, s.listed(req.UID), "a refused create makes nothing")
				continue
			}
			s.delete(id)
			require.Empty(s, files(s, outside), "placement.%s %q becomes a file elsewhere", field.name, value)
		}
	}
}

// refusedValue checks that an error names a field and its value, so that the value
// cannot tear a line in two.
func (s *scene) refusedValue(err error, field, value string) {
	s.Helper()
	s.mustBe(err, providers.OpCreate, providers.ErrPermanent)
	require.ErrorContains(s, err, field, "the error names the field")
	quoted := strconv.Quote(value)
	require.ErrorContains(s, err, quoted[1:len(quoted)-1], "the error names the value, quoted")
}

func nameIsALabel(s *scene) {
	outside := s.host.TempDir()
	values := append(unsafe(outside), "", ".", "A", "a.b", "a_b", "a-", strings.Repeat("a", 64))
	for _, value := range values {
		req := s.request()
		req.Name = value
		ctx, cancel := context.WithTimeout(s.Context(), callWithin)
		_, err := s.p.Create(ctx, req)
		cancel()
		require.Error(s, err, "the name %q is no DNS label", value)
		require.ErrorIs(s, err, providers.ErrPermanent, "the name %q", value)
		require.Empty(s, files(s, outside), "the name %q becomes a file elsewhere", value)
		require.Empty(s, s.listed(req.UID), "a refused create makes nothing")
	}
}
