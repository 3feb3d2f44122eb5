package providers

// Credentialed is an optional interface, found with As: a provider that keeps what it
// made of credential files names them. When one changes, the provider is built anew,
// and a constructor that refuses the content leaves the one before in use. The list
// follows from the configuration alone. Contract §7.
type Credentialed interface {
	CredentialFiles() []string // paths; relative ones are of the working directory
}
