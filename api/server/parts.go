package server

import (
	"sync"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
)

// partBytes bound the documents that one list keeps for those who ask for a part of it.
// There are two lists at most, for a moment.
const partBytes = 8 << 20

// part is a question about a list that has one answer.
type part struct {
	format discovery.Format
	wishes wishes
	limit  int
	grant  *access.Grant // nil: one that sees everything
}

// partOf names what a query wants, as wished for by a token.
func partOf(q query, w wishes, grant *access.Grant) part {
	of := part{format: q.format, wishes: w, limit: q.limit}
	if grant.Restricted() {
		of.grant = grant
	}
	return of
}

// parts keep the answers about one list, which is never changed: clients ask the same
// thing over and over.
type parts struct {
	mu    sync.Mutex
	kept  map[part]func() (discovery.Document, error)
	bytes int
}

func newParts() *parts { return &parts{kept: map[part]func() (discovery.Document, error){}} }

// document returns the answer to a question. It is made once, also for those who ask at
// the same time, as long as there is room.
func (p *parts) document(of part, render func() (discovery.Document, error)) (discovery.Document, error) {
	p.mu.Lock()
	made, known := p.kept[of]
	if !known {
		if p.bytes >= partBytes {
			p.mu.Unlock()
			return render()
		}
		made = sync.OnceValues(func() (discovery.Document, error) {
			document, err := render()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.bytes += len(document.Body)
			return document, err
		})
		p.bytes += questionBytes
		p.kept[of] = made
	}
	p.mu.Unlock()
	return made()
}

// questionBytes are about what a question takes by itself, so that many with short
// answers are bounded, too: a selector may have some kilobytes.
const questionBytes = 8 << 10
