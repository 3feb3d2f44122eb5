// Package local keeps instances on this machine: each is a process of the worker's
// own binary that runs a forward proxy on a loopback address. It is made for
// laptops and CI, and is a whole provider. It may import providers, goproxy and
// x/sys, and no other room. Start reading at Provider in provider.go, then
// create.go; the proxy process begins at Main in serve.go. The guide is
// docs/providers/local.md.
//
// # Backend
//
// Files, locks, sockets and processes of a Unix system (Linux or macOS). An
// instance is a folder <dir>/<provider>/instances/<name> with these files:
//
//	record.json  marks, placement, address, port, times; written before the process starts
//	alive        locked (flock) by the process as long as it lives; holds its pid, then "ready"
//	log          stdout and stderr of the process
//
// The lock is what tells a living process: it ends with the process whatever
// happens, and a pid that was given to somebody else does not have it. The parent
// takes it before the start and hands it on, so there is no moment without it. A
// process ends by itself when its alive file is removed or replaced: deleting the
// folder leaves no stray. All locks are flocks on folders or on that file, so that
// two workers can share a dir, and none leaves a file behind. On a disk that does not
// answer, a call returns a second after its context has ended (attend.go).
//
// The folder "instances" is made by the first Create and stays. While it is
// missing, Get and Delete answer Transient, for an unmounted disk must not read as
// "all gone"; Create and the listing take a missing one for a first use, unless
// this value of the provider saw it before.
//
// # Profile
//
//   - readiness: immediate. A process serves within a second.
//   - create-return: blocking, for at most 10 s a step. There is no state "being
//     created" to poll, and a socket that was bound must be handed on by its parent.
//   - delete-return: waits. A process ends within seconds; nothing is left to poll.
//   - ip-source: assigned-at-create. The provider picks and binds the address.
//   - gc-mark: written-metadata. The record has the marks before anything runs.
//   - created-at: written-at-create, in the record.
//   - list-partial: fail-whole. There is one folder; a single unreadable record is
//     named in Omitted.
//   - quota: detected. A full range, a taken port, a full disk, no more processes,
//     descriptors or memory.
//   - not-found: error-code. ENOENT for the record, with its parent folder in place.
//   - primary-key: name-is-key. The name is the folder; the ID is local/<name>.
//   - provisioning-state: create-blocks. A crash inside Create leaves a record
//     without a ready process: Get says Provisioning for a minute, then Stopped, and
//     Create takes it up (it waits for the process, or starts one).
//   - async-ops: none. Every call completes before it returns.
//   - secondary-resources: explicit. Delete removes the folder; one without a record
//     is a leftover of the inventory after a minute, and Delete takes it.
//   - credentials: none. The backend is the machine itself.
//   - client-kind: system-calls, behind the interface machine (seam.go).
//   - timeouts: per-call. Locks 40 s, start 10 s, each signal 5 s, check 5 s.
//   - logging: tiered, without a wire: outcome, and detail when a process starts.
//   - child-spans: none. A call is a handful of system calls; log lines have the trace.
//   - backend-test: unit-tests. Every test runs real processes.
//
// # Prerequisites
//
// A local disk with flock. Linux for an address per instance. The worker's main
// must call Main when its first argument is Command.
package local
