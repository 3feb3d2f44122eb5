package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

const (
	// drainPatience is how long drain waits unless told otherwise.
	drainPatience = 30 * time.Minute
	// drainPause is between two looks at what is left, and settlePause before the look
	// after proxies have ended: Visibility lags.
	drainPause  = 2 * time.Second
	settlePause = 50 * time.Millisecond
	// drainsAtOnce is how many proxies are told at a time.
	drainsAtOnce = 8
)

const drainHelp = `Delete every proxy of a provider, or of all, in every namespace, and wait until their
workflows have ended and their backends list nothing of this installation any more.

It deletes nothing without --yes: it only says what it would delete. It exits with an
error where something is left after --timeout, and lists it. An instance that nobody owns
is left, too: "starter gc run" deletes what is proven to be an orphan. Proxies that are
made meanwhile are deleted as well; stop whoever applies them first.`

type drainOptions struct {
	providers []string
	all, yes  bool
	timeout   time.Duration
	reason    string
}

func (a *app) drainCommand() *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use:   "drain {--provider NAME | --all} --yes",
		Short: "Delete every proxy of a provider, and wait until nothing is left",
		Long:  drainHelp, Args: exactly(0),
		Example: "  starter drain --provider gcp\n  starter drain --provider gcp --yes --reason \"the project is closed\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.CommandPath()); err != nil {
				return err
			}
			return a.withFleet(cmd.Context(), func(ctx context.Context, f Fleet) error {
				return a.drain(ctx, &drainage{Fleet: f, app: a, drainOptions: o, asked: map[string]bool{}})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.providers, "provider", nil, "the proxies of these providers")
	flags.BoolVar(&o.all, "all", false, "the proxies of every provider")
	flags.BoolVar(&o.yes, "yes", false, "delete them; otherwise only say which they are")
	flags.DurationVar(&o.timeout, "timeout", drainPatience, "how long to wait until nothing is left")
	reasonFlag(cmd, &o.reason)
	return cmd
}

func (o drainOptions) check(command string) error {
	switch {
	case o.all == (len(o.providers) > 0):
		return usagef("%s: give either --provider or --all", command)
	case o.timeout <= 0:
		return usagef("%s: --timeout: %q is not longer than nothing", command, o.timeout)
	}
	for _, name := range o.providers {
		if !v1.IsName(name) {
			return usagef("%s: --provider: %q is not a DNS label", command, name)
		}
	}
	if err := (v1.Why{Reason: o.reason}).Validate(); err != nil {
		return usagef("%s: --%w", command, err)
	}
	return nil
}

// drainage is one run of drain.
type drainage struct {
	Fleet
	*app
	drainOptions
	asked map[string]bool // the UIDs that were asked to end
	left  remains         // what was there at the last look
}

// remains are the proxies that have not ended and, once there are none, what the backends
// list.
type remains struct {
	Proxies []v1.Proxy `json:"proxies"`
	Sweeps  []gc.Sweep `json:"sweeps,omitempty"`
	Error   string     `json:"error,omitempty"` // why it could not be looked
	fault   error
}

func (a *app) drain(ctx context.Context, d *drainage) error {
	within, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if !d.yes {
		return d.onlySay(within)
	}
	for {
		d.look(within)
		if d.left.nothing() {
			return d.told("nothing is left\n", nil)
		}
		if name, unknown := d.left.unknown(); unknown {
			return d.told(d.left.text(a.view()), fmt.Errorf("drain: --provider: %q: no worker knows a provider of that name, "+
				"so what is left there cannot be listed", name))
		}
		d.step("%s", d.left.waitedFor())
		select {
		case <-within.Done():
			return d.told(d.left.text(a.view()),
				timeoutf("drain: after %s something is left, or could not be looked for", d.timeout))
		case <-d.After(d.left.pause()):
		}
	}
}

func (d *drainage) told(text string, err error) error {
	d.left.Proxies = append([]v1.Proxy{}, d.left.Proxies...)
	for i := range d.left.Proxies {
		d.left.Proxies[i].Spec = d.left.Proxies[i].Spec.Redacted()
	}
	if d.left.fault != nil {
		d.left.Error = d.left.fault.Error()
	}
	return errors.Join(d.printOr(d.left, text), err)
}

func (d *drainage) onlySay(ctx context.Context) error {
	proxies, err := d.theirs(ctx)
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	d.left.Proxies = proxies
	return d.told(table(d.view().everywhere(), proxies),
		fmt.Errorf("drain: nothing was deleted; --yes deletes these, %d in all, and what belongs to them", len(proxies)))
}

// theirs are the proxies to delete, of every namespace.
func (d *drainage) theirs(ctx context.Context) ([]v1.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := d.List(ctx, "")
	return slices.DeleteFunc(all, func(p v1.Proxy) bool {
		return !d.all && !slices.Contains(d.providers, p.Spec.Provider)
	}), err
}

