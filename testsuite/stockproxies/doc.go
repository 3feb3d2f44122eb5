// Package stockproxies holds the tests of the prober against the proxies that people
// run: squid and tinyproxy as Debian ships them. `make test-tools` runs them; without
// the packages they fail and say what to install. Start reading at squid_test.go.
package stockproxies
