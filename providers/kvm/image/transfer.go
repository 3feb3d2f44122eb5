package image

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
)

// fill stores the rest of the image, as long as some of it arrives. It returns the
// digest of what was sent, or "" when that came in parts.
func (j *job) fill(ctx context.Context) (sent string, err error) {
	for {
		to, err := ask(ctx, j.host, j.target)
		if err != nil {
			return "", err
		}
		sent, err := j.part(ctx, to)
		if !errors.Is(err, errCutOff) {
			return sent, err
		}
		now, lookErr := ask(ctx, j.host, j.target)
		begun := now.have == 0 && to.have > 0 // what was there was of no use, and is gone
		if lookErr != nil || now.have <= to.have && !begun {
			return "", errors.Join(j.entry.fail(providers.ErrTransient, "on host %s: %w", j.host.Name, err), lookErr)
		}
	}
}

// volume is what a job writes to, and how much of it is there.
type volume struct {
	libvirt.StorageVol
	have int64
}

// errCutOff says of a part that its source did not give all of it.
var errCutOff = errors.New("cut off")

// target returns the volume, which is made when it is not there.
func (j *job) target(api API) (volume, error) {
	if err := j.mine(api); err != nil {
		return volume{}, err
	}
	found, there, err := lookup(api, j.host.Pool, j.entry.Volume())
	if err != nil {
		return volume{}, err
	}
	if !there {
		// A mark without a volume is of one that somebody has deleted.
		if err := remove(api, j.host.Pool, j.entry.Volume()+complete); err != nil {
			return volume{}, err
		}
		if found, _, err = create(api, j.host.Pool, j.entry.Volume()); err != nil {
			return volume{}, err
		}
	}
	have, err := stored(api, found)
	return volume{StorageVol: found, have: have}, err
}

// part stores the image from where the volume ends, or from the beginning where that is
// all that can be had. With a nil error all of it is there.
func (j *job) part(ctx context.Context, to volume) (sent string, err error) {
	moving, alive, stop := watchdog(ctx)
	defer stop()
	from, err := open(moving, j.fetcher.client, j.entry, to.have, j.fetcher.validator(j.key))
	if errors.Is(err, errShorter) {
		return "", errors.Join(errCutOff, j.discard(ctx))
	}
	if err != nil {
		return "", j.moved(moving, err)
	}
	defer from.Close()
	if err := checkSize(j.entry, from.total); err != nil {
		return "", err
	}
	if from.from != to.have {
		if to, err = j.anew(ctx); err != nil {
			return "", err
		}
	}
	j.fetcher.remember(j.key, from.validator)
	if from.total == from.from {
		return "", nil
	}
	return j.upload(moving, to, &tap{
		from: from, left: from.total - from.from, done: from.from, sum: sha256.New(), alive: alive, ended: moving.Err,
		tell: func(done int64) { j.report(done, from.total, "image "+j.entry.Name) },
	})
}

// anew is an empty volume in the place of one that ends where nothing can be added.
func (j *job) anew(ctx context.Context) (volume, error) {
	if err := j.discard(ctx); err != nil {
		return volume{}, err
	}
	return ask(ctx, j.host, j.target)
}

// upload gives the pool exactly what is left: of a reader that ends early libvirt says
// that all is well, and one that goes on for longer can hang the connection.
func (j *job) upload(ctx context.Context, to volume, rest *tap) (sent string, err error) {
	left, total := rest.left, to.have+rest.left
	if err := j.room(ctx, left); err != nil {
		return "", err
	}
	err = j.host.Do(ctx, func(api API) error {
		if err := j.mine(api); err != nil {
			return err
		}
		return api.StorageVolUpload(to.StorageVol, rest, uint64(to.have), uint64(left), 0) //nolint:gosec // not negative
	})
	switch done, failed := rest.failure(); {
	case errors.Is(context.Cause(ctx), errStalled):
		return "", fmt.Errorf("%w: %w", errCutOff, errStalled)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case failed != nil:
		return "", fmt.Errorf("%w after %d of %d bytes: %w", errCutOff, done, total, public(failed))
	case noSpace(err):
		return "", errors.Join(j.entry.fail(providers.ErrQuotaExceeded, "on host %s: %w", j.host.Name, err), j.discard(ctx))
	case err != nil:
		return "", err
	}
	if err := j.holds(ctx, to, total); err != nil || to.have > 0 {
		return "", err
	}
	return hex.EncodeToString(rest.sum.Sum(nil)), nil
}

func noSpace(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "No space left on device") ||
		strings.Contains(err.Error(), "Disk quota exceeded"))
}

// room fails when the pool has less than is needed.
func (j *job) room(ctx context.Context, need int64) error {
	free, err := ask(ctx, j.host, func(api API) (uint64, error) {
		_ = api.StoragePoolRefresh(j.host.Pool, 0) // what was freed besides libvirt; refused while others make volumes
		_, _, _, available, err := api.StoragePoolGetInfo(j.host.Pool)
		return available, err
	})
	if err == nil && free < uint64(need) { //nolint:gosec // not negative
		err = j.entry.fail(providers.ErrQuotaExceeded, "on host %s: %d more bytes are needed, and pool %s has %d: no space "+
			"left on device", j.host.Name, need, j.host.Pool.Name, free)
	}
	return err
}

// holds fails when the pool has another length than was sent: a full disk may have been
// reported as success.
func (j *job) holds(ctx context.Context, to volume, total int64) error {
	have, err := ask(ctx, j.host, func(api API) (int64, error) { return stored(api, to.StorageVol) })
	if err != nil || have == total {
		return err
	}
	err = j.entry.fail(providers.ErrTransient, "on host %s: %d of %d bytes were stored", j.host.Name, have, total)
	full := j.room(ctx, max(total-have, 0))
	if errors.Is(full, providers.ErrQuotaExceeded) || have > total {
		return errors.Join(cmp.Or(full, err), j.discard(ctx))
	}
	return err
}
