// Command static is what small images hold, without a distribution: `static pause` holds
// the namespaces of a Pod, and `static proxy` is a forward proxy on :3128 that only
// CONNECTs. A proxy that is asked for /eat takes memory until somebody ends it.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "pause" {
		pause(ctx)
		return
	}
	if err := serve(ctx); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// pause waits for its end, and buries what its Pod's processes leave behind.
func pause(ctx context.Context) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-ctx.Done():
			return
		case <-children:
			for pid := 1; pid > 0; {
				pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil) // none is left
			}
		}
	}
}

func serve(ctx context.Context) error {
	s := &http.Server{Addr: ":3128", Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute}
	go func() { <-ctx.Done(); _ = s.Close() }()
	return s.ListenAndServe()
}

func answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		connect(w, r)
	case r.URL.Path == "/eat":
		eat()
	default:
		_, _ = io.WriteString(w, "ok")
	}
}

func connect(w http.ResponseWriter, r *http.Request) {
	up, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer up.Close()
	down, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer down.Close()
	_, _ = io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n") // the copies find out
	go func() { _, _ = io.Copy(up, buffered); _ = up.Close() }()
	_, _ = io.Copy(down, up)
}

// eat touches more memory than any limit allows.
func eat() {
	var all [][]byte
	for {
		piece := make([]byte, 1<<20)
		for i := range piece {
			piece[i] = 1
		}
		all = append(all, piece)
		if len(all) > 1<<20 {
			return
		}
	}
}
