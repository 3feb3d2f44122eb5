package kubernetes

import (
	"context"
	"crypto/sha256"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Impatient makes every call of a provider end soon.
func Impatient(p *Provider, within time.Duration) { p.callTime = within }

// Watch shows the context of every later call.
func Watch(p *Provider, see func(context.Context)) { p.connection = watching{p.connection, see} }

type watching struct {
	connection
	see func(context.Context)
}

func (w watching) client(ctx context.Context) (kubernetes.Interface, [sha256.Size]byte, error) {
	w.see(ctx)
	return w.connection.client(ctx)
}
