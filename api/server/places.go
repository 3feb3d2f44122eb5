package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/egressfleet/egressfleet/api/access"
)

const (
	// allPlaces are how many may wait at one time: each is a goroutine and a connection.
	allPlaces = 1000
	// ownPlaces are those of one token, so that four have to get out of hand before the
	// others are sent away.
	ownPlaces = 250
)

// places are taken by those who wait. The zero value has them all free.
type places struct {
	lock sync.Mutex
	all  int
	// own are by grant and not by name: where no tokens are asked for, every request has a
	// grant of its own, and one bound holds for all.
	own map[*access.Grant]int
}

// take gives the token of a request a place until leave is called, or says why there is none.
func (p *places) take(ctx context.Context) (leave func(), err error) {
	grant := access.Of(ctx)
	p.lock.Lock()
	defer p.lock.Unlock()
	if full := noPlace(grant.Name, p.all, p.own[grant]); full != nil {
		return nil, full
	}
	if p.own == nil {
		p.own = map[*access.Grant]int{}
	}
	p.all++
	p.own[grant]++
	return func() { p.free(grant) }, nil
}

func (p *places) free(grant *access.Grant) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.all--
	if p.own[grant]--; p.own[grant] == 0 {
		delete(p.own, grant)
	}
}

func (p *places) taken() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.all
}

// noPlace decides whether one more may wait, where so many do, and so many of the same
// token. Who has its own share is told so first: that is nobody else's doing.
func noPlace(name string, all, own int) error {
	switch {
	case own >= ownPlaces:
		return &problem{kind: tooManyRequests, detail: fmt.Sprintf(
			"the token %s waits for changes %d times already, which is as often as one may; end some, or ask without wait",
			name, own)}
	case all >= allPlaces:
		return &problem{kind: unavailable, detail: fmt.Sprintf(
			"%d clients wait for changes already, which is as many as may; try again, or ask without wait", all)}
	default:
		return nil
	}
}

// over is the end of a wait whose token is another one now, or none.
func over(grant *access.Grant) error {
	if !grant.Removed() {
		return nil // the next request is answered by what it may now
	}
	return &problem{kind: unauthenticated, detail: "the token " + grant.Name + " was taken away meanwhile"}
}
