package kvm

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// The steps of a create, as its progress tells them.
const createSteps = 6

// errOvertaken is that another create of the name was at the same step: one whose caller has
// left goes on for a moment.
var errOvertaken = errors.New("another create of this name was quicker")

// A create that was overtaken looks again for what is there, this often and after this pause:
// of a create whose caller has left one call is under way at most.
const (
	createTries = 5
	createPause = 200 * time.Millisecond
)

// createOrFollow creates, or takes up what another create has made meanwhile.
func (p *Provider) createOrFollow(ctx context.Context, req providers.CreateRequest) (h *host, err error) {
	for range createTries {
		// A volume that was there a moment ago is one that is still being made.
		if h, err = p.create(ctx, req); !errors.Is(err, errOvertaken) && !noVolume(err) {
			return h, err
		}
		select {
		case <-ctx.Done():
			return h, context.Cause(ctx)
		case <-time.After(createPause):
		}
	}
	return h, err
}

// create finds the instance of a name or makes it, and returns where it is.
func (p *Provider) create(ctx context.Context, req providers.CreateRequest) (*host, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o, err := p.accept(req)
	if err != nil {
		return nil, err
	}
	ctx = about(ctx, req.Name)
	release, err := p.names.hold(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	held, err := p.find(ctx, o.hosts, o.Name)
	if err != nil {
		return nil, err
	}
	if len(held) > 0 {
		return p.adopt(ctx, o, held)
	}
	if req.Installation != p.installation {
		return nil, permanent("installation: %q is not that of this provider, which is %q", req.Installation, p.installation)
	}
	h, err := p.place(ctx, o)
	if err != nil {
		return nil, err
	}
	return h, p.making(ctx, o, h).run()
}

// adopt returns an instance that is there, if it is this Proxy's. One that was defined and
// never started is what a create that was cut off has left: it is started now.
func (p *Provider) adopt(ctx context.Context, o order, held []whereabouts) (*host, error) {
	for _, w := range held {
		if err := w.marks.checkHolder(o.CreateRequest); err != nil {
			return w.host, err
		}
	}
	for _, w := range held {
		if w.marks.Phase != phaseStarting {
			return w.host, nil
		}
	}
	w := held[0]
	return w.host, p.making(ctx, o, w.host).resume(w)
}

// making is the create of one instance on one host.
type making struct {
	p     *Provider
	calls calls
	order order
	host  *host
	pool  libvirt.StoragePool
	find  func() (libvirt.StorageVol, bool, error) // the image's volume
	// again looks on the other hosts that may hold the name.
	again func() ([]whereabouts, error)
	// did tells how far it has come.
	did func(step int64, what string)
	say func(text string, err error)
}

func (p *Provider) making(ctx context.Context, o order, h *host) *making {
	m := &making{
		p: p, calls: p.calling(ctx, h, h.link.Do), order: o, host: h,
		again: func() ([]whereabouts, error) { return p.find(ctx, without(o.hosts, h), o.Name) },
		did:   func(step int64, what string) { providers.Progress(ctx, step, createSteps, what) },
		say: func(text string, err error) {
			p.logger(ctx).LogAttrs(ctx, slog.LevelWarn, text,
				slog.String("host", h.Name), slog.String("error", err.Error()))
		},
	}
	m.find = func() (libvirt.StorageVol, bool, error) { return image.Find(ctx, m.calls, m.pool, o.image) }
	return m
}

func without(hosts []*host, h *host) (others []*host) {
	for _, other := range hosts {
		if other != h {
			others = append(others, other)
		}
	}
	return others
}

// run makes what is missing, in the order in which a crash leaves the least: marks, disk, seed,
// domain. What failed for good, or for want of room, is taken away again.
func (m *making) run() error {
	dom, err := m.define()
	if err == nil {
		err = m.launch(dom)
	}
	return m.undone(err)
}

func (m *making) define() (libvirt.Domain, error) {
	g, err := m.volumes()
	if err != nil {
		return libvirt.Domain{}, err
	}
	if g.marks, err = newMarks(m.order.CreateRequest, m.host.Pool, time.Now()); err != nil {
		return libvirt.Domain{}, err
	}
	text, err := g.domainXML()
	if err != nil {
		return libvirt.Domain{}, err
	}
	dom, err := m.calls.DomainDefineXMLFlags(text, 0)
	if nameTaken(err) {
		return m.lost(err)
	}
	return dom, err
}

// lost finds who defined the name first. What this call made is that domain's by now: the
// volumes have the same names.
func (m *making) lost(cause error) (libvirt.Domain, error) {
	w, err := m.p.lookup(m.calls, m.host, m.order.Name)
	switch {
	case err != nil:
		return libvirt.Domain{}, err
	case w == nil:
		return libvirt.Domain{}, transient("the name was taken and is free again: %w", cause)
	}
	if err := w.marks.checkHolder(m.order.CreateRequest); err != nil {
		return libvirt.Domain{}, err
	}
	return w.dom, nil
}

// volumes makes the volumes of an instance, and returns what a domain needs to know of them.
func (m *making) volumes() (guest, error) {
	g := guest{
		name: m.order.Name, domainType: m.p.settings.domainType, machine: m.order.machine,
		network: m.host.Network, bridge: m.host.Bridge,
	}
	var err error
	if m.pool, err = m.calls.StoragePoolLookupByName(m.host.Pool); err != nil {
		return g, err
	}
	m.did(1, "image")
	base, err := m.base()
	if err != nil {
		return g, err
	}
	m.did(2, "marks") //nolint:mnd // the number of the step
	if err := m.mark(); err != nil {
		return g, err
	}
	m.did(3, "disk") //nolint:mnd // the number of the step
	if g.overlay, err = m.overlay(base); err != nil {
		return g, err
	}
	m.did(4, "seed") //nolint:mnd // the number of the step
	g.seed, err = m.seed()
	return g, err
}

// resume starts a domain that was defined before. Its volumes may be gone since.
func (m *making) resume(w whereabouts) error {
	state, _, err := m.calls.DomainGetState(w.dom, 0)
	if err != nil {
		return err
	}
	if state == int32(libvirt.DomainRunning) || state == int32(libvirt.DomainBlocked) {
		return m.started(w.dom, w.marks)
	}
	if state == int32(libvirt.DomainPaused) {
		return m.launch(w.dom) // a start is under way, whose caller has left: this one waits for its end
	}
	if _, err := m.volumes(); err != nil {
		return m.undone(err)
	}
	w.marks.StartingAt = time.Now().UTC().Format(time.RFC3339Nano) // or a Get calls it never started
	if err := m.write(w.dom, w.marks); err != nil {
		return err
	}
	return m.undone(m.launch(w.dom))
}

// launch starts a domain, once no other host has the name as well: two workers may have put
// one instance on two hosts at the same moment. Each defines first and looks afterwards, so at
// least one of them sees the other, and whoever does takes its own away. No ID was returned yet.
func (m *making) launch(dom libvirt.Domain) error {
	others, err := m.again()
	if err != nil {
		return err
	}
	if len(others) > 0 {
		m.remove()
		return transient("the name has appeared on host %s as well; the next try takes that one", others[0].host.Name)
	}
	m.did(5, "start") //nolint:mnd // the number of the step
	if err := m.calls.DomainCreate(dom); err != nil && !alreadyRunning(err) {
		return err
	}
	w, err := m.p.lookup(m.calls, m.host, m.order.Name)
	if err != nil {
		return err
	}
	if w == nil {
		return transient("the domain vanished while it was started")
	}
	return m.started(w.dom, w.marks)
}

// started writes that the domain has run. From now on a domain that is off has stopped.
func (m *making) started(dom libvirt.Domain, has marks) error {
	m.did(createSteps, "started")
	has.Phase = phaseStarted
	return m.write(dom, has)
}

func (m *making) write(dom libvirt.Domain, has marks) error {
	text, err := has.bare()
	if err != nil {
		return err
	}
	return m.calls.DomainSetMetadata(dom, int32(libvirt.DomainMetadataElement), libvirt.OptString{text},
		libvirt.OptString{metadataKey}, libvirt.OptString{metadataURI}, libvirt.DomainAffectConfig)
}

// undone takes away what a create made that cannot succeed by being repeated: nobody may
// come back to it. What may succeed is left for the next try.
func (m *making) undone(err error) error {
	class := classify(providers.OpCreate, err)
	_, foreign := errors.AsType[*providers.ForeignError](err)
	if err == nil || foreign || class == providers.ErrTransient {
		return err
	}
	m.remove()
	return err
}

func (m *making) remove() {
	if err := m.p.remove(m.calls, m.host, m.order.Name); err != nil {
		m.say("kvm create leaves something behind", err)
	}
}
