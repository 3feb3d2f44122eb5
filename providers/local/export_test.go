package local

import (
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Hurry shortens how long a provider waits for a process to serve and to end.
func Hurry(p providers.Provider, ready, end time.Duration) {
	l := p.(*Provider)
	l.machine = system{executable: l.executable, readyWait: ready, endWait: end}
}
