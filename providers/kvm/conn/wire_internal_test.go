package conn

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// silent is a bridge that can be read to its end.
type silent struct{ io.Reader }

func (silent) Write(p []byte) (int, error) { return len(p), nil }
func (silent) Close() error                { return nil }

// TestEndAfterTheOpening: libvirt's client learns of the end when it is ready for it, everybody
// else at once; before libvirt has answered nothing is held back.
func TestEndAfterTheOpening(t *testing.T) {
	t.Parallel()
	opening := []byte(frame(typeReply, statusOK, 1, ""))
	opening[15] = procConnectOpen
	for name, c := range map[string]struct {
		comes string
		waits bool
	}{
		"after the answer to the opening": {string(opening), true},
		"after another answer":            {frame(typeReply, statusOK, 1, ""), false},
		"at once":                         {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				over, learned := false, false
				w := newWire(silent{strings.NewReader(c.comes)}, func(error) { over = true })
				go func() {
					_, _ = io.Copy(io.Discard, w)
					learned = true
				}()
				synctest.Wait()
				require.True(t, over)
				require.Equal(t, !c.waits, learned)
				close(w.ready)
				synctest.Wait()
				require.True(t, learned)
			})
		})
	}
}
