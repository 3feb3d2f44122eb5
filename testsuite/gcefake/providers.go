package gcefake

import "fmt"

const providersFile = `providers:
  - name: gcp
    type: gcp
    gcp:
      project: example-proj
      zones: [us-central1-a, us-central1-b]
      machineType: e2-small
      image: ubuntu-os-cloud/family/ubuntu-2404-lts-amd64
      firewall: managed
      sourceRanges: [127.0.0.0/8]
      endpoint: %s
      insecureNoAuthentication: true
`

// Providers is the file of providers of a worker whose provider gcp has its Compute Engine
// at that URL.
func Providers(url string) []byte { return fmt.Appendf(nil, providersFile, url) }
