package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"path"
	"sync"
)

//go:embed assets
var assets embed.FS

// Asset is a file that pages load.
type Asset struct {
	Type    string // of its content
	Content []byte
	Sum     string // SHA-256, hexadecimal
}

// served are the files that a browser may have; licences and versions are for readers of
// the source.
var served = []string{"htmx.min.js", "icon.svg", "page.css"}

// Assets returns every file that pages load, by its name.
var Assets = sync.OnceValue(func() map[string]Asset {
	all := map[string]Asset{}
	for _, name := range served {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			continue // TestEveryAssetIsThere
		}
		sum := sha256.Sum256(content)
		all[name] = Asset{typeOf(name), content, hex.EncodeToString(sum[:])}
	}
	return all
})

// typeOf does not ask the machine, whose tables differ.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(path.Ext(name))
	}
}

// versionLength of a sum, in characters, tells two versions apart.
const versionLength = 12

// AssetPath is where a file is served. It holds a part of its sum, so that a browser may
// keep it for good.
func AssetPath(name string) string {
	sum := Assets()[name].Sum
	return "/assets/" + name + "?v=" + sum[:min(versionLength, len(sum))]
}
