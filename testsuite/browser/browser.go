// Package browser is a real Chromium for tests: it opens pages, presses keys, takes
// pictures, and keeps what it complained about. It imports chromedp. Start reading at Open.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Options say how a browser is.
type Options struct {
	Dark          bool
	NoScripts     bool
	Width, Height int64 // 1440 and 900 where they are 0
}

const (
	width, height = 1440, 900
	// patience bounds a whole test in a browser; the machine may be busy.
	patience = time.Minute
	// mostKeys is how often Tab is pressed before something counts as out of reach.
	mostKeys = 300
	// look is between two looks at what is coming up.
	look = 50 * time.Millisecond
)

var serious = []chromedp.ConsoleType{chromedp.ConsoleError, chromedp.ConsoleWarning, chromedp.ConsoleException}

// Window is one browser with one page.
type Window struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the browser in it

	mu         sync.Mutex
	complaints []string
}

// Open starts a browser, which ends when closes is called. An error says what to install.
func Open(ctx context.Context, o Options) (w *Window, closes func(), err error) {
	path, err := find()
	if err != nil {
		return nil, nil, err
	}
	if o.Width == 0 {
		o.Width, o.Height = width, height
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(int(o.Width), int(o.Height)),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	)
	ctx, cancel := context.WithTimeout(ctx, patience)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancelContext := chromedp.NewContext(ctx)
	closes = func() { cancelContext(); cancelAllocator(); cancel() }
	w = &Window{ctx: ctx}
	if err := w.prepare(o); err != nil {
		closes()
		return nil, nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return w, closes, nil
}

// find returns the browser of the machine.
func find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is not installed; on Debian: apt-get install -y --no-install-recommends chromium")
}

func (w *Window) prepare(o Options) error {
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(w.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: o.Width, Height: o.Height, DeviceScaleFactor: 1,
	})
	if err != nil {
		return err
	}
	_, err = chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	if err != nil {
		return err
	}
	console := chromedp.Console(w.ctx)
	go func() {
		for message, err := range console {
			if err != nil {
				return
			}
			if slices.Contains(serious, message.Type) {
				w.complain(fmt.Sprintf("%s: %s (%s)", message.Type, message.Text, message.URL))
			}
		}
	}()
	_, err = chromedp.Call(w.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: o.NoScripts})
	return err
}

func (w *Window) complain(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complaints = append(w.complaints, text)
}

// Complaints are what the browser said was wrong so far: a style that was refused, a
// script that failed, a file that did not come.
func (w *Window) Complaints() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.complaints)
}

// Go opens an address and waits until it is loaded.
func (w *Window) Go(address string) error { return chromedp.Do(w.ctx, chromedp.Navigate(address)) }

// Eval is what an expression of JavaScript comes to.
func Eval[T any](w *Window, expression string) (T, error) {
	return chromedp.Run(w.ctx, chromedp.Evaluate[T](expression))
}

// Until waits until an expression is true.
func (w *Window) Until(expression string) error {
	for {
		if is, err := Eval[bool](w, expression); err == nil && is {
			return nil
		}
		select {
		case <-w.ctx.Done():
			text, _ := chromedp.Run(context.WithoutCancel(w.ctx), chromedp.Evaluate[string]("document.body.innerText"))
			return fmt.Errorf("%s never was: %w; the page says: %s", expression, w.ctx.Err(), text)
		case <-time.After(look): // a page that is being left cannot be asked
		}
	}
}

// TabTo presses Tab until what a selector finds has the focus.
func (w *Window) TabTo(selector string) error {
	for range mostKeys {
		if there, err := Eval[bool](w, fmt.Sprintf("document.activeElement.matches(%q)", selector)); err != nil || there {
			return err
		}
		if err := w.Press(kb.Tab); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s cannot be reached by the keyboard", selector)
}

// Press sends keys, as a person types them.
func (w *Window) Press(keys string) error { return chromedp.Do(w.ctx, chromedp.KeyEvent(keys)) }

// Picture keeps what the window shows as name.png in a folder; whole takes all of a page
// that is longer.
func (w *Window) Picture(dir, name string, whole bool) error {
	take := chromedp.CaptureScreenshot()
	if whole {
		const best = 100
		take = chromedp.FullScreenshot(best)
	}
	png, err := chromedp.Run(w.ctx, take)
	if err != nil {
		return err
	}
	const dirMode, fileMode = 0o755, 0o644
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".png"), png, fileMode)
}
