package providers

import "strings"

// The marks on every instance, as label, tag or metadata key. Renaming one hides
// every instance that carries it. Contract §6; owner and installation are ours.
const (
	MarkPrefix       = "proxy-operator-"
	MarkManaged      = MarkPrefix + "managed"
	MarkUID          = MarkPrefix + "uid"
	MarkInstallation = MarkPrefix + "installation"
	MarkOwner        = MarkPrefix + "owner"
	MarkSpec         = MarkPrefix + "spec"

	// MarkManagedYes is the only value of MarkManaged that counts.
	MarkManagedYes = "true"
)

// IsMark reports whether a label key is kept for the marks. A user's label in the
// place of one would hide the instance from its owner.
func IsMark(key string) bool { return strings.HasPrefix(key, MarkPrefix) }

// Owner returns the owner mark of a Proxy: namespace/name.
func Owner(namespace, name string) string { return namespace + "/" + name }
