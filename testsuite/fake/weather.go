package fake

import "sync"

// weather is what can be wrong with a backend. It is the state of the handles below,
// each of which returns what ends it.
type weather struct {
	cut      map[string]bool // locations that do not answer
	full     bool
	confused bool
	silent   bool          // addresses are not discovered
	lag      int           // reads that miss a new instance
	stalled  chan struct{} // calls wait for it
	denied   bool          // no credential is taken
	lacking  string        // what a create does not find
	token    string        // the only credential that is taken; "" takes any
	stop     *stop
}

// stop ends a create between two of its calls.
type stop struct {
	after string
	how   func() error
}

// with changes the weather and returns what changes it back, once.
func (p *Provider) with(begin, end func(*weather)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin(&p.weather)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		end(&p.weather)
	})
}

// CutOff lets locations not answer; without arguments, none does.
func (p *Provider) CutOff(at ...string) (heal func()) {
	if len(at) == 0 {
		at = locations()
	}
	return p.with(func(w *weather) {
		w.cut = map[string]bool{}
		for _, location := range at {
			w.cut[location] = true
		}
	}, func(w *weather) { w.cut = nil })
}

// Stall lets the backend take calls and answer none until the end, and then all.
func (p *Provider) Stall() (release func()) {
	gate := make(chan struct{})
	return p.with(func(w *weather) { w.stalled = gate }, func(w *weather) { w.stalled = nil; close(gate) })
}

// Exhaust leaves no capacity for another instance.
func (p *Provider) Exhaust() (restore func()) {
	return p.with(func(w *weather) { w.full = true }, func(w *weather) { w.full = false })
}

// Confuse lets every call fail since something is missing that is no instance.
func (p *Provider) Confuse() (restore func()) {
	return p.with(func(w *weather) { w.confused = true }, func(w *weather) { w.confused = false })
}

// Silence lets no address be discovered: there is no lease and no agent answers.
func (p *Provider) Silence() (restore func()) {
	return p.with(func(w *weather) { w.silent = true }, func(w *weather) { w.silent = false })
}

// Lag lets the backend's first reads of each new instance miss it, a create's own
// reads among them.
func (p *Provider) Lag(reads int) (restore func()) {
	return p.with(func(w *weather) { w.lag = reads }, func(w *weather) { w.lag = 0 })
}

// Lags reports whether there is a lag.
func (p *Provider) Lags() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lag > 0
}

// Accept lets the backend take one credential only, as after a rotation.
func (p *Provider) Accept(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = token
}

// Deny lets the backend take no credential, as when it was revoked.
func (p *Provider) Deny() (restore func()) {
	return p.with(func(w *weather) { w.denied = true }, func(w *weather) { w.denied = false })
}

// StopAfter ends operations right after the backend has done a call of that name
// ("instances.insert", "volumes.insert", …): with how's error, or its panic.
func (p *Provider) StopAfter(what string, how func() error) (heal func()) {
	return p.with(func(w *weather) { w.stop = &stop{what, how} }, func(w *weather) { w.stop = nil })
}

// stopAfter returns how to end after a call; nil: the operation goes on.
func (b *backend) stopAfter(what string) func() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop == nil || b.stop.after != what {
		return nil
	}
	return b.stop.how
}
