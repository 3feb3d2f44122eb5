//go:build linux

package kubelab

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// Image is what a container is made of.
type Image struct {
	Ref        string // NAME:TAG
	Entrypoint []string
	User       string // UID:GID; root if empty
	Layer      string // path of a tar of the whole file system
}

// blob is a part of an image, named by its digest.
type blob struct {
	MediaType string            `json:"mediaType"`
	Digest    string            `json:"digest"`
	Size      int64             `json:"size"`
	Notes     map[string]string `json:"annotations,omitempty"`
	text      []byte
}

const oci = "application/vnd.oci.image."

// Write writes an image as a tar in the OCI layout, which containerd imports.
func (i Image) Write(path string) (err error) {
	layer, err := digest(i.Layer)
	if err != nil {
		return err
	}
	config := textBlob("config.v1+json", map[string]any{
		"architecture": architecture, "os": "linux",
		"config": map[string]any{
			"Entrypoint": i.Entrypoint, "User": i.User, "Env": []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	manifest := textBlob("manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": config, "layers": []blob{layer},
	})
	manifest.Notes = map[string]string{"io.containerd.image.name": i.Ref}
	index := textBlob("index.v1+json", map[string]any{"schemaVersion": 2, "manifests": []blob{manifest}})
	out, err := os.Create(path) //nolint:gosec // the caller's
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	to := tar.NewWriter(out)
	return errors.Join(
		put(to, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)), put(to, "index.json", index.text),
		put(to, config.path(), config.text), put(to, manifest.path(), manifest.text),
		putFile(to, layer.path(), i.Layer), to.Close())
}

func (b blob) path() string { return "blobs/sha256/" + b.Digest[len("sha256:"):] }

func textBlob(kind string, content any) blob {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // maps of texts
	}
	sum := sha256.Sum256(text)
	return blob{
		MediaType: oci + kind, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(text)), text: text,
	}
}

func digest(path string) (b blob, err error) {
	f, err := os.Open(path) //nolint:gosec // the caller's
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	return blob{
		MediaType: oci + "layer.v1.tar", Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: size,
	}, err
}

func put(to *tar.Writer, name string, text []byte) error {
	err := to.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return err
}

func putFile(to *tar.Writer, name, path string) (err error) {
	f, err := os.Open(path) //nolint:gosec // the caller's
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return err
}
