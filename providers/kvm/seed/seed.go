// Package seed builds the NoCloud seed of one instance: a small ISO 9660 image with
// the label cidata, from which cloud-init in the guest reads who it is and what to
// do. It knows no libvirt. Start reading at Seed.
package seed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kdomanski/iso9660"
)

// Label is the volume's name. cloud-init looks for it in lower or in upper case alone.
const Label = "cidata"

// Seed is what one instance is told at its first boot. UserData may hold secrets: no
// error of this package quotes it.
type Seed struct {
	InstanceID string // from InstanceID: cloud-init applies the rest once for each
	Hostname   string
	// UserData arrives in the guest byte for byte: text, gzip, MIME or anything else.
	// Empty is allowed, and still a file: without one the guest ignores the whole seed.
	UserData      []byte
	VendorData    []byte
	NetworkConfig []byte // empty leaves the guest's default: DHCP on its first interface
}

// ISO returns the image, some 40 KiB more than its content. Equal seeds are equal
// images, so that a digest tells whether a stored one still says the same.
func (s Seed) ISO() ([]byte, error) {
	meta, err := s.metaData()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"meta-data": meta, "user-data": s.UserData, "vendor-data": s.VendorData}
	if len(s.NetworkConfig) > 0 {
		files["network-config"] = s.NetworkConfig
	}
	image, err := write(files)
	if err != nil {
		return nil, fmt.Errorf("seed of %q: %w", s.InstanceID, err)
	}
	return withoutDates(image), nil
}

// metaData is YAML for the guest; JSON is YAML in which nothing needs a guess at quotes.
func (s Seed) metaData() ([]byte, error) {
	if s.InstanceID == "" {
		return nil, errors.New("seed: InstanceID is empty, and cloud-init would take every guest for the same one")
	}
	meta := map[string]string{"instance-id": s.InstanceID}
	if s.Hostname != "" {
		meta["local-hostname"] = s.Hostname
	}
	return json.Marshal(meta)
}

// write stages the files under the temporary folder, in a folder that only this user
// can open, for as long as the image is written.
func write(files map[string][]byte) (image []byte, err error) {
	w, err := iso9660.NewWriter()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Cleanup()) }()
	for name, content := range files {
		if err := w.AddFile(bytes.NewReader(content), name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var out bytes.Buffer
	err = w.WriteTo(&out, Label)
	return out.Bytes(), err
}

// Where ECMA-119 8.4 puts the four dates of the primary volume descriptor, which is
// the image's sector 16.
const (
	sectorSize = 2048
	datesStart = 16*sectorSize + 813
	datesEnd   = datesStart + 4*17
)

// noDate is how ECMA-119 8.4.26.1 writes that a date is not given.
var noDate = append(bytes.Repeat([]byte{'0'}, 16), 0)

func withoutDates(image []byte) []byte {
	copy(image[datesStart:datesEnd], bytes.Repeat(noDate, 4))
	return image
}

// InstanceID is the same for every repetition of one create, and another one as soon
// as the attempt or the user-data is: a guest on a disk that was used before would
// keep its old configuration under a name that it knows.
func InstanceID(uid string, attempt int, userDataDigest string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{uid, strconv.Itoa(attempt), userDataDigest}, "\x00")))
	return "i-" + hex.EncodeToString(sum[:10])
}
