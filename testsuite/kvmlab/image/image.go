// Package image makes the guests of testsuite/kvmlab: a Debian with cloud-init, and one
// that only gets an address. They are made once per user, into a cache keyed by what they
// are made of. Start reading at Make; the scripts beside it are the making.
package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "embed"
)

//go:embed debian.sh
var debianScript string

//go:embed tiny.sh
var tinyScript string

const (
	// Release is the Debian that guests run.
	Release = "bookworm"

	folderMode = 0o755
	// unfinished begins the name of every folder that is being worked in.
	unfinished = "unfinished-"
)

// Image is a guest and how it is made.
type Image struct {
	Name   string
	script string
	// args are what the script is called with, before the folder and the file.
	args []string
	// contents are files whose change is another image.
	contents []string
	// by makes the file in the folder; nil runs the script.
	by func(ctx context.Context, work, made string) error
}

// Debian is a guest that reads a seed by cloud-init, and has tinyproxy and the guest agent.
func Debian() Image {
	packages := []string{
		"systemd-sysv", "cloud-init", "tinyproxy", "qemu-guest-agent", "netplan.io", "systemd-resolved",
		"linux-image-cloud-amd64", "extlinux", "dbus", "iproute2",
	}
	return Image{Name: "debian", script: debianScript, args: []string{Release, strings.Join(packages, " ")}}
}

// Tiny is a guest that gets an address a second after its start, in 32 MiB, and reads no
// seed.
func Tiny() Image {
	const kernel = "/boot/ipxe.lkrn"
	return Image{Name: "tiny", script: tinyScript, args: []string{kernel}, contents: []string{kernel}}
}

// All are all images.
func All() []Image { return []Image{Tiny(), Debian()} }

// Cache is the folder of the images of this user.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for images: %w", err)
	}
	return filepath.Join(dir, "egressfleet", "images"), nil
}

// Path is where the image is once it is made.
func (i Image) Path(cache string) (string, error) {
	key := sha256.New()
	for _, part := range append([]string{i.script}, i.args...) {
		_, _ = fmt.Fprintf(key, "%d:%s", len(part), part)
	}
	for _, file := range i.contents {
		content, err := os.ReadFile(file) //nolint:gosec // from the table above
		if err != nil {
			return "", fmt.Errorf("image %s is made of it: %w", i.Name, err)
		}
		_, _ = fmt.Fprintf(key, "%d:%s", len(content), content)
	}
	const digits = 8
	return filepath.Join(cache, i.Name+"-"+hex.EncodeToString(key.Sum(nil)[:digits])+".qcow2"), nil
}

// Find is the path of an image that is made; the error says how to make it.
func (i Image) Find(cache string) (string, error) {
	path, err := i.Path(cache)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("image %s is not made, run `go run ./tools/kvmlab images`: %w", i.Name, err)
	}
	return path, nil
}

// Make returns the path of the image, and makes it first where the cache has none. Who
// comes while another makes it waits. A making that is cut off leaves nothing that
// would be taken for an image.
func (i Image) Make(ctx context.Context, cache string, log io.Writer) (path string, err error) {
	if path, err = i.Path(cache); err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, folderMode); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(cache, i.Name+".lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	_, _ = fmt.Fprintf(log, "making the guest image %s\n", i.Name)
	begun := time.Now()
	if err := i.make(ctx, cache, path); err != nil {
		return "", fmt.Errorf("image %s: %w", i.Name, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(log, "made the guest image %s in %s: %d MiB\n",
		i.Name, time.Since(begun).Round(time.Second), info.Size()>>20) //nolint:mnd // MiB
	return path, nil
}

// make works in a folder of its own and renames what came out of it. It holds the lock of
// the name: what was left there by a cut-off making is nobody's.
func (i Image) make(ctx context.Context, cache, path string) (err error) {
	left, err := filepath.Glob(filepath.Join(cache, unfinished+i.Name+"-*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, unfinished+i.Name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	made := filepath.Join(work, "made.qcow2")
	by := i.by
	if by == nil {
		by = i.run
	}
	if err := by(ctx, work, made); err != nil {
		return err
	}
	return os.Rename(made, path)
}

// run runs the script in namespaces of its own: when it is killed its processes and its
// mounts are gone, too.
func (i Image) run(ctx context.Context, work, made string) error {
	if err := os.Chmod(work, folderMode); err != nil { // apt has a user of its own
		return err
	}
	args := append([]string{
		"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
		"bash", "-c", i.script, i.Name,
	}, i.args...)
	cmd := exec.CommandContext(ctx, "unshare", append(args, work, made)...) //nolint:gosec // from the table above
	cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/sbin:"+os.Getenv("PATH"))
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, words.Bytes())
	}
	return nil
}

// lock waits for the only right to make what the file is named after. The kernel ends it
// with the process.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the cache
	if err != nil {
		return nil, err
	}
	const lookEvery = 200 * time.Millisecond
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for %s: %w", path, ctx.Err()), f.Close())
		case <-time.After(lookEvery):
		}
	}
}
