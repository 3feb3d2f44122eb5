//go:build linux

package kubelab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/egressfleet/egressfleet/testsuite/ports"
)

// ready bounds the start of each part on a busy machine.
const ready = 5 * time.Minute

// lostAfter is how long a node is silent before it is lost. One that only gets no
// processor time, on a busy machine, is not.
const lostAfter = 30 * time.Second

// Options say what a cluster is made of.
type Options struct {
	// Dir gets its keys, data and logs. Required; it is the caller's.
	Dir string
	// Address is where the API server listens, "127.0.0.1" if empty.
	Address string
	// Users may authenticate with a token, and may do nothing until they are granted it.
	Users []string
	// Kwok plays the kubelet of nodes that AddNode makes. Without it no Pod runs, unless
	// real nodes join.
	Kwok bool
	// EvictAfter is how long a Pod stays on a node that is lost, in seconds; 0 is the
	// default of Kubernetes, 300.
	EvictAfter int
}

// Cluster is a control plane of processes that were started here. Its methods are for
// one goroutine at a time, except those that return configurations and clients.
type Cluster struct {
	// Admin may do everything.
	Admin *kubernetes.Clientset

	opts   Options
	bin    string
	pki    string
	ca     *authority
	server string // URL
	tokens map[string]string
	argv   []string // of the API server, for the next start
	etcd   *process
	api    *process
	others []*process
	nodes  int    // real ones, so far
	made   images // for real nodes
}

// Start starts a cluster that is ready to schedule Pods, in some seconds. The caller
// stops it. A start that fails leaves nothing running.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1"
	}
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	c := &Cluster{opts: o, bin: bin, pki: filepath.Join(o.Dir, "pki"), tokens: map[string]string{}}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	var port [3]int
	for i := range port {
		var err error
		if port[i], err = ports.Take(); err != nil {
			return err
		}
	}
	c.server = "https://" + net.JoinHostPort(c.opts.Address, strconv.Itoa(port[0]))
	if err := c.credentials(); err != nil {
		return err
	}
	if err := c.startStore(ctx, port[1], port[2]); err != nil {
		return err
	}
	c.argv = c.apiServer(port[0], port[1])
	if err := c.StartAPI(ctx); err != nil {
		return err
	}
	return errors.Join(c.startControllers(), c.startKwok(ctx))
}

// Stop ends what was started, in the order in which nobody complains.
func (c *Cluster) Stop() {
	for _, p := range c.others {
		p.stop()
	}
	c.api.stop()
	c.etcd.stop()
}

// StartAPI starts the API server and waits until it is ready.
func (c *Cluster) StartAPI(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	if c.api, err = run(c.opts.Dir, "kube-apiserver", c.argv...); err != nil {
		return err
	}
	return c.api.until(ctx, func(ctx context.Context) error {
		return c.Admin.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// KillAPI ends the API server at once: what it is answering is not answered.
func (c *Cluster) KillAPI() { c.api.kill() }

// Log is the file with the output of a part, such as "kube-apiserver".
func (c *Cluster) Log(part string) string { return filepath.Join(c.opts.Dir, part+".log") }

func (c *Cluster) startStore(ctx context.Context, client, peer int) (err error) {
	url := func(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }
	c.etcd, err = run(c.opts.Dir, "etcd", "etcd", "--data-dir", filepath.Join(c.opts.Dir, "etcd"),
		"--listen-client-urls", url(client), "--advertise-client-urls", url(client),
		"--listen-peer-urls", url(peer), "--initial-advertise-peer-urls", url(peer),
		"--initial-cluster", "default="+url(peer), "--unsafe-no-fsync", "--log-level", "warn")
	if err != nil {
		return fmt.Errorf("%w; on Debian: apt-get install -y --no-install-recommends etcd-server", err)
	}
	return c.etcd.until(ctx, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(client))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (c *Cluster) apiServer(port, etcd int) []string {
	key := func(name string) string { return filepath.Join(c.pki, name) }
	argv := []string{
		c.program("kube-apiserver"), "--etcd-servers", "http://127.0.0.1:" + strconv.Itoa(etcd),
		"--bind-address", c.opts.Address, "--secure-port", strconv.Itoa(port),
		// Nobody looks for the API server in the cluster, and an address of loopback is
		// refused there.
		"--advertise-address", c.opts.Address, "--endpoint-reconciler-type", "none",
		"--service-cluster-ip-range", "10.96.0.0/16",
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--client-ca-file", key("ca.crt"), "--tls-cert-file", key("server.crt"), "--tls-private-key-file", key("server.key"),
		"--kubelet-client-certificate", key("admin.crt"), "--kubelet-client-key", key("admin.key"),
		// Debian's etcd cannot tell how far a watch has got, which these need.
		"--feature-gates", "SizeBasedListCostEstimate=false,WatchList=false",
		"--token-auth-file", key("tokens.csv"), "--service-account-issuer", "https://kubelab",
		"--service-account-key-file", key("accounts.crt"), "--service-account-signing-key-file", key("accounts.key"),
		"--audit-policy-file", key("audit.yaml"), "--audit-log-path", c.Log("audit"), "--audit-log-mode", "blocking",
	}
	if c.opts.EvictAfter > 0 {
		after := strconv.Itoa(c.opts.EvictAfter)
		argv = append(argv, "--default-unreachable-toleration-seconds", after,
			"--default-not-ready-toleration-seconds", after)
	}
	return argv
}

func (c *Cluster) startControllers() error {
	as := func(name string) []string {
		file := filepath.Join(c.pki, name+".kubeconfig")
		return []string{
			c.program(name), "--kubeconfig", file, "--authentication-kubeconfig", file,
			"--authorization-kubeconfig", file, "--leader-elect=false", "--secure-port", "0",
			"--kube-api-qps", "200", "--kube-api-burst", "400",
		}
	}
	managing := append(as("kube-controller-manager"),
		"--service-account-private-key-file", filepath.Join(c.pki, "accounts.key"),
		"--root-ca-file", filepath.Join(c.pki, "ca.crt"), "--use-service-account-credentials",
		"--node-monitor-period", "1s", "--node-monitor-grace-period", lostAfter.String(), "--concurrent-namespace-syncs", "4")
	return errors.Join(c.add("kube-controller-manager", managing...), c.add("kube-scheduler", as("kube-scheduler")...))
}

func (c *Cluster) startKwok(ctx context.Context) error {
	if !c.opts.Kwok {
		return nil
	}
	if err := c.restrainKwok(ctx); err != nil {
		return err
	}
	return c.add("kwok", c.program("kwok"), "--kubeconfig", filepath.Join(c.pki, kwokUser+".kubeconfig"),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector", kwokNode+"=fake", "--cidr", "10.128.0.1/16")
}

// add starts a part that stops before the API server.
func (c *Cluster) add(name string, argv ...string) error {
	p, err := run(c.opts.Dir, name, argv...)
	if err == nil {
		c.others = append(c.others, p)
	}
	return err
}

// adminConfig is the configuration of Admin.
func (c *Cluster) adminConfig(admin pair) *rest.Config {
	return &rest.Config{
		Host: c.server, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem, CertData: admin.cert, KeyData: admin.key},
	}
}

func (c *Cluster) program(name string) string { return filepath.Join(c.bin, name) }
