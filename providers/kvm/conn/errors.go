package conn

import "fmt"

// Stage is how far a connection had come.
type Stage string

// The stages, in their order.
const (
	StageFiles     Stage = "files"     // the key and known_hosts files
	StageDial      Stage = "dial"      // TCP
	StageHandshake Stage = "handshake" // SSH's versions and key exchange
	StageHostKey   Stage = "hostkey"
	StageAuth      Stage = "auth"
	StageForward   Stage = "forward" // the bridge to libvirt's socket
	StageLibvirt   Stage = "libvirt" // opening libvirt's protocol
	StageRPC       Stage = "rpc"     // a call on a connection that was open
)

// Reason says what an administrator would do something about.
type Reason string

// The reasons. Those of the credentials, the host key and the login stay until a person
// does something, the others may pass.
const (
	FileMissing        Reason = "FileMissing"        // the key or known_hosts is not there (yet)
	FileInvalid        Reason = "FileInvalid"        // it is there and of no use
	Unreachable        Reason = "Unreachable"        // nobody takes the TCP connection
	SSHHandshakeFailed Reason = "SSHHandshakeFailed" // who takes it does not speak SSH, or not our kind
	HostKeyUnknown     Reason = "HostKeyUnknown"     // known_hosts has no line for the address
	HostKeyMismatch    Reason = "HostKeyMismatch"    // it has one of another key, or a revoked one
	Unauthorized       Reason = "Unauthorized"       // sshd refuses the user or the key
	ForwardRefused     Reason = "ForwardRefused"     // sshd allows the user no such channel
	LibvirtUnreachable Reason = "LibvirtUnreachable" // nobody, or not libvirt, is behind the bridge
	Timeout            Reason = "Timeout"            // no answer in time; the stage says whose
	Canceled           Reason = "Canceled"           // the caller left before the answer
	ConnectionLost     Reason = "ConnectionLost"     // the connection ended under the call
	Overloaded         Reason = "Overloaded"         // too many calls hang without their caller
	Closed             Reason = "Closed"             // the Host was closed
)

// Error is a failure of the link to a host. What libvirt itself answers is a libvirt.Error and
// is passed on as it is. The text holds no key.
type Error struct {
	Host   string
	Stage  Stage
	Reason Reason
	Hint   string // what a person could do; "" where waiting is all
	Err    error
}

// Error names the host, the stage and the reason, then the cause and what to do.
func (e *Error) Error() string {
	text := fmt.Sprintf("host %s: %s: %s: %v", e.Host, e.Stage, e.Reason, e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Permanent reports whether only a person can mend it. Everything else may pass by itself.
func (e *Error) Permanent() bool {
	switch e.Reason {
	case FileInvalid, HostKeyUnknown, HostKeyMismatch, Unauthorized, ForwardRefused:
		return true
	default:
		return false
	}
}
