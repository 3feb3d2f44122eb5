package gcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// mostOfLabel is how many characters a key or value of a label may have.
const mostOfLabel = 63

// isLabelKey and isLabelValue are the rules of Compute Engine:
// https://cloud.google.com/compute/docs/labeling-resources. As regular expressions, with
// Unicode's classes sixty times in them, they would take 4 MiB for good.
func isLabelKey(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.In(first, unicode.Ll, unicode.Lo) && isLabelValue(text)
}

func isLabelValue(text string) bool {
	for _, r := range text {
		if r != '_' && r != '-' && !unicode.In(r, unicode.Ll, unicode.Lo, unicode.N) {
			return false
		}
	}
	return utf8.RuneCountInString(text) <= mostOfLabel
}

// markProvider and markPort are ours alone: they say which rule of the firewall an
// instance needs.
const (
	markProvider = providers.MarkPrefix + "provider"
	markPort     = providers.MarkPrefix + "port"
)

// mostLabels is how many labels a resource may have.
const mostLabels = 64

func checkLabel(field, key, value string) error {
	switch {
	case providers.IsMark(key):
		return fmt.Errorf("%s: %q is kept for the marks", field, key)
	case !isLabelKey(key):
		return fmt.Errorf("%s: %q is no key of Compute Engine: lower-case letters, digits, '_' and '-', "+
			"beginning with a letter, 63 at most", field, key)
	case !isLabelValue(value):
		return fmt.Errorf("%s[%s]: %q is no value of Compute Engine: lower-case letters, digits, '_' and '-', "+
			"63 at most", field, key, value)
	}
	return nil
}

// asLabel returns a value as a label can hold it: as it is, or the beginning of its
// digest. What it stands for is then in the metadata, under the same key.
func asLabel(value string) string {
	if value == "" || isLabelValue(value) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "x" + hex.EncodeToString(sum[:16])
}

// identity is the marks that labels hold, by which the backend finds an instance. Disks
// carry them, too.
func identity(provider string, req providers.CreateRequest) map[string]string {
	return map[string]string{
		providers.MarkManaged:      providers.MarkManagedYes,
		providers.MarkUID:          asLabel(req.UID),
		providers.MarkInstallation: asLabel(req.Installation),
		markProvider:               asLabel(provider),
	}
}

// marked reads one mark back. The label decides whether it is there; the metadata only
// holds the spelling that a label cannot.
func marked(key string, labels, metadata map[string]string) string {
	label, ok := labels[key]
	if !ok {
		return ""
	}
	if full, ok := metadata[key]; ok && asLabel(full) == label {
		return full
	}
	return label
}

// described are the marks of a disk as they were spelt: it has a description in the place
// of metadata.
func described(d *computepb.Disk) map[string]string {
	var marks map[string]string
	if json.Unmarshal([]byte(d.GetDescription()), &marks) != nil {
		return nil // somebody else's words
	}
	return marks
}

// describe is the description of a disk.
func describe(req providers.CreateRequest) (string, error) {
	text, err := json.Marshal(map[string]string{
		providers.MarkUID: req.UID, providers.MarkInstallation: req.Installation, providers.MarkOwner: req.Owner,
	})
	return string(text), err
}

// diskHolder is whose a disk is.
func diskHolder(d *computepb.Disk) providers.Holder { return holder(d.GetLabels(), described(d)) }

// holder is whose an instance is; nobody's without the managed mark.
func holder(labels, metadata map[string]string) providers.Holder {
	if labels[providers.MarkManaged] != providers.MarkManagedYes {
		return providers.Holder{}
	}
	return providers.Holder{
		UID:          marked(providers.MarkUID, labels, metadata),
		Installation: marked(providers.MarkInstallation, labels, metadata),
	}
}
