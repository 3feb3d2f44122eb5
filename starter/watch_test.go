package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/starter/terminal"
)

// changing is a fleet that is another one at each look; after the last it is interrupted.
type changing struct {
	*fakeFleet
	looks     []func(*fakeFleet) error
	interrupt context.CancelFunc
}

func (c *changing) List(ctx context.Context, namespace string) ([]v1.Proxy, error) {
	if len(c.looks) == 0 {
		c.interrupt()
		return nil, ctx.Err()
	}
	look := c.looks[0]
	c.looks = c.looks[1:]
	if err := look(c.fakeFleet); err != nil {
		return nil, err
	}
	return c.fakeFleet.List(ctx, namespace)
}

func watching(t *testing.T, screen terminal.Screen, looks ...func(*fakeFleet) error) (out, errOut string, code int) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	f := &changing{fakeFleet: fleetOfThree(), looks: looks, interrupt: interrupt}
	var o, e bytes.Buffer
	at := func() terminal.Screen { return screen }
	cmd := NewCommand(Streams{In: strings.NewReader(""), Out: &o, Err: &e, OutScreen: at}, Outside{
		Connect: func(context.Context, Temporal) (Fleet, func(), error) { return f, func() {}, nil },
		Now:     func() time.Time { return noon },
		Every:   alwaysDue,
	})
	cmd.SetArgs([]string{"get", "--watch"})
	code = ExitCode(&e, cmd.ExecuteContext(ctx))
	return o.String(), e.String(), code
}

// alwaysDue is a clock on which every look is due.
func alwaysDue(time.Duration) (<-chan time.Time, func()) {
	due := make(chan time.Time, 1<<10)
	for range cap(due) {
		due <- noon
	}
	return due, func() {}
}

func same(*fakeFleet) error { return nil }

func released(f *fakeFleet) error {
	f.proxies[0].Status.Held = false
	f.proxies[0].Status.Conditions = nil
	return nil
}

func ended(f *fakeFleet) error {
	f.proxies = f.proxies[1:]
	return nil
}

func away(*fakeFleet) error { return fmt.Errorf("%w: no route", fleet.ErrUnavailable) }

func TestWatchTellsWhatHasChanged(t *testing.T) {
	t.Parallel()
	out, errOut, code := watching(t, terminal.Screen{}, same, same, released, away, away, ended)
	require.Zero(t, code)
	require.Equal(t, `NAME   PROVIDER  PHASE    ADDRESS        REASON         AGE
runs   gcp       Running  10.1.2.3:3128  Refused        1h
waits  gcp       Pending  -              QuotaExceeded  2d
runs  gcp       Running  10.1.2.3:3128  -       1h
runs  gcp       Gone   -        -       1h
`, out)
	require.Equal(t, "starter: the fleet is unavailable: no route; looking again\n", errOut, "once")
}

func TestWatchDrawsATerminalAnew(t *testing.T) {
	t.Parallel()
	out, _, code := watching(t, terminal.Screen{Width: 48, Height: 6}, same, away)
	require.Zero(t, code)
	require.Equal(t, terminal.Blank+strings.ReplaceAll(`NAME   PHASE    ADDRESS        REASON
runs   Running  10.1.2.3:3128  Refused
waits  Pending  -              QuotaExceeded

every 2s; Ctrl-C ends it
`, "\n", terminal.EndOfLine+"\n")+terminal.Rest, out[:strings.LastIndex(out, terminal.Home)])
	require.Contains(t, out, "the fleet is unavailable: no route"+terminal.EndOfLine)

	out, _, _ = watching(t, terminal.Screen{Width: 48, Height: 5}, same)
	require.Contains(t, out, "and 1 more"+terminal.EndOfLine+"\n", "no more than there are lines")
}

func TestWatchEndsAtWhatWaitingDoesNotMend(t *testing.T) {
	t.Parallel()
	_, errOut, code := watching(t, terminal.Screen{}, func(*fakeFleet) error { return errors.New("no key") })
	require.Equal(t, exitFailure, code)
	require.Equal(t, "starter: no key\n", errOut)
}

func TestWatchIsForPeople(t *testing.T) {
	t.Parallel()
	_, errOut, code := run(t.Context(), fleetOfThree(), "", "get", "--watch", "-o", "json")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, `--watch goes with the outputs table and wide, not with "json"`)
}
