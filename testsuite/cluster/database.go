//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/program"
)

const (
	// databaseRoot is where Debian's PostgreSQL has its files. Those of this run are in memory,
	// and hide the others from it.
	databaseRoot = "/var/lib/postgresql"
	databaseHost = "127.0.0.10"
	databasePort = "5432"
	databaseUser = "temporal"
)

// databases are those of Temporal, with the schema that each has.
func databases() map[string]string {
	return map[string]string{
		"temporal": "postgresql/v12/temporal", "temporal_visibility": "postgresql/v12/visibility",
	}
}

// programsOf are the folders with the programs of PostgreSQL, the newest one last.
func programsOf() []string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	return found
}

// database is a PostgreSQL of this run.
type database struct {
	*program.Program
	bin  string // the folder of PostgreSQL's programs
	tool string // temporal-sql-tool
}

// openDatabase makes a PostgreSQL, starts it, and makes the databases of Temporal.
func (w *world) openDatabase(ctx context.Context) error {
	who, err := postgres()
	if err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", databaseRoot, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting a tmpfs on %s: %w", databaseRoot, err)
	}
	data := filepath.Join(databaseRoot, "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Chown(data, int(who.Uid), int(who.Gid))); err != nil {
		return err
	}
	all := programsOf()
	d := &database{bin: filepath.Dir(all[len(all)-1]), tool: w.built("temporal-sql-tool")}
	d.Program = program.New(w.dir, "postgres", filepath.Join(d.bin, "postgres"), "-D", data, "-h", databaseHost,
		"-p", databasePort, "-k", data, "-c", "max_connections=200", "-c", "shared_buffers=256MB")
	d.User = who
	w.database = d
	if err := run(ctx, who, filepath.Join(d.bin, "initdb"), "-D", data, "-U", databaseUser, "--auth=trust", "-E", "UTF8",
		"--locale=C.UTF-8"); err != nil {
		return err
	}
	if err := d.Start(); err != nil {
		return err
	}
	err = w.until(ctx, startWithin, "PostgreSQL takes connections", func(ctx context.Context) error {
		ready := run(ctx, nil, filepath.Join(d.bin, "pg_isready"), "-h", databaseHost, "-p", databasePort)
		if ready != nil {
			return errors.Join(ready, d.Alive())
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.create(ctx)
}

// create makes the databases, which must not be there.
func (d *database) create(ctx context.Context) error {
	for name, schema := range databases() {
		for _, args := range [][]string{
			{"create-database"}, {"setup-schema", "--version", "0.0"}, {"update-schema", "--schema-name", schema},
		} {
			if err := d.sql(ctx, name, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// lose removes the databases, as if the machine with them were gone.
func (d *database) lose(ctx context.Context) error {
	for name := range databases() {
		if err := d.sql(ctx, name, "drop-database", "--force"); err != nil {
			return err
		}
	}
	return nil
}

// size is that of all databases of Temporal, in bytes.
func (d *database) size(ctx context.Context) (int64, error) {
	query := "select sum(pg_database_size(datname)) from pg_database where datname like 'temporal%'"
	psql := filepath.Join(d.bin, "psql")
	cmd := exec.CommandContext(ctx, psql, "-h", databaseHost, "-p", databasePort, //nolint:gosec // Debian's
		"-U", databaseUser, "-d", "postgres", "-Atc", query)
	text, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("asking for the size of the databases: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

func (d *database) sql(ctx context.Context, name string, args ...string) error {
	return run(ctx, nil, append([]string{
		d.tool, "--plugin", "postgres12", "--endpoint", databaseHost, "--port", databasePort, "--user", databaseUser,
		"--password", "unused", "--database", name,
	}, args...)...)
}

// run runs a program until it ends; as nil it has the rights of this process.
func run(ctx context.Context, as *syscall.Credential, argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // ours, and PostgreSQL's
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: as}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", argv, err, said)
	}
	return nil
}

// postgres is the user that PostgreSQL runs as: it refuses to run as root.
func postgres() (*syscall.Credential, error) {
	found, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}
