//go:build linux

package kubelab

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroupPrefix begins the names of all the groups that nodes make on this machine.
const cgroupPrefix = "egressfleet-"

// cgroup is the part of the machine's control groups that a node has for its Pods. It is
// the one thing that outlives namespaces: a lock says whose is still wanted.
type cgroup struct {
	name string
	lock *os.File
	dirs []string
}

func newCgroup() (g cgroup, err error) {
	roots, err := hierarchies()
	if err != nil {
		return g, err
	}
	locks := filepath.Join(os.Getenv(isolated), "egressfleet-cgroups") // where every run finds them
	if err := os.MkdirAll(locks, 0o700); err != nil {                  //nolint:gosec // of the process around us
		return g, err
	}
	forgetCgroups(locks, roots)
	g = cgroup{name: cgroupPrefix + strings.ToLower(rand.Text()[:8])}
	if g.lock, err = os.Create(filepath.Join(locks, g.name)); err != nil { //nolint:gosec // a name of ours
		return g, err
	}
	if err := syscall.Flock(int(g.lock.Fd()), syscall.LOCK_EX); err != nil {
		return g, err
	}
	for _, root := range roots {
		g.dirs = append(g.dirs, filepath.Join(root, g.name))
	}
	return g, errors.Join(makeAll(g.dirs)...)
}

// makeAll makes the groups. In the first version of control groups one of cpuset without
// processors takes no process; in the second one a group has the controllers that its
// parent hands down, and a kubelet wants those that the machine has.
func makeAll(dirs []string) (faults []error) {
	for _, dir := range dirs {
		faults = append(faults, handDown(filepath.Dir(dir)), os.MkdirAll(dir, 0o755)) //nolint:gosec // as others there are
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name)) //nolint:gosec // of the kernel
			if err == nil {
				faults = append(faults, os.WriteFile(filepath.Join(dir, name), text, 0o600)) //nolint:gosec // as above
			}
		}
	}
	return faults
}

// handDown lets the groups below one have its controllers. It stays so: others may have
// come to rely on it.
func handDown(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers")) //nolint:gosec // of the kernel
	if err != nil {
		return nil //nolint:nilerr // it is of the first version, which has none
	}
	var wanted []string
	for _, has := range strings.Fields(string(text)) {
		if slices.Contains([]string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}, has) {
			wanted = append(wanted, "+"+has)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	file := filepath.Join(dir, "cgroup.subtree_control")
	return os.WriteFile(file, []byte(strings.Join(wanted, " ")), 0o600) //nolint:gosec // of the kernel
}

// remove waits until the last process is gone, for a while, and removes the groups.
func (g cgroup) remove() {
	if g.lock == nil {
		return
	}
	for end := time.Now().Add(ends); !removed(g.dirs) && time.Now().Before(end); {
		<-time.After(50 * time.Millisecond)
	}
	_ = os.Remove(g.lock.Name())
	_ = g.lock.Close()
}

// forgetCgroups removes what runs that were killed have left.
func forgetCgroups(locks string, roots []string) {
	files, _ := filepath.Glob(filepath.Join(locks, cgroupPrefix+"*"))
	for _, file := range files {
		f, err := os.Open(file) //nolint:gosec // a lock of ours
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			old := cgroup{name: filepath.Base(file)}
			for _, root := range roots {
				old.dirs = append(old.dirs, filepath.Join(root, old.name))
			}
			if removed(old.dirs) {
				_ = os.Remove(file) //nolint:gosec // a lock of ours
			}
		}
		_ = f.Close()
	}
}

// removed removes groups from the leaves up, and reports whether none is left.
func removed(dirs []string) bool {
	all := true
	for _, dir := range dirs {
		var found []string
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				found = append(found, path)
			}
			return nil
		})
		for _, path := range slices.Backward(found) {
			all = os.Remove(path) == nil && all
		}
	}
	return all
}

// hierarchies are the mount points of control groups of this machine.
func hierarchies() (roots []string, err error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasPrefix(fields[2], "cgroup") {
			roots = append(roots, fields[1])
		}
	}
	if len(roots) == 0 {
		return nil, errors.New("no control groups are mounted on this machine: a kubelet needs them")
	}
	return roots, nil
}
