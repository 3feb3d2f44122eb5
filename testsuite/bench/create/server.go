package create

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/usage"
)

// The part measures a server of its own, or the one that these name: an address, a
// namespace that is there, and the processes whose processor time is told, such as
// "server=12,13 database=14". What a database started counts, too.
const (
	EnvTemporal  = "BENCH_TEMPORAL"
	EnvNamespace = "BENCH_TEMPORAL_NAMESPACE"
	EnvProcesses = "BENCH_PROCESSES"
)

// Whose processor time is told.
const (
	ofServer   = "server"
	ofDatabase = "database" // where it is a process of its own
	ofUs       = "worker and clients"
)

// processes are process IDs by whose they are.
type processes map[string][]int

// parseProcesses reads EnvProcesses.
func parseProcesses(text string) (processes, error) {
	all := processes{}
	for word := range strings.FieldsSeq(text) {
		who, ids, named := strings.Cut(word, "=")
		if !named || who != ofServer && who != ofDatabase {
			return nil, fmt.Errorf("%s: %q is not %s=PID,PID or %s=PID", EnvProcesses, word, ofServer, ofDatabase)
		}
		for id := range strings.SplitSeq(ids, ",") {
			pid, err := strconv.Atoi(id)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is not a process ID", EnvProcesses, id)
			}
			all[who] = append(all[who], pid)
		}
	}
	return all, nil
}

// spent is the processor time of all that were named, since they began. A database has a
// process for each connection; to look for those is not cheap, where a machine has many.
func (s *scene) spent() (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	for who, pids := range s.processes {
		for _, pid := range pids {
			took, err := alone(pid)
			if who == ofDatabase {
				took, err = usage.Family(pid)
			}
			if err != nil {
				return nil, fmt.Errorf("the processor time of %s: %w", who, err)
			}
			all[who] += took
		}
	}
	return all, nil
}

func alone(pid int) (time.Duration, error) {
	u, err := usage.Of(pid)
	return u.CPU(), err
}

// open starts a fleet, on a server of its own or on the one that is named.
func openFleet(ctx context.Context, o live.Options) (*live.Fleet, processes, error) {
	us := []int{os.Getpid()}
	address := os.Getenv(EnvTemporal)
	if address == "" {
		f, err := live.Open(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		return f, processes{ofUs: us, ofServer: {f.Server.PID()}}, nil
	}
	named, err := parseProcesses(os.Getenv(EnvProcesses))
	if err != nil {
		return nil, nil, err
	}
	named[ofUs] = us
	f, err := live.Join(ctx, live.At{Address: address, Namespace: os.Getenv(EnvNamespace)}, o)
	return f, named, err
}
