package kubernetes

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/egressfleet/egressfleet/providers"
)

// withClientLines lets client-go log to the logger of the call, as detail: a long wait
// for qps, an answer that is cut off. By itself it writes to the standard error. Its finer
// lines stay off, since they hold headers and bodies; watched has those of a request.
func withClientLines(ctx context.Context) context.Context {
	log := providers.Logger(ctx)
	if !log.Enabled(ctx, providers.LevelDetail) {
		return klog.NewContext(ctx, logr.Discard())
	}
	return klog.NewContext(ctx, funcr.New(func(_, line string) {
		log.LogAttrs(ctx, providers.LevelDetail, "kubernetes client", slog.String("says", line))
	}, funcr.Options{}))
}
