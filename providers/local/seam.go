package local

import (
	"context"
	"net/netip"
	"os"
)

// machine is what the provider needs of the operating system besides files. The
// one implementation is system, in process.go, alive.go and stop.go; a test puts faults in between.
type machine interface {
	// listen binds a TCP socket that already takes connections, and returns it ready
	// to be handed to a process.
	listen(ctx context.Context, at netip.AddrPort) (*os.File, error)
	// start runs the proxy process of an instance folder and waits until it serves.
	// When ctx ends first, the process is left to become ready by itself.
	start(ctx context.Context, folder string, listener *os.File) error
	// look says what is known about the process of an instance folder.
	look(folder string) (vital, error)
	// awaitReady waits for a process that somebody else started; false when it died
	// or did not become ready in time.
	awaitReady(ctx context.Context, folder string) (bool, error)
	// stop ends the process of an instance folder, and returns once it is gone.
	stop(ctx context.Context, folder string) error
}

// vital is what a process shows of itself. ready without alive is one that served
// once and has ended.
type vital struct {
	pid   int // 0: not told yet
	ready bool
	alive bool
}
