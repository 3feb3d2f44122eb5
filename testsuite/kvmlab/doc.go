// Package kvmlab is two KVM hosts on one Linux machine, each with its own libvirtd, sshd,
// network and pool, for tests of a provider against real libvirt. The tests run inside
// namespaces that are made for them (processes, network, mounts), and each host has its
// own below: two runs never meet, and the kernel ends everything with the run, however
// that ends. It needs root and Debian's packages. Start reading at Main; lab.go is what
// tests use.
package kvmlab
