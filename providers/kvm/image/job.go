package image

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// job is one fetch of one entry to one host.
type job struct {
	fetcher *Fetcher
	host    Host
	entry   Entry
	key     string // of host, pool and volume
	word    string // of this job's own mark
	report  providers.ProgressFunc
}

func word() string { return strings.ToLower(rand.Text()[:12]) }

// run is a span: fetching takes minutes, and a create waits for it.
func (j *job) run(ctx context.Context) error {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("providers/kvm/image")
	ctx, span := tracer.Start(ctx, "kvm.image", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("kvm.host", j.host.Name), attribute.String("kvm.image", j.entry.Name),
		attribute.String("kvm.volume", j.entry.Volume())))
	defer span.End()
	select {
	case j.fetcher.slots <- struct{}{}:
		defer func() { <-j.fetcher.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := j.work(ctx)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	providers.Logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "image", slog.String("host", j.host.Name),
		slog.String("image", j.entry.Name), slog.String("volume", j.entry.Volume()), slog.Any("error", err))
	return err
}

// work looks, takes its turn, and does what is left to do.
func (j *job) work(ctx context.Context) error {
	for {
		found, err := ask(ctx, j.host, func(api API) (bool, error) {
			_, found, err := Find(ctx, api, j.host.Pool, j.entry)
			return found, err
		})
		if err != nil || found {
			return err
		}
		other, err := j.claim(ctx)
		if err != nil {
			return err
		}
		if other == "" {
			return errors.Join(j.fetch(ctx), j.release(ctx))
		}
		if err := j.wait(ctx, other); err != nil {
			return err
		}
	}
}

// fetch fills the volume, reads it back and marks it. What came in parts may be parts
// of two contents, also of an earlier process: then it is fetched once more, at once.
func (j *job) fetch(ctx context.Context) error {
	for again := false; ; again = true {
		sent, err := j.fill(ctx)
		if err != nil {
			return err
		}
		read := sent // a whole stream that is wrong need not be read back
		if sent == "" || j.right(sent) {
			if read, err = j.readBack(ctx); err != nil {
				return err
			}
		}
		if j.right(read) {
			return j.publish(ctx)
		}
		if err := j.discard(ctx); err != nil {
			return err
		}
		switch {
		case j.right(sent):
			return j.entry.fail(providers.ErrTransient, "on host %s: SHA-256 %s was stored where %s was sent; "+
				"look at the pool's disk", j.host.Name, read, sent)
		case sent != "" || again:
			return j.entry.fail(providers.ErrPermanent, "its SHA-256 is %s, and the image's sha256 says %s: correct "+
				"the one or the other", read, strings.ToLower(j.entry.SHA256))
		}
	}
}

func (j *job) right(digest string) bool { return strings.EqualFold(digest, j.entry.SHA256) }

// readBack returns the digest of what the pool gives back: an upload to a full disk can
// report success.
func (j *job) readBack(ctx context.Context) (string, error) {
	ctx, alive, stop := watchdog(ctx)
	defer stop()
	digest, err := ask(ctx, j.host, func(api API) (string, error) {
		volume, found, err := lookup(api, j.host.Pool, j.entry.Volume())
		if err != nil || !found {
			return "", errors.Join(err, errTakenOver)
		}
		size, err := stored(api, volume)
		if err != nil {
			return "", err
		}
		sum := &digester{Hash: sha256.New(), alive: alive, ended: ctx.Err, tell: func(done int64) {
			j.report(done, size, "reading back image "+j.entry.Name)
		}}
		if err := api.StorageVolDownload(volume, sum, 0, uint64(size), 0); err != nil { //nolint:gosec // not negative
			return "", err
		}
		return hex.EncodeToString(sum.Sum(nil)), nil
	})
	return digest, j.moved(ctx, err)
}

// publish makes the volume one that Find finds.
func (j *job) publish(ctx context.Context) error {
	j.fetcher.remember(j.key, "")
	return j.host.Do(ctx, func(api API) error {
		_, _, err := create(api, j.host.Pool, j.entry.Volume()+complete)
		return err
	})
}

// discard removes what was written, so that it takes no room and nothing is added to it.
func (j *job) discard(ctx context.Context) error {
	j.fetcher.remember(j.key, "")
	return j.host.Do(ctx, func(api API) error {
		if err := j.mine(api); err != nil {
			return err
		}
		return remove(api, j.host.Pool, j.entry.Volume())
	})
}
