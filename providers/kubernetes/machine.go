package kubernetes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// defaultMachine is what a Proxy without a machine type gets. The catalogue may have
// an entry of that name, which then takes its place.
const defaultMachine = "default"

// machine is a MachineType that was checked.
type machine struct {
	namespace string
	resources corev1.ResourceRequirements
}

// builtIn is enough for a proxy without a cache: some 40 MiB at rest, and buffers.
func builtIn() MachineType {
	return MachineType{
		Requests: map[string]string{"cpu": "50m", "memory": "64Mi"},
		Limits:   map[string]string{"cpu": "1", "memory": "256Mi"},
	}
}

func resolveMachines(c Config, set *settings) error {
	set.machines = map[string]machine{}
	catalogue := map[string]MachineType{defaultMachine: builtIn()}
	for name, m := range c.MachineTypes {
		catalogue[name] = m
	}
	for _, name := range sorted(catalogue) {
		m, err := catalogue[name].resolve("machineTypes." + name)
		if err != nil {
			return err
		}
		set.machines[name] = m
	}
	return nil
}

func (t MachineType) resolve(key string) (m machine, err error) {
	if t.Namespace != "" {
		if err := checkNamespace(key+".namespace", t.Namespace); err != nil {
			return m, err
		}
	}
	m.namespace = t.Namespace
	if m.resources.Requests, err = quantities(key+".requests", t.Requests); err != nil {
		return m, err
	}
	if m.resources.Limits, err = quantities(key+".limits", t.Limits); err != nil {
		return m, err
	}
	return m, checkBounds(key, m.resources)
}

func quantities(key string, amounts map[string]string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, name := range sorted(amounts) {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return nil, fmt.Errorf("%s: %q is no name of a resource", key, name)
		}
		q, err := resource.ParseQuantity(amounts[name])
		if err != nil || q.Sign() <= 0 {
			return nil, fmt.Errorf("%s.%s: %q is not a quantity above zero, such as 100m or 64Mi", key, name, amounts[name])
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

// checkBounds wants a request and a limit for cpu and memory: a Pod without one is
// refused where a quota counts it, and takes what it likes where none does.
func checkBounds(key string, r corev1.ResourceRequirements) error {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, has := r.Requests[name]; !has {
			return fmt.Errorf(`%s.requests.%s: "" must be set`, key, name)
		}
		if _, has := r.Limits[name]; !has {
			return fmt.Errorf(`%s.limits.%s: "" must be set`, key, name)
		}
	}
	for name, limit := range r.Limits {
		if request, has := r.Requests[name]; has && request.Cmp(limit) > 0 {
			return fmt.Errorf("%s.requests.%s: %q is above its limit %q", key, name, request.String(), limit.String())
		}
	}
	return nil
}
