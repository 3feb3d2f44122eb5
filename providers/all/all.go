// Package all lists every provider type of this build. It imports each of them, and
// the composition roots import it. Adding a type is one line in Factories.
package all

import (
	"context"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/providers/kvm"
	"github.com/egressfleet/egressfleet/providers/local"
	"github.com/egressfleet/egressfleet/providers/registry"
)

// Factories returns one factory per provider type, in the order of the docs.
func Factories() []registry.Factory {
	return []registry.Factory{
		registry.NewFactory(local.Type, newLocal),
		registry.NewFactory(kvm.Type, newKVM),
		registry.NewFactory(gcp.Type, newGCP),
		registry.NewFactory(kubernetes.Type, newKubernetes),
	}
}

func newKubernetes(ctx context.Context, env registry.Env, cfg kubernetes.Config) (*kubernetes.Provider, error) {
	return kubernetes.New(ctx, env.Name, env.Installation, cfg)
}

func newLocal(ctx context.Context, env registry.Env, cfg local.Config) (providers.Provider, error) {
	return local.New(ctx, env.Name, env.Installation, cfg)
}

func newKVM(ctx context.Context, env registry.Env, cfg kvm.Config) (*kvm.Provider, error) {
	return kvm.New(ctx, env.Name, env.Installation, cfg)
}

func newGCP(ctx context.Context, env registry.Env, cfg gcp.Config) (*gcp.Provider, error) {
	return gcp.New(ctx, env.Name, env.Installation, cfg)
}
