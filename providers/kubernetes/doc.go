// Package kubernetes keeps each instance as a Pod with a forward proxy in it, through
// the API server of a cluster. It imports the contract, client-go and otelhttp. The Pod
// holds everything: its marks are labels and annotations, and the proxy's configuration
// is an annotation that the kubelet mounts, so nothing is made per instance beside it.
// What a namespace has once is an owner (owner.go) and a NetworkPolicy (policy.go).
// Start reading at provider.go; pod.go, observe.go and classify.go are the decisions.
// docs/providers/kubernetes.md is the guide.
package kubernetes
