// Package kvm keeps instances as libvirt domains on KVM hosts, each reached over one SSH
// connection. It may import providers, its own folders conn, seed and image, go-libvirt and
// libvirtxml, and no other room. Start reading at Provider in provider.go, then create.go; the
// seam to libvirt is api in seam.go. The guide is docs/providers/kvm.md.
//
// An instance is these things on one host, in the order in which Create makes them:
//
//	<name>,<uid>,<installation>,<owner>.m   an empty volume whose name has the marks
//	<name>.qcow2                            the disk, an overlay over the image's volume
//	<name>-seed.iso                         the NoCloud seed, with the user-data
//	<name>                                  the domain, with the marks in its metadata
//
// The marks are in the name of a volume because a volume has no other place for them, and
// because it is then made with them or not at all: whatever a crash leaves behind says whose
// it is. Delete takes the domain away first, for libvirt does not protect the disk of a
// domain that runs, and the marks last.
package kvm
