// Package kubelab starts Kubernetes clusters on this machine, for suites that need a real
// API server: etcd, kube-apiserver, the controllers and the scheduler, and nodes that
// are either played by kwok or real ones, with containerd, in namespaces of their own.
// It is Linux's. Start reading at Start.
package kubelab
