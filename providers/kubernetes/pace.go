package kubernetes

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/flowcontrol"
)

// pace bounds the requests of a provider, and says by which keys.
type pace struct{ flowcontrol.RateLimiter }

func newPace(qps float32, burst int) pace {
	return pace{flowcontrol.NewTokenBucketRateLimiter(qps, burst)}
}

// Wait waits for the turn of a request. One that would come after the deadline of ctx is
// an error at once: the deadline will pass, and the library does not call it by its name.
func (p pace) Wait(ctx context.Context) error {
	err := p.RateLimiter.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("more requests than qps and burst allow: %w: %w", context.DeadlineExceeded, err)
	}
	return err
}
