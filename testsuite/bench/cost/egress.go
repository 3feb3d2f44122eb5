package cost

import (
	"context"
	"net"
	"sync"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/testsuite/bench/street"
)

// egress lets all instances of a backend in memory serve: whoever dials one of them gets
// to one real proxy, or, where it hangs, to another one that never answers.
type egress struct {
	street *street.Street

	mu   sync.Mutex
	hung map[string]bool // by address
}

func newEgress(ctx context.Context) (*egress, error) {
	s, err := street.Open(ctx, 2, 1)
	return &egress{street: s, hung: map[string]bool{}}, err
}

// hang lets what is at an address take connections, and never answer.
func (e *egress) hang(ip string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hung[ip] = true
}

// probesAtOnce keeps a thousand handshakes from one another: a proxy that has no time to
// answer on a busy machine would be called unhealthy, and tell so. What a round costs does
// not depend on it.
const probesAtOnce = 40

// health probes the instances.
func (e *egress) health() *activities.Health {
	return &activities.Health{
		Prober:   &probe.Prober{Dial: e.dial, Concurrency: probesAtOnce},
		TargetOf: func(string) probe.Target { return e.street.Target },
	}
}

// dial takes the target for itself, and every other address for that of an instance.
func (e *egress) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != e.street.Target.Address() {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		address = e.at(host)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (e *egress) at(ip string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	serves := e.street.Proxies[1]
	if e.hung[ip] {
		serves = e.street.Proxies[0]
	}
	return addressOf(serves)
}
