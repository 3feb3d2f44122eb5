package kvm

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"net/url"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Where libvirt keeps what the provider writes into a domain. Changing either hides every
// domain that there is.
const (
	metadataURI = "https://github.com/egressfleet/egressfleet/kvm/1"
	metadataKey = "egressfleet"
)

// The phases of a create, as the metadata says them.
const (
	phaseStarting = "starting" // defined; never seen to run
	phaseStarted  = "started"  // it has run
)

// marks are what a domain's metadata says. Serialised: add fields, never rename or retype.
type marks struct {
	Managed      string `xml:"proxy-operator-managed,attr,omitempty"`
	UID          string `xml:"proxy-operator-uid,attr,omitempty"`
	Installation string `xml:"proxy-operator-installation,attr,omitempty"`
	Owner        string `xml:"proxy-operator-owner,attr,omitempty"`
	Spec         string `xml:"proxy-operator-spec,attr,omitempty"`
	Labels       string `xml:"labels,attr,omitempty"` // JSON of the user's
	CreatedAt    string `xml:"created-at,attr,omitempty"`
	StartingAt   string `xml:"starting-at,attr,omitempty"` // of the last start of a create
	Phase        string `xml:"phase,attr,omitempty"`
	Attempt      int    `xml:"attempt,attr,omitempty"`
	Pool         string `xml:"pool,attr,omitempty"` // which the volumes are in
}

func newMarks(req providers.CreateRequest, pool string, now time.Time) (marks, error) {
	at := now.UTC().Format(time.RFC3339Nano)
	m := marks{
		Managed: providers.MarkManagedYes, UID: req.UID, Installation: req.Installation, Owner: req.Owner,
		Spec: req.SpecMark, CreatedAt: at, StartingAt: at, Phase: phaseStarting, Attempt: req.Attempt, Pool: pool,
	}
	if len(req.Labels) == 0 {
		return m, nil
	}
	labels, err := json.Marshal(req.Labels)
	m.Labels = string(labels)
	return m, err
}

// bare is the metadata as DomainSetMetadata takes it, which gives it the namespace.
func (m marks) bare() (string, error) { return m.marshal("instance", "") }

// element is the metadata as it stands in the XML of a domain.
func (m marks) element() (string, error) { return m.marshal(metadataKey+":instance", metadataURI) }

func (m marks) marshal(name, namespace string) (string, error) {
	text, err := xml.Marshal(struct {
		XMLName   xml.Name
		Namespace string `xml:"xmlns:egressfleet,attr,omitempty"`
		marks
	}{xml.Name{Local: name}, namespace, m})
	return string(text), err
}

// readMarks finds the marks in the metadata of a domain; the zero marks where there are
// none, for then it is somebody else's.
func readMarks(metadata string) (marks, error) {
	var all struct {
		Instance *marks `xml:"https://github.com/egressfleet/egressfleet/kvm/1 instance"`
	}
	err := xml.Unmarshal([]byte("<metadata>"+metadata+"</metadata>"), &all)
	if err != nil || all.Instance == nil {
		return marks{}, err
	}
	return *all.Instance, nil
}

// ours reports whether an instance is of an installation. Without the managed mark it is
// nobody's, whatever else it says.
func (m marks) ours(installation string) bool {
	return m.Managed == providers.MarkManagedYes && m.Installation == installation
}

// checkHolder refuses what Create must not adopt.
func (m marks) checkHolder(req providers.CreateRequest) error {
	wanted := providers.Holder{UID: req.UID, Installation: req.Installation}
	var found providers.Holder
	if m.Managed == providers.MarkManagedYes {
		found = providers.Holder{UID: m.UID, Installation: m.Installation}
	}
	if found == wanted {
		return nil
	}
	return permanent("%w", &providers.ForeignError{Found: found, Wanted: wanted})
}

// when reads a time; the zero time where there is none, which proves nothing about an age.
func when(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// startingSince is when the create that is under way, or was cut off, began its start.
func (m marks) startingSince() time.Time { return when(cmp.Or(m.StartingAt, m.CreatedAt)) }

// The names of the volumes of an instance.
const (
	overlaySuffix = ".qcow2"
	seedSuffix    = "-seed.iso"
	marksSuffix   = ".m"
	marksFields   = 4 // name, UID, installation, owner
	longestName   = 255
)

func overlayName(name string) string { return name + overlaySuffix }
func seedName(name string) string    { return name + seedSuffix }

// holding is whose volumes there are under a name.
type holding struct {
	name, uid, installation, owner string
}

// volume is the name of the volume that has the marks. What makes it too long is the owner,
// which people then have to look up by the UID.
func (h holding) volume() (string, error) {
	name := strings.Join([]string{h.name, escape(h.uid), escape(h.installation), escape(h.owner)}, ",") + marksSuffix
	switch {
	case len(name) <= longestName:
		return name, nil
	case h.owner != "":
		h.owner = ""
		return h.volume()
	}
	return "", permanent("uid: %d bytes are more than the name of a volume can hold", len(h.uid))
}

// readHolding reads the name of a volume; false when it has no marks.
func readHolding(volume string) (holding, bool) {
	text, ok := strings.CutSuffix(volume, marksSuffix)
	fields := strings.Split(text, ",")
	if !ok || len(fields) != marksFields || !isLabel(fields[0]) {
		return holding{}, false
	}
	for i := range fields {
		field, err := unescape(fields[i])
		if err != nil {
			return holding{}, false
		}
		fields[i] = field
	}
	return holding{fields[0], fields[1], fields[2], fields[3]}, true
}

// escape makes a text a part of a file name; the slash of an owner stays readable.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "%2F", "=") }

func unescape(text string) (string, error) {
	return url.QueryUnescape(strings.ReplaceAll(text, "=", "%2F"))
}
