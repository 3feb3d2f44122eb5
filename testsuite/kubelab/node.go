//go:build linux

package kubelab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	_ "embed"
)

// WorldAddress is where nodes find the API server and everything else that the isolated
// process serves.
const WorldAddress = "10.99.0.1"

// bridge joins the cables of the nodes.
const bridge = "nodes"

// WorldRange and PodRange hold every address of nodes and of Pods.
const (
	WorldRange = "10.99.0.0/16"
	PodRange   = "10.244.0.0/16"
)

// Node is a real node: a kubelet, containerd and runc in namespaces of their own.
type Node struct {
	Name string

	zone    string
	cluster *Cluster
	number  int    // its addresses follow from it
	dir     string // data and logs
	holder  *process
	pid     int // of the first process in its namespaces
	cgroup  cgroup
	parts   []*process
}

// StartNode adds a real node in a zone, and waits until it takes Pods. The caller stops
// it before the cluster, which listens on WorldAddress. It needs Isolated and Prepare.
func (c *Cluster) StartNode(ctx context.Context, name, zone string) (*Node, error) {
	c.nodes++
	n := &Node{Name: name, cluster: c, number: c.nodes, dir: filepath.Join(c.opts.Dir, name)}
	err := n.start(ctx, zone)
	if err == nil {
		err = c.WaitNode(ctx, name)
	}
	if err != nil {
		n.Stop()
		return nil, fmt.Errorf("node %s: %w\n%s", name, err, n.quote())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, zone string) (err error) {
	if os.Getenv(isolated) == "" {
		return errors.New("a node needs an isolated process around it")
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "cni"), 0o700); err != nil {
		return err
	}
	if n.cgroup, err = newCgroup(); err != nil {
		return err
	}
	made, err := n.cluster.prepareImages(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(n.files(zone)...); err != nil {
		return err
	}
	if err := n.hold(ctx); err != nil {
		return err
	}
	if err := n.connect(ctx); err != nil {
		return err
	}
	return n.run(ctx, made)
}

// holdScript is the first process of the node. What its programs would leave on this
// machine, or change for all of it, they do to folders and copies of the node.
//
//go:embed hold.sh
var holdScript string

// kubeletDir is short, since the paths of sockets are bounded.
const kubeletDir = "/run/kubelet"

// hold makes the namespaces of the node.
func (n *Node) hold(ctx context.Context) (err error) {
	begun := filepath.Join(n.dir, "begun")
	n.holder, err = launch(n.dir, "holder", unshare(holdScript, n.dir, kubeletDir))
	if err != nil {
		return err
	}
	err = n.holder.until(ctx, func(context.Context) error { _, err := os.Stat(begun); return err })
	if err != nil {
		return err
	}
	outer := strconv.Itoa(n.holder.cmd.Process.Pid)
	text, err := os.ReadFile(filepath.Join("/proc", outer, "task", outer, "children")) //nolint:gosec // of the kernel
	if err != nil {
		return err
	}
	n.pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return err
}

// connect gives the node a cable to the world, and its Pods a route.
func (n *Node) connect(ctx context.Context) error {
	in := fmt.Sprintf("nsenter -t %d -n ", n.pid)
	return steps(ctx,
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", n.cable(), n.pid),
		"ip link set "+n.cable()+" master "+bridge+" up",
		in+"ip link set lo up", in+"ip addr add "+n.address()+"/16 dev eth0", in+"ip link set eth0 up",
		in+"ip route add default via "+WorldAddress,
		"ip route replace "+n.pods()+" via "+n.address())
}

func (n *Node) cable() string   { return "node" + strconv.Itoa(n.number) }
func (n *Node) address() string { return "10.99.0." + strconv.Itoa(n.number+1) }
func (n *Node) pods() string    { return fmt.Sprintf("10.244.%d.0/24", n.number) }

// run starts containerd, gives it the images, and starts the kubelet.
func (n *Node) run(ctx context.Context, made images) error {
	containerd, err := n.part("containerd", "containerd", "--config", n.file("containerd.toml"))
	if err != nil {
		return fmt.Errorf("%w; on Debian: apt-get install -y --no-install-recommends containerd runc "+
			"containernetworking-plugins", err)
	}
	err = containerd.until(ctx, func(ctx context.Context) error { return n.ctr(ctx, "version") })
	if err != nil {
		return err
	}
	for _, tar := range []string{made.pause, made.proxy, made.squid} {
		if err := n.ctr(ctx, "images", "import", tar); err != nil {
			return err
		}
	}
	_, err = n.part("kubelet", n.cluster.program("kubelet"), "--config", n.file("kubelet.yaml"),
		"--kubeconfig", n.file("kubeconfig"), "--hostname-override", n.Name, "--node-ip", n.address(),
		"--root-dir", kubeletDir, "--cert-dir", n.file("kubelet-pki"),
		"--node-labels", corev1.LabelTopologyZone+"="+n.zone)
	return err
}

// part starts a program in the namespaces of the node.
func (n *Node) part(name string, argv ...string) (*process, error) {
	p, err := run(n.dir, name, append(n.enter(), argv...)...)
	if err == nil {
		n.parts = append(n.parts, p)
	}
	return p, err
}

func (n *Node) enter() []string {
	return []string{"nsenter", "-t", strconv.Itoa(n.pid), "-n", "-m", "-p", "--"}
}

func (n *Node) ctr(ctx context.Context, args ...string) error {
	return command(ctx, append(append(n.enter(), "ctr", "-n", "k8s.io"), args...)...)
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// Cut pulls the cable of the node: it runs on, and nobody hears of it.
func (n *Node) Cut(ctx context.Context) error { return steps(ctx, "ip link set "+n.cable()+" down") }

// Join plugs it in again.
func (n *Node) Join(ctx context.Context) error { return steps(ctx, "ip link set "+n.cable()+" up") }

// KillContainer ends the first process of a container, as a crash does. The ID is that
// of the Pod's status.
func (n *Node) KillContainer(ctx context.Context, id string) error {
	return n.ctr(ctx, "tasks", "kill", "--signal", "SIGKILL", strings.TrimPrefix(id, "containerd://"))
}

// Stop ends everything on the node, Pods included, as pulling its plug does. What the
// cluster knows of it stays.
func (n *Node) Stop() {
	if n == nil {
		return
	}
	if n.pid > 0 {
		_ = syscall.Kill(n.pid, syscall.SIGKILL) // it may be over
		for _, p := range n.parts {
			<-p.ended
		}
	}
	n.holder.stop()
	n.cgroup.remove()
}

// quote is the end of each log.
func (n *Node) quote() string {
	var all []string
	for _, p := range n.parts {
		all = append(all, p.name+": "+p.quote())
	}
	return strings.Join(all, "\n")
}

// steps runs commands, each in words apart by spaces, until one fails.
func steps(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if err := command(ctx, strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}
