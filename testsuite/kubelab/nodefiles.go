//go:build linux

package kubelab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// containerdFile is the configuration of containerd. Without CAP_SYS_RESOURCE nobody may
// lower the score by which the kernel picks a victim: hence restrict_oom_score_adj.
const containerdFile = `version = 2
root = "%[1]s/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "%[2]s"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%[1]s/cni"
`

// networkFile gives each Pod an address. Nothing is translated: what a Pod asks for sees
// the Pod's own address.
const networkFile = `{"cniVersion": "1.0.0", "name": "kubelab", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "%[2]s"}]], "routes": [{"dst": "0.0.0.0/0"}],
   "dataDir": "%[1]s/addresses"}}]}
`

const kubeletFile = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%[3]s
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]s/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/node.crt
tlsPrivateKeyFile: %[1]s/node.key
failSwapOn: false
resolvConf: %[1]s/resolv.conf
podLogsDir: %[1]s/podlogs
volumePluginDir: %[1]s/plugins
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
enforceNodeAllocatable: [pods]
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
`

// files writes what the programs of the node read.
func (n *Node) files(zone string) []error {
	n.zone = zone
	write := func(name, text string) error { return os.WriteFile(n.file(name), []byte(text), 0o600) }
	p, err := n.cluster.ca.issue(subject{
		name: "system:node:" + n.Name, group: "system:nodes", hosts: []string{n.address(), n.Name},
	})
	return []error{
		err, p.write(n.dir, "node"),
		WriteKubeconfig(n.file("kubeconfig"), n.cluster.adminConfig(p)),
		write("resolv.conf", "nameserver "+WorldAddress+"\n"),
		write("containerd.toml", fmt.Sprintf(containerdFile, n.dir, pauseImage)),
		write(filepath.Join("cni", "10-kubelab.conflist"), fmt.Sprintf(networkFile, n.dir, n.pods())),
		write("kubelet.yaml", fmt.Sprintf(kubeletFile, n.dir, n.cluster.pki, n.cgroup.name)),
	}
}

// prepareImages makes the images of the cluster's nodes, once.
func (c *Cluster) prepareImages(ctx context.Context) (images, error) {
	if c.made.pause != "" {
		return c.made, nil
	}
	made, err := makeImages(ctx, filepath.Dir(c.bin), c.opts.Dir)
	c.made = made
	return made, err
}