// look deletes what there is, waits for it, and looks at the backends once no proxy is
// listed. What it finds replaces what was left before; a look that was cut off does not.
func (d *drainage) look(ctx context.Context) {
	proxies, err := d.theirs(ctx)
	if err != nil {
		d.left.fault = err
		return
	}
	if len(proxies) > 0 {
		d.step("telling %d proxies to end", len(proxies))
		d.left = remains{Proxies: proxies, fault: d.deleteAll(ctx, proxies)}
		d.waitAll(ctx, proxies)
		return
	}
	if !slices.ContainsFunc(d.left.Sweeps, func(s gc.Sweep) bool { return s.Listed > 0 }) { // or that is what is told
		d.step("asking the backends what is left")
	}
	s := fleet.OrphanGC()
	s.ID, s.Summary = s.ID+"/drain", "list what is left"
	var r gc.Result
	err = d.RunSweep(ctx, s, gc.Input{Providers: d.providers, Plan: true, Everything: true}, &r)
	again, unlisted := d.theirs(ctx) // Visibility lags: one may have come that was not listed before
	d.left = remains{Proxies: again, Sweeps: r.Sweeps, fault: errors.Join(err, unlisted)}
}

// deleteAll asks each proxy once.
func (d *drainage) deleteAll(ctx context.Context, proxies []v1.Proxy) error {
	faults := make([]error, len(proxies))
	var group errgroup.Group
	group.SetLimit(drainsAtOnce)
	for i, p := range proxies {
		if d.asked[p.Metadata.UID] {
			continue
		}
		group.Go(func() error {
			faults[i] = d.deleteOne(ctx, p)
			return nil
		})
	}
	_ = group.Wait()
	for i, p := range proxies {
		d.asked[p.Metadata.UID] = faults[i] == nil
	}
	return errors.Join(faults...)
}

func (d *drainage) deleteOne(ctx context.Context, p v1.Proxy) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := d.Delete(ctx, p.Metadata.Namespace, p.Metadata.Name, d.reason, fleet.Request{})
	if err != nil && !errors.Is(err, fleet.ErrNotFound) {
		return fmt.Errorf("delete %s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err)
	}
	return nil
}

// waitAll waits until the workflows have ended. What one has left behind is told by the
// backend.
func (d *drainage) waitAll(ctx context.Context, proxies []v1.Proxy) {
	for i, p := range proxies {
		d.step("waiting until %s/%s is gone, %d of %d", p.Metadata.Namespace, p.Metadata.Name, i+1, len(proxies))
		err := d.WaitGone(ctx, p.Metadata.Namespace, p.Metadata.Name)
		if err != nil && ctx.Err() != nil {
			return // the proxy itself is what is left
		}
	}
}

func (r remains) pause() time.Duration {
	if len(r.Proxies) > 0 && r.fault == nil {
		return settlePause
	}
	return drainPause
}

// unknown names a provider that waiting does not make known.
func (r remains) unknown() (string, bool) {
	for _, s := range r.Sweeps {
		if s.Fault != nil && s.Fault.Reason == v1.ReasonProviderNotConfigured {
			return s.Provider, true
		}
	}
	return "", false
}

func (r remains) nothing() bool {
	return r.fault == nil && len(r.Proxies) == 0 && !slices.ContainsFunc(r.Sweeps, func(s gc.Sweep) bool {
		return s.Fault != nil || s.Listed > 0 || len(s.Omitted) > 0
	})
}

// waitedFor says in a line what drain waits for between two looks. Instances that no
// proxy has, as --skip-cleanup leaves them, go with their backend's or with orphan
// collection, and that takes its time.
func (r remains) waitedFor() string {
	listed := []string{}
	for _, s := range r.Sweeps {
		switch {
		case s.Fault != nil:
			listed = append(listed, fmt.Sprintf("%s cannot be listed: %s", s.Provider, s.Fault.Text))
		case s.Listed > 0:
			listed = append(listed, fmt.Sprintf("%s still lists %d", s.Provider, s.Listed))
		case len(s.Omitted) > 0:
			listed = append(listed, fmt.Sprintf("%s could not list %s", s.Provider, strings.Join(s.Omitted, ", ")))
		}
	}
	switch {
	case r.fault != nil:
		return "looking again, since: " + r.fault.Error()
	case len(r.Proxies) > 0:
		return fmt.Sprintf("looking whether %d proxies have ended", len(r.Proxies))
	case len(listed) > 0:
		return strings.Join(listed, "; ") + "; no proxy has them: orphan collection deletes what is proven, " +
			"\"starter gc plan\" says what and why"
	default:
		return "asking the backends what is left"
	}
}

// text lists what is left, and why it could not be looked for more.
func (r remains) text(v view) string {
	var b strings.Builder
	if len(r.Proxies) > 0 {
		b.WriteString(table(v.everywhere(), r.Proxies))
	}
	if len(r.Sweeps) > 0 {
		b.WriteString(sweepTable(v, gc.Result{Sweeps: r.Sweeps}, true))
	}
	if r.fault != nil {
		fmt.Fprintf(&b, "%s\n", oneLine(r.fault.Error()))
	}
	return b.String()
}
