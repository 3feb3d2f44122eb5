package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/starter/terminal"
)

const (
	// slow is what is waited for in silence.
	slow = 2 * time.Second
	// progressTick is how often a terminal's line is drawn again.
	progressTick = time.Second
	// newsEvery and sameEvery are how far apart two lines are where there is no terminal:
	// with something new to say, and with nothing.
	newsEvery = 5 * time.Second
	sameEvery = 30 * time.Second
)

// teller says on the standard error what a command waits for.
type teller struct {
	to     io.Writer
	screen func() terminal.Screen

	mu    sync.Mutex
	what  string
	drawn bool // a terminal's line stands there
	began time.Time
	said  utterance
}

// utterance is the line that was said last; the zero one where none was.
type utterance struct {
	what string
	at   time.Time
}

// slowly begins to tell what a command waits for. The function that it returns ends it.
func (a *app) slowly(first string) (stop func()) {
	p := &a.teller
	p.mu.Lock()
	p.what, p.began, p.said = first, a.Now(), utterance{}
	p.mu.Unlock()
	ticks, end := a.Every(progressTick)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case now := <-ticks:
				p.tick(now)
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		end()
		p.aside(func() {})
	}
}

// step says what is waited for from now on; "" is nothing.
func (a *app) step(format string, args ...any) {
	a.teller.mu.Lock()
	defer a.teller.mu.Unlock()
	if a.teller.what == "" {
		a.teller.began = a.Now()
	}
	a.teller.what = terminal.Clean(fmt.Sprintf(format, args...))
}

// aside does what writes to the same terminal, and removes the line before it.
func (p *teller) aside(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		_, _ = io.WriteString(p.to, terminal.Erase)
		p.drawn = false
	}
	do()
}

func (p *teller) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var screen terminal.Screen
	if p.screen != nil {
		screen = p.screen()
	}
	if p.what == "" {
		return
	}
	waited := now.Sub(p.began)
	text := fmt.Sprintf("%s (%s)", p.what, waited.Round(time.Second))
	switch {
	case screen.Width > 0 && waited >= slow:
		_, _ = io.WriteString(p.to, terminal.Erase+screen.Cut(text))
		p.drawn = true
	case screen.Width == 0 && p.said.due(p.what, waited, now):
		_, _ = io.WriteString(p.to, text+"\n")
		p.said = utterance{p.what, now}
	}
}

// due reports whether a line is said where there is no terminal. It is pure.
func (u utterance) due(what string, waited time.Duration, now time.Time) bool {
	switch {
	case waited < slow:
		return false
	case u.at.IsZero():
		return true
	case u.what != what:
		return now.Sub(u.at) >= newsEvery
	default:
		return now.Sub(u.at) >= sameEvery
	}
}
