// Package samples holds files to copy from: two Proxies, a worker's configuration
// and a list of providers, and in a folder for each type of provider its configuration
// and a Proxy for it. The starter's dev command applies the two Proxies. It imports
// nothing of ours; start reading at proxies.yaml.
package samples

import _ "embed"

// Proxies is two Proxies on the provider "local", as YAML for "starter apply -f".
//
//go:embed proxies.yaml
var Proxies []byte
