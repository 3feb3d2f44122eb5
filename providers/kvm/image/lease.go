package image

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// fetching is within the name of the empty volume of whoever writes a volume; a word of
// its own ends it. One writes at a time, of all processes that use the pool: each makes
// its mark and then looks, and gives way if another mark is there, so that two never
// both go on. A mark whose owner is gone is removed by whoever has seen the volume not
// grow for staleAfter. An owner that was only slow finds its mark gone before it writes
// or deletes anything more, and leaves.
const fetching = ".fetching-"

const (
	// staleAfter is longer than an owner goes on without a byte (stallAfter).
	staleAfter = 3 * time.Minute
	// leasePoll is at most how long one waits between two looks at another's work.
	leasePoll = 5 * time.Second
	// releaseWithin bounds the last call of a fetch that was cut off.
	releaseWithin = 10 * time.Second
)

func (j *job) mark() string { return j.entry.Volume() + fetching + j.word }

// claim returns "" once this job alone may write, or else the mark of another one.
func (j *job) claim(ctx context.Context) (other string, err error) {
	return ask(ctx, j.host, func(api API) (string, error) {
		if other, err := j.others(api); other != "" || err != nil {
			return other, err
		}
		if _, _, err := create(api, j.host.Pool, j.mark()); err != nil {
			return "", err
		}
		other, err := j.others(api)
		if other != "" {
			err = remove(api, j.host.Pool, j.mark())
		}
		return other, err
	})
}

func (j *job) others(api API) (string, error) {
	marks, err := names(api, j.host.Pool, j.entry.Volume()+fetching)
	marks = slices.DeleteFunc(marks, func(name string) bool { return name == j.mark() })
	if err != nil || len(marks) == 0 {
		return "", err
	}
	return marks[0], nil
}

// mine fails when somebody else has taken over.
func (j *job) mine(api API) error {
	_, found, err := lookup(api, j.host.Pool, j.mark())
	if err == nil && !found {
		return errTakenOver
	}
	return err
}

// release lets others in, also after ctx has ended.
func (j *job) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	return j.host.Do(ctx, func(api API) error { return remove(api, j.host.Pool, j.mark()) })
}

// wait returns when another one's mark is gone, and removes it once the volume has not
// grown for staleAfter.
func (j *job) wait(ctx context.Context, other string) error {
	size, since := int64(-1), time.Now()
	for {
		now, err := j.look(ctx, other)
		if err != nil || now < 0 {
			return err
		}
		if now != size {
			size, since = now, time.Now()
		}
		if time.Since(since) >= staleAfter {
			return j.host.Do(ctx, func(api API) error { return remove(api, j.host.Pool, other) })
		}
		j.report(now, 0, "image "+j.entry.Name+", which another worker fetches")
		between := leasePoll/2 + rand.N(leasePoll/2) //nolint:gosec // no secret: two that meet shall part
		if err := pause(ctx, between); err != nil {
			return err
		}
	}
}

// look returns how much another one has written, or -1 when its mark is gone.
func (j *job) look(ctx context.Context, other string) (int64, error) {
	return ask(ctx, j.host, func(api API) (int64, error) {
		if _, found, err := lookup(api, j.host.Pool, other); err != nil || !found {
			return -1, err
		}
		volume, found, err := lookup(api, j.host.Pool, j.entry.Volume())
		if err != nil || !found {
			return 0, err
		}
		return stored(api, volume)
	})
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask returns what one use of the connection found. What it found is handed over and
// not shared: Do may leave a use that is stuck.
func ask[T any](ctx context.Context, host Host, use func(API) (T, error)) (T, error) {
	found := make(chan T, 1)
	err := host.Do(ctx, func(api API) error {
		value, err := use(api)
		found <- value
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-found, nil
}
