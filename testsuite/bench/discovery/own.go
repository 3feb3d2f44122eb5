package discovery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/usage"
)

// own is our server, in a process of its own as nginx is.
type own struct {
	address string
	cmd     *exec.Cmd
	input   io.Closer
}

// ProfileEnv names the folder where the server writes its profile; unset: nowhere.
const ProfileEnv = "BENCH_PROFILE"

func newOwn(ctx context.Context, size int) (*own, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{Serve, "-size", strconv.Itoa(size)}
	if dir := os.Getenv(ProfileEnv); dir != "" {
		args = append(args, "-profile", filepath.Join(dir, fmt.Sprintf("discovery-server-%d.cpu", size)))
	}
	o := &own{cmd: exec.Command(self, args...)} //nolint:gosec,noctx // closed by close
	o.cmd.Stderr = os.Stderr
	if o.input, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := o.cmd.Start(); err != nil {
		return nil, err
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server of %d proxies did not start: %w", size, err), o.close())
	}
	o.address = strings.TrimSpace(first)
	return o, o.ready(ctx)
}

// ready waits until there is a list.
func (o *own) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.address+"/v1/discovery?format=txt", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the list of %s: %w", o.address, ctx.Err())
		}
	}
}

// spent is the processor time of its process.
func (o *own) spent() (time.Duration, error) {
	u, err := usage.Of(o.cmd.Process.Pid)
	return u.CPU(), err
}

func (o *own) close() error {
	return errors.Join(o.input.Close(), o.cmd.Wait())
}
