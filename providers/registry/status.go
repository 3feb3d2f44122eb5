package registry

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Status is what can be told of the configuration.
type Status struct {
	File      string    // its name without the folder
	LoadedAt  time.Time // of the providers that are served; zero for never
	Fault     string    // why the file as it is now is not served; empty for nothing
	Since     time.Time // of the fault
	Providers []Info    // by name
}

// Info is what can be told of one provider.
type Info struct {
	Name, Type string
	Profile    providers.Profile // zero where the provider tells none
	BuiltAt    time.Time         // when it was constructed; loads after that have kept it
}

// Status returns the state of the configuration.
func (l *Live) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{File: filepath.Base(l.opts.File), LoadedAt: l.loadedAt, Since: l.since}
	if l.fault != nil {
		s.Fault = strings.ReplaceAll(l.fault.Error(), l.opts.File, s.File)
	}
	set := l.current.Load()
	for _, name := range set.Names() {
		s.Providers = append(s.Providers, set.held[name].info())
	}
	return s
}

func (h *held) info() Info {
	i := Info{Name: h.entry.Name, Type: h.entry.Type, BuiltAt: h.builtAt}
	if p, ok := providers.As[providers.Profiler](h.bare); ok {
		i.Profile = p.Profile()
	}
	return i
}
