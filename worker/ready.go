package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/internal/config"
)

// readyTimeout is less than supervisors allow.
const readyTimeout = 3 * time.Second

// newReadyCommand asks another process of the same configuration. An image without a
// shell has nothing else to ask with.
func newReadyCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "ready", Short: "Ask the worker of the same configuration whether it is ready; exits 1 if not",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), file)
			if err != nil {
				return usageError{err}
			}
			return askReady(cmd.Context(), cfg.Metrics)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file, in YAML")
	config.AddFlags(cmd.Flags())
	return cmd
}

// askReady returns nil where the process that serves metrics there is ready.
func askReady(ctx context.Context, at config.Listen) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	host := at.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(at.Port)) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
