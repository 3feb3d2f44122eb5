//go:build integration && linux

package kubelab_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

func TestMain(m *testing.M) {
	if err := kubelab.Prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(kubelab.Isolated(m.Run))
}

// site is a target that says whom it sees.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, r.RemoteAddr)
	}))
	require.NoError(t, s.Listener.Close())
	var err error
	s.Listener, err = kubelab.Listen(t.Context())
	require.NoError(t, err)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// seen is whom the site sees through the proxy of a Pod.
func seen(t *testing.T, s *httptest.Server, ip string) string {
	t.Helper()
	proxy := &url.URL{Scheme: "http", Host: ip + ":3128"}
	c := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	res, err := c.Get(s.URL)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text)
}

// commands start what serves. A small image has it under the name of squid.
var commands = map[string][]string{
	kubelab.ProxyImage: {"squid", "-N"},
	kubelab.SquidImage: {"sh", "-c", `cat >/tmp/squid.conf <<END && exec squid -N -f /tmp/squid.conf
http_port 3128
pid_filename none
access_log none
cache_log /dev/null
http_access allow all
shutdown_lifetime 1 seconds
END`},
}

func TestPodsOfTwoRealNodesServeAreKilledAndComeBack(t *testing.T) {
	c, err := kubelab.Start(t.Context(), kubelab.Options{
		Dir: t.TempDir(), Address: kubelab.WorldAddress, EvictAfter: 5,
	})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	nodes := map[string]*kubelab.Node{}
	for _, name := range []string{"a", "b"} {
		nodes[name], err = c.StartNode(t.Context(), "node-"+name, "zone-"+name)
		require.NoError(t, err)
		t.Cleanup(nodes[name].Stop)
	}
	require.NoError(t, c.Namespace(t.Context(), "proxies", nil))
	pods := c.Admin.CoreV1().Pods("proxies")
	get := func(name string) *corev1.Pod {
		p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return p
	}
	target := site(t)
	for name, image := range map[string]string{"a": kubelab.SquidImage, "b": kubelab.ProxyImage} {
		p := pod(name)
		p.Spec.Containers[0].Image = image
		p.Spec.Containers[0].Command = commands[image]
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-" + name}
		_, err = pods.Create(t.Context(), p, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return get(name).Status.PodIP != "" }, soon, tick)
		ip := get(name).Status.PodIP
		require.Eventually(t, func() bool { return strings.HasPrefix(seen(t, target, ip), ip+":") }, soon, tick)
	}

	before := get("b").Status.ContainerStatuses[0]
	require.NoError(t, nodes["b"].KillContainer(t.Context(), before.ContainerID))
	require.Eventually(t, func() bool {
		s := get("b").Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.State.Running != nil
	}, soon, tick)

	require.NoError(t, nodes["a"].Cut(t.Context()))
	require.NoError(t, c.WaitNodeLost(t.Context(), "node-a"))
	require.Eventually(t, func() bool { return get("a").DeletionTimestamp != nil }, soon, tick)
	require.NoError(t, nodes["a"].Join(t.Context()))
	require.NoError(t, c.WaitNode(t.Context(), "node-a"))
	require.Eventually(t, func() bool {
		_, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, soon, tick)
}
