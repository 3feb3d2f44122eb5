package seed

import (
	_ "embed" // agent.sh
	"slices"
)

//go:embed agent.sh
var agent []byte

// AgentVendorData starts the QEMU guest agent, and installs it where the image lacks
// it, which needs a repository in reach. It is a script and no cloud-config: of two
// cloud-configs the guest takes each key from the user's alone, so that packages or
// runcmd there would drop ours, and no merge is needed here. The guest runs it before
// the user's scripts and runcmd; "vendor_data: {enabled: false}" in user-data turns it off.
func AgentVendorData() []byte { return slices.Clone(agent) }
