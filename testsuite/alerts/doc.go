// Package alerts holds the tests of what an operator is told: the rules of Prometheus,
// the dashboard of Grafana, and the page that each alert leads to. `make test-alerts`
// has promtool judge the rules, and a real Prometheus look at a fleet that fails in
// every way. Start reading at rules_test.go, then scene_test.go.
package alerts
