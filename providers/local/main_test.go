package local_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
)

// workerDir and workerCreates make the test binary a worker that creates instances
// and ends: the parent that the instances outlive.
const (
	workerDir     = "EGRESSFLEET_TEST_DIR"
	workerCreates = "EGRESSFLEET_TEST_CREATES"
)

// The test binary is its own instance, as the worker is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == local.Command {
		os.Exit(local.Main(os.Args[2:]))
	}
	// The race detector waits a second at the end of each process otherwise.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		os.Exit(1)
	}
	if dir := os.Getenv(workerDir); dir != "" {
		os.Exit(worker(dir, os.Getenv(workerCreates)))
	}
	os.Exit(m.Run())
}

// worker creates instances at once and prints each ID as soon as it has it.
func worker(dir, creates string) int {
	n, err := strconv.Atoi(creates)
	if err != nil {
		return 1
	}
	p, err := local.New(ctxForever(), providerName, installation, local.Config{Dir: dir})
	if err != nil {
		return 1
	}
	ids := make(chan string)
	for i := range n {
		go func() {
			id, err := p.Create(ctxForever(), request(workerUID(i)))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			ids <- id
		}()
	}
	for range n {
		fmt.Println(<-ids)
	}
	return 0
}

func workerUID(i int) string { return "worker-" + strconv.Itoa(i) }

func request(uid string) providers.CreateRequest {
	return providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: installation,
		Owner: providers.Owner("default", uid), SpecMark: `{"port":3128}`, Port: 3128,
		Labels: map[string]string{"team": "crawlers"},
	}
}
