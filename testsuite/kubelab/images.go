//go:build linux

package kubelab

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	_ "embed"
)

const architecture = runtime.GOARCH

// The images that every node has. No registry knows them.
const (
	// SquidImage is Debian's squid, which reads /etc/squid/squid.conf.
	SquidImage = "egressfleet.test/squid:1"
	// ProxyImage is a small proxy that takes memory when it is asked for /eat. It is found
	// under the name of squid, too, and listens on 3128 whatever it is told.
	ProxyImage = "egressfleet.test/proxy:1"
	pauseImage = "egressfleet.test/pause:1"
	// proxyUser is "proxy" of Debian.
	proxyUser = "13:13"
)

// squidScript makes the file system of squid. With the release it is the key of the cache.
//
//go:embed squid.sh
var squidScript string

const squidRelease = "bookworm"

// images are the files of the images of a run.
type images struct{ squid, proxy, pause string }

// Prepare makes the images, which takes some minutes the first time: the first line of
// progress says so. It needs the network for Debian's packages, and is called before
// Isolated.
func Prepare(ctx context.Context) error {
	dir, err := imageDir()
	if err != nil {
		return err
	}
	return locked(filepath.Join(dir, "squid.lock"), func() error {
		squid := squidFile(dir)
		if _, err := os.Stat(squid); err == nil {
			return nil
		}
		begun := time.Now()
		fmt.Fprintln(os.Stderr, "making the image of squid from Debian's packages: about two minutes, and only this once")
		if err := makeSquid(ctx, dir, squid); err != nil {
			return fmt.Errorf("the image of squid: %w", err)
		}
		fmt.Fprintf(os.Stderr, "made the image of squid in %s\n", time.Since(begun).Round(time.Second))
		return nil
	})
}

// imageDir is the user's own, shared by every clone.
func imageDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "egressfleet", "images")
	return dir, os.MkdirAll(dir, 0o700)
}

func squidFile(dir string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{squidScript, squidRelease, SquidImage, architecture}, "\x00")))
	return filepath.Join(dir, "squid-"+hex.EncodeToString(sum[:12])+".tar")
}

// unfinished begins the names of folders in which the image of squid is made.
const unfinished = "unfinished-squid-"

// makeSquid writes the image to a path, or leaves nothing. Its caller holds the lock, so
// that what a making has left that was killed is nobody's.
func makeSquid(ctx context.Context, dir, to string) (err error) {
	left, _ := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	for _, old := range left {
		_ = os.RemoveAll(old) // the next one tries again
	}
	work, err := os.MkdirTemp(dir, unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := squidLayer(ctx, work); err != nil {
		return err
	}
	made := filepath.Join(work, "image.tar")
	squid := Image{
		Ref: SquidImage, User: proxyUser, Layer: filepath.Join(work, "layer.tar"),
		Entrypoint: []string{"/usr/sbin/squid", "-N", "-f", "/etc/squid/squid.conf"},
	}
	if err := squid.Write(made); err != nil {
		return err
	}
	return os.Rename(made, to)
}

// squidLayer makes layer.tar in a folder, in namespaces of its own: killed, it leaves
// neither processes nor mounts.
func squidLayer(ctx context.Context, work string) error {
	from := findMirror(ctx)
	argv := []string{
		"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", squidScript, "sh", squidRelease, from.url, work,
	}
	making := exec.CommandContext(ctx, "unshare", argv...) //nolint:gosec // ours
	making.Env = append(os.Environ(), from.proxy...)
	if words, err := making.CombinedOutput(); err != nil {
		return fmt.Errorf("debootstrap of %s from %q: %w\n%s", squidRelease, from.url, err, last(words))
	}
	return nil
}

// last is the end of what a program has printed.
func last(words []byte) string { return strings.TrimSpace(string(words[max(0, len(words)-tail):])) }

// makeImages makes the small images of one run in dir, and finds that of squid.
func makeImages(ctx context.Context, root, dir string) (i images, err error) {
	cache, err := imageDir()
	if err != nil {
		return i, err
	}
	i = images{squid: squidFile(cache), proxy: filepath.Join(dir, "proxy.tar"), pause: filepath.Join(dir, "pause.tar")}
	if _, err := os.Stat(i.squid); err != nil {
		return i, fmt.Errorf("%w: Prepare was not called", err)
	}
	program, layer := filepath.Join(dir, "static"), filepath.Join(dir, "static.tar")
	args := []string{"build", "-trimpath", "-o", program, "./testsuite/kubelab/static"}
	build := exec.CommandContext(ctx, "go", args...) //nolint:gosec // ours
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if words, err := build.CombinedOutput(); err != nil {
		return i, fmt.Errorf("go build ./testsuite/kubelab/static: %w\n%s", err, words)
	}
	if err := staticLayer(program, layer); err != nil {
		return i, err
	}
	return i, errors.Join(
		Image{Ref: ProxyImage, User: proxyUser, Entrypoint: []string{"/static", "proxy"}, Layer: layer}.Write(i.proxy),
		Image{Ref: pauseImage, User: proxyUser, Entrypoint: []string{"/static", "pause"}, Layer: layer}.Write(i.pause))
}

func staticLayer(program, to string) (err error) {
	out, err := os.Create(to) //nolint:gosec // a file of the run
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	layer := tar.NewWriter(out)
	return errors.Join(putFile(layer, "static", program),
		layer.WriteHeader(&tar.Header{Name: "usr/sbin/squid", Linkname: "/static", Typeflag: tar.TypeSymlink, Mode: 0o777}),
		layer.Close())
}

// locked does something that one process of this user does at a time.
func locked(path string, do func() error) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in a folder of ours
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}

// command runs a program to its end; what it printed is in the error.
func command(ctx context.Context, argv ...string) error {
	words, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput() //nolint:gosec // ours
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, words)
	}
	return nil
}
