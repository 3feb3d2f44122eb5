package main

import "syscall"

// ownGroup gives a child a process group, and ends it when this process dies
// without stopping it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
