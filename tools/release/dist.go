package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	folderMode = 0o755
	fileMode   = 0o644
	// sumsFile is what sha256sum -c reads.
	sumsFile = "SHA256SUMS"
	sbomEnd  = ".cdx.json"
	// textsFile goes with the binaries: the licences of what is in them ask for that.
	textsFile = "THIRD_PARTY_LICENCES"
)

// dist fills a folder with every binary, its SBOM, and the checksums of all. A folder
// that holds something is refused: what is in it would be taken for this version's.
func dist(ctx context.Context, j job, to string) error {
	if found, err := os.ReadDir(to); err == nil && len(found) > 0 {
		return fmt.Errorf("%s is not empty: remove it first", to)
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, folderMode); err != nil { //nolint:gosec // where whoever runs this wants it
		return err
	}
	for _, p := range j.on {
		for _, command := range commands() {
			if err := publish(ctx, j, command, p, to); err != nil {
				return err
			}
		}
	}
	if err := bringTexts(ctx, j, filepath.Join(to, textsFile)); err != nil {
		return err
	}
	sums, err := sumsOf(to)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, sumsFile), []byte(sums), fileMode); err != nil { //nolint:gosec // published
		return err
	}
	_, err = fmt.Fprintf(j.say, "release: version=%s go=%s binaries=%d\n",
		j.version, runtime.Version(), len(j.on)*len(commands()))
	return err
}

// publish makes one binary with its SBOM. One that can be run here has to say its version.
func publish(ctx context.Context, j job, command string, p platform, to string) error {
	binary := filepath.Join(to, binaryName(command, p))
	_, _ = fmt.Fprintf(j.say, "building %s\n", filepath.Base(binary))
	if err := compile(ctx, j, command, p, binary); err != nil {
		return err
	}
	if p == here() {
		if said, err := asked(ctx, binary); err != nil || said != j.version {
			return errors.Join(fmt.Errorf("%s says version %q, not %q", filepath.Base(binary), said, j.version), err)
		}
	}
	return describe(ctx, j, binary)
}

// describe writes the SBOM: the modules that the linker has put into the binary, with
// their checksums. It is the same each time, so it has neither a time nor a number.
func describe(ctx context.Context, j job, binary string) error {
	tool := filepath.Join(j.root, "bin", "cyclonedx-gomod")
	maker := exec.CommandContext(ctx, tool, "bin", "-json", "-std", //nolint:gosec // ours
		"-notimestamp", "-noserial", "-version", j.version, "-output", binary+sbomEnd, binary)
	maker.Dir = j.root
	if words, err := maker.CombinedOutput(); err != nil {
		return fmt.Errorf("the SBOM of %s, by %s (make tool-sbom builds it): %w\n%s", filepath.Base(binary), tool, err, words)
	}
	return nil
}

// bringTexts writes the licences of what the binaries hold.
func bringTexts(ctx context.Context, j job, to string) error {
	writer := exec.CommandContext(ctx, "go", "run", "./tools/licences", "-texts", to) //nolint:gosec // ours
	writer.Dir = j.root
	if words, err := writer.CombinedOutput(); err != nil {
		return fmt.Errorf("the licences: %w\n%s", err, words)
	}
	return nil
}

// sumsOf returns a line for each file of a folder, in the order of the names.
func sumsOf(folder string) (string, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, file := range files {
		if file.Name() == sumsFile {
			continue
		}
		sum, err := sumOf(filepath.Join(folder, file.Name()))
		if err != nil {
			return "", err
		}
		lines = append(lines, sum+"  "+file.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	return strings.Join(lines, ""), nil
}

func sumOf(path string) (sum string, err error) {
	f, err := os.Open(path) //nolint:gosec // of the folder that was just filled
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
