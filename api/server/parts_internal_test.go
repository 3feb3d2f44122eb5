package server

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/discovery"
)

func TestAPartOfAListIsMadeOnce(t *testing.T) {
	t.Parallel()
	p := newParts()
	var made atomic.Int64
	ask := func(limit int) string {
		document, err := p.document(part{limit: limit}, func() (discovery.Document, error) {
			made.Add(1)
			return discovery.Document{Body: []byte(strings.Repeat("x", limit))}, nil
		})
		require.NoError(t, err)
		return string(document.Body)
	}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { ask(1); ask(2) })
	}
	group.Wait()
	require.EqualValues(t, 2, made.Load())
	require.Equal(t, []string{"x", "xx"}, []string{ask(1), ask(2)})
}

func TestOnlySoManyBytesOfPartsAreKept(t *testing.T) {
	t.Parallel()
	p := newParts()
	made := 0
	ask := func(limit, size int) {
		document, err := p.document(part{limit: limit}, func() (discovery.Document, error) {
			made++
			return discovery.Document{Body: make([]byte, size)}, nil
		})
		require.NoError(t, err)
		require.Len(t, document.Body, size, "it is answered all the same")
	}
	for range 2 {
		ask(1, partBytes)
		ask(2, 1)
	}
	require.Equal(t, 3, made, "the first is kept, and there is no room for the second")

	p = newParts()
	for limit := range 2 * partBytes / questionBytes {
		ask(limit, 0)
	}
	require.Len(t, p.kept, partBytes/questionBytes, "nor for many questions without an answer")
}
