//go:build !linux

package main

import "syscall"

// ownGroup gives a child a process group. Where the kernel cannot end it with this
// process, the next run says which port is in use.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
