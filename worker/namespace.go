package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// inNamespace is a step that waits for the namespace of Temporal: who installs both may
// make it after the worker has started.
func (p *process) inNamespace(step func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return awaitNamespace(ctx, p.cfg.Temporal.Namespace, p.patience(), p.log, func(ctx context.Context) error {
			if err := p.findNamespace(ctx); unknownNamespace(err) {
				return err
			}
			return step(ctx)
		})
	}
}

// findNamespace asks for it by name. Some of what the steps ask hides in a text that it is
// not there. Not every client may ask so; then the step itself finds out.
func (p *process) findNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	_, err := p.temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{
		Namespace: p.cfg.Temporal.Namespace,
	})
	return err
}

// awaitNamespace does a step, and again for as long as patience while Temporal does not
// know the namespace, or is too busy to answer in time. Another error is returned at once.
func awaitNamespace(
	ctx context.Context, namespace string, patience time.Duration, log *slog.Logger, step func(context.Context) error,
) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for told := false; ; told = true {
		err := step(ctx)
		unknown := unknownNamespace(err)
		if !unknown && !late(err) {
			return err
		}
		if !unknown {
			log.Warn("temporal does not answer in time", slog.String("error", err.Error()))
		} else if !told {
			log.Warn("temporal does not know the namespace yet", slog.String("namespace", namespace),
				slog.Duration("waitingFor", patience))
		}
		select {
		case <-within.Done():
			if !unknown {
				return err
			}
			return fmt.Errorf("temporal.namespace: %q: Temporal did not get to know it within %s: "+
				"`temporal operator namespace create --namespace %s` makes it: %w", namespace, patience, namespace, err)
		case <-time.After(dialPause):
		}
	}
}

func unknownNamespace(err error) bool {
	_, unknown := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return unknown
}

// late reports whether an answer did not come in time: a server that is busy, or that has
// just lost one of its own.
func late(err error) bool {
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late || errors.Is(err, context.DeadlineExceeded)
}
