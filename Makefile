# Everything here needs Go and make, and builds what else it needs; `make test-race`
# needs a C compiler, too. `make help` is the list.

TOOL     := go run ./tools/build
MODULES  := . tools/temporal tools/temporal-server tools/lint tools/openapi tools/jaeger tools/kubernetes tools/kwok tools/helm \
	tools/sbom tools/vuln tools/benchstat
PACKAGES := ./...
# Where the race detector pays: what is called concurrently.
RACY     := ./providers/... ./workflows/... ./activities/... ./internal/... ./testsuite/fake/... \
	./testsuite/providertest/... ./testsuite/toy/...
# The longest package starts a Temporal server and real proxies.
TIMEOUT  := 15m
# These two wait for most of their time, and are the longest: they begin first, and one
# package more than there are processors is tested at a time.
LONGEST  := ./testsuite/realserver ./testsuite/e2e
AT_ONCE   = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# A revision is stamped where git can tell it.
STAMP     = $(shell git status >/dev/null 2>&1 && echo true || echo false)

.DEFAULT_GOAL := help
.PHONY: help run run-gcp-fake clean-dev test test-race test-tools test-netns test-integration-kvm test-integration-gcp \
	contract chaos chaos-fleet chaos-gcp fuzz lint verify build generate \
	replay-record clean test-runbooks test-integration-kubernetes needs-kubernetes \
	vet format generated tidy layers ledger clean-tree tool-temporal tool-lint tool-kubernetes \
	test-chart tool-helm compose-check e2e-memory \
	dist release-check release-notes tool-sbom tool-vuln govulncheck licences \
	tool-jaeger test-traces tool-temporal-server e2e-cluster bench bench-create-cluster bench-go profile tool-bench test-alerts

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: tool-temporal build ## the fleet on this machine: Temporal, worker, API and two sample proxies
	@exec bin/starter dev

# On a state of its own, which ends with it.
run-gcp-fake: tool-temporal build ## `make run` on a Compute Engine of this machine: no account, no cost, nothing stays
	@go build -o bin/gcefaked ./testsuite/gcefake/gcefaked
	@export EGRESSFLEET_DEV_DIR="$${EGRESSFLEET_DEV_DIR:-.dev-gcp-fake}"; exec bin/starter dev \
	--providers docs/samples/gcp/fake.yaml --proxies docs/samples/gcp/fake-proxies.yaml --beside 'gcefaked -guests'

clean-dev: build ## remove the instances and the state that `make run` left
	@exec bin/starter dev clean

test: tool-temporal build ## unit, workflow, conformance, replay, layer and end-to-end tests
	go test -p $(AT_ONCE) -timeout $(TIMEOUT) $(if $(filter ./...,$(PACKAGES)),$(LONGEST)) $(PACKAGES)

test-race: tool-temporal ## the packages that are called concurrently, under the race detector
	CGO_ENABLED=1 go test -race -timeout $(TIMEOUT) $(RACY)

test-integration-gcp: ## one instance in a real Google Cloud project: docs/runbooks/gcp-integration.md
	go test -count=1 -tags=integration -timeout 30m -run '^TestRealProject$$' ./providers/gcp

contract: ## the conformance suite over every provider and every mutant
	@go run ./tools/contract

chaos: tool-temporal ## 200 proxies while workers are killed, Temporal goes away and the backend fails: two minutes
	@go build -o bin/chaos ./testsuite/chaos
	@bin/chaos

chaos-fleet: tool-temporal ## an hour in two minutes: what looks after the fleet, while instances, targets and owners go
	@go build -o bin/chaosfleet ./testsuite/chaosfleet
	@bin/chaosfleet

chaos-gcp: tool-temporal ## 200 proxies on a Compute Engine that fails late, is full, slow and forgetful: two minutes
	@go build -o bin/chaosgcp ./testsuite/chaosgcp
	@bin/chaosgcp

# What the snippets start is in namespaces of its own, and goes with them.
test-tools: tool-temporal build ## Debian's squid, tinyproxy, xorriso, shells and Chromium, and every client of docs/using-proxies.md; Linux, root
	@test "$$(uname -s)" = Linux || { echo "these tools are Debian's, and this is $$(uname -s)" >&2; exit 1; }
	@test "$$(id -u)" = 0 || { echo "ports below 1024 and namespaces need root" >&2; exit 1; }
	@for tool in squid tinyproxy xorriso ip unshare curl prometheus chromium scrapy node npm bash zsh fish; do \
	PATH="$$PATH:/usr/sbin:/sbin" command -v $$tool >/dev/null || { echo "$$tool is not installed; on Debian: apt-get install -y \
	--no-install-recommends squid tinyproxy xorriso iproute2 util-linux curl prometheus chromium python3-scrapy \
	nodejs npm bash bash-completion zsh fish" >&2; exit 1; }; done
	go test -count=1 -tags=tools -timeout $(TIMEOUT) ./testsuite/stockproxies ./providers/kvm/seed ./testsuite/snippets \
	./testsuite/page
	go test -count=1 -tags=tools -timeout $(TIMEOUT) -run '^TestShell|^TestThePicture' ./starter
	go test -count=1 -tags=tools -timeout $(TIMEOUT) -run '^TestThePage' ./testsuite/e2e

test-traces: tool-temporal tool-jaeger ## one trace for each provider, from the request to the backend, as a real Jaeger has it
	go test -count=1 -tags=tools -timeout $(TIMEOUT) ./testsuite/traces

test-alerts: tool-temporal build ## the alerts and the dashboard, by promtool and on a fleet that fails in every way; Linux
	@test "$$(uname -s)" = Linux || { echo "the proxies' addresses of this test are Linux's, and this is $$(uname -s)" >&2; \
	exit 1; }
	@for tool in prometheus promtool curl; do command -v $$tool >/dev/null || { echo "$$tool is not installed; on Debian: \
	apt-get install -y --no-install-recommends prometheus curl" >&2; exit 1; }; done
	go test -count=1 -tags=tools -timeout $(TIMEOUT) ./testsuite/alerts

test-runbooks: tool-temporal build ## a fleet installed, upgraded and taken away, and what is secret rotated, by the commands of the runbooks
	@for tool in curl openssl; do command -v $$tool >/dev/null || { echo "$$tool is not installed; on Debian: \
	apt-get install -y --no-install-recommends curl openssl" >&2; exit 1; }; done
	go test -count=1 -tags=tools -timeout $(TIMEOUT) ./testsuite/runbooks

# What a run that was cut off leaves is in namespaces of its own, and goes with them.
test-netns: tool-temporal ## the second prober between network namespaces, with squid and tinyproxy; Linux, root
	@test "$$(uname -s)" = Linux || { echo "network namespaces are Linux's, and this is $$(uname -s)" >&2; exit 1; }
	@test "$$(id -u)" = 0 || { echo "network namespaces need root" >&2; exit 1; }
	@for tool in ip squid tinyproxy; do PATH="$$PATH:/usr/sbin" command -v $$tool >/dev/null || { echo "$$tool is not \
	installed; on Debian: apt-get install -y --no-install-recommends iproute2 squid tinyproxy" >&2; exit 1; }; done
	@export NETNS_PREFIX=egf$$$$; left() { ip netns list | awk -v p="$$NETNS_PREFIX-" 'index($$1, p) == 1 {print $$1}'; }; \
	trap 'for n in $$(left); do ip netns pids $$n | xargs -r kill -9; ip netns delete $$n; done' EXIT; \
	go test -count=1 -tags=tools -timeout $(TIMEOUT) ./testsuite/namespaces

# SKIP=kvm leaves it out; nothing else does. The hosts and their guests end with the test's namespaces.
test-integration-kvm: tool-temporal tool-jaeger build ## the kvm provider on two real hosts, with guests under emulation; Linux, root
	@case " $(SKIP) " in *" kvm "*) echo "kvm: left out, as SKIP=kvm asks"; exit 0;; esac; \
	go run ./tools/kvmlab check && go run ./tools/kvmlab images || exit 1; \
	report=$$(mktemp) && trap 'rm -f "$$report"' EXIT && \
	KVM_REPORT=$$report go test -p 1 -count=1 -tags=integration -timeout 30m \
	./providers/kvm/... ./testsuite/kvm && grep "^kvm: " "$$report"

# Whatever it starts is in namespaces of its own, and goes with them.
ifeq ($(filter kubernetes,$(SKIP)),)
test-integration-kubernetes needs-kubernetes: export PATH := $(PATH):/usr/sbin:/sbin
test-integration-kubernetes: needs-kubernetes tool-temporal tool-kubernetes build ## the provider before real API servers, kwok's Pods and real ones; Linux, root
	go test -count=1 -tags=integration -timeout $(TIMEOUT) ./testsuite/kubelab
	@go test -c -tags=integration -o bin/kubernetes.test ./testsuite/kubernetes
	@cd testsuite/kubernetes && ../../bin/kubernetes.test -test.timeout 30m
else
test-integration-kubernetes:
	@echo "test-integration-kubernetes is left out, since SKIP=$(SKIP) names it"
endif

# The API server and its store are processes of this machine's; no node, so no root is needed.
test-chart: tool-helm tool-kubernetes ## the Helm chart: lint, and what it renders before a real API server; Linux
	@PATH="$$PATH:/usr/sbin" command -v etcd >/dev/null || { echo "etcd is not installed; on Debian: apt-get install -y \
	--no-install-recommends etcd-server" >&2; exit 1; }
	go test -count=1 -tags=integration -timeout $(TIMEOUT) ./testsuite/chart

# Mounts are in a namespace of its own, and the control group is removed at the end.
e2e-memory: tool-temporal-server ## the worker as its image runs it, in 128 MiB with 2,000 proxies (or PROXIES): some minutes; Linux, root
	@CGO_ENABLED=0 go build -trimpath -buildvcs=$(STAMP) -ldflags='-s -w' -o bin/worker-static ./worker
	@go build -o bin/memory ./testsuite/memory
	@bin/memory $(if $(PROXIES),-proxies $(PROXIES))

# Processes, network and mounts are in namespaces that end with the run.
e2e-cluster: tool-temporal tool-temporal-server build ## two Temporal servers on PostgreSQL, 200 proxies, kills, rolls, a lost database: some minutes; Linux, root
	@go build -o bin/cluster ./testsuite/cluster
	@bin/cluster

compose-check: ## deploy/compose, as far as that goes without a container engine
	go test -count=1 ./testsuite/compose

# VERSION=v1.2.3 names it; without, git describe does.
dist: tool-sbom ## static binaries of every platform with SBOMs and checksums, in dist/; VERSION=v1.2.3 PLATFORMS=linux-amd64
	@rm -rf dist
	go run ./tools/release dist -out dist -version "$(VERSION)" -platforms "$(PLATFORMS)"

release-check: ## the binaries built twice, from two folders, once with nothing compiled before: the same bytes
	go run ./tools/release check

release-notes: ## what the changelog has of VERSION=v1.2.3
	@go run ./tools/release notes "$(VERSION)"

govulncheck: tool-vuln ## known vulnerabilities in what our code calls; needs https://vuln.go.dev
	go run ./tools/vulncheck

licences: ## docs/licences.md anew; a licence that we cannot meet is refused
	go run ./tools/licences

needs-kubernetes:
	@test "$$(uname -s)" = Linux || { echo "nodes are Linux's, and this is $$(uname -s)" >&2; exit 1; }
	@test "$$(id -u)" = 0 || { echo "nodes of Kubernetes need root" >&2; exit 1; }
	@for need in etcd containerd ctr runc debootstrap ip unshare nsenter /usr/lib/cni/bridge; do \
	command -v $$need >/dev/null || { echo "$$need is not installed; on Debian: apt-get install -y \
	--no-install-recommends etcd-server containerd runc containernetworking-plugins debootstrap iproute2 util-linux" >&2; \
	exit 1; }; done

# `make bench-NAME` is one part: discovery, probes, sweep, create, clients, latency, start, cost, memory, soak. SIZES=10,100,1000 and RUNS=1 are for a first look.
BENCH := $(if $(SIZES),-sizes $(SIZES)) $(if $(RUNS),-runs $(RUNS))
bench: tool-bench ## what it costs, beside baselines of the same run: docs/performance.md; more than an hour; Debian's nginx
	@bin/bench $(BENCH)

bench-%: tool-bench
	@bin/bench $(BENCH) $*

# The server and the database of `make e2e-cluster`: Linux, root, Debian's postgresql and iproute2.
bench-create-cluster: tool-temporal tool-temporal-server build tool-bench ## bench-create on two Temporal servers and PostgreSQL
	@go build -o bin/cluster ./testsuite/cluster
	@bin/cluster bin/bench $(BENCH) create

bench-go: ## go test -bench for decide, selectors and discovery, by benchstat
	@$(TOOL) benchstat
	@go test -run '^$$' -bench 'Decide|Selectors|Endpoints|Render|Discovery|Snapshot|Replay' -count 10 -benchtime 0.2s \
	./workflows/proxy ./api/discovery ./api/server ./testsuite/replay >bin/bench-go.txt || { cat bin/bench-go.txt >&2; exit 1; }
	@bin/benchstat bin/bench-go.txt

profile: tool-bench ## processor and memory of PART (discovery) at its sizes, into bin/profiles, and what is on top
	-@BENCH_PROFILE=bin/profiles bin/bench -profile bin/profiles $(BENCH) $(or $(PART),discovery) >/dev/null
	@for of in bin/profiles/*.cpu; do echo "$$of"; go tool pprof -top -nodecount 25 bin/bench "$$of" 2>/dev/null; done

tool-bench: tool-temporal
	@go build -o bin/bench ./testsuite/bench
	@CGO_ENABLED=0 go build -trimpath -buildvcs=$(STAMP) -ldflags='-s -w' -o bin/worker-static ./worker

# One after the other: go test fuzzes one target at a time. What one finds stays in its testdata/fuzz.
FUZZTIME := 30s
fuzz: ## what reads bodies, filters and the file of tokens, on inputs that nobody thought of; FUZZTIME=30s each
	@for at in ./api/server/strictjson:FuzzDecodeAgreesWithEncodingJSON ./api/server:FuzzABodyIsTakenOrRefused \
	./api/server:FuzzAFilterIsReadOrRefused ./api/access:FuzzAFileOfTokensIsReadOrRefused; do \
	go test -run '^$$' -fuzz "^$${at##*:}$$" -fuzztime $(FUZZTIME) $${at%%:*} || exit 1; done

lint: tool-lint ## golangci-lint, and workflowcheck over the workflows
	bin/golangci-lint run $(PACKAGES)
	bin/workflowcheck -config tools/lint/workflowcheck.yaml ./workflows/...

verify: vet format generated tidy layers ledger clean-tree ## what must hold before a commit; a dirty tree fails

build: ## bin/worker and bin/starter
	@mkdir -p bin
	@test -x bin/starter || echo "building the worker and the starter: about two minutes, the first time only"
	@go build -trimpath -buildvcs=$(STAMP) -o bin/worker ./worker
	@go build -trimpath -buildvcs=$(STAMP) -o bin/starter ./starter

generate: ## the code that api/openapi.yaml describes, and the table of providers
	go generate $(PACKAGES)

replay-record: tool-temporal ## histories of the workflows as they are now, beside those that are recorded
	go test ./testsuite/realserver -count=1 -args -record

clean: ## remove bin/; tools stay in the user's cache
	rm -rf bin

vet:
	go vet $(PACKAGES)
	go vet -tags=integration,tools $(PACKAGES)
	GOOS=darwin CGO_ENABLED=0 go vet -tags=integration,tools $(PACKAGES)

format: tool-lint
	bin/golangci-lint fmt --diff

# Compares with what was there, so that uncommitted work may be verified, too.
generated:
	@before=$$(git diff | git hash-object --stdin); go generate $(PACKAGES) && \
	test "$$before" = "$$(git diff | git hash-object --stdin)" || \
	{ echo "generated files were not current; make generate has been run, commit them" >&2; exit 1; }

tidy:
	@for module in $(MODULES); do (cd $$module && echo "go mod tidy -diff in $$module" && go mod tidy -diff) || exit 1; done

layers:
	go test -count=1 ./testsuite/layers

ledger: ## every rule of the provider contract has its proof: docs/contract-ledger.md
	go run ./tools/ledger

clean-tree:
	@test -z "$$(git status --porcelain)" || { echo "the tree is dirty:" >&2; git status --short >&2; exit 1; }

tool-temporal:
	@$(TOOL) temporal

tool-temporal-server:
	@$(TOOL) temporal-server temporal-sql-tool

tool-jaeger:
	@$(TOOL) jaeger

tool-kubernetes:
	@$(TOOL) kube-apiserver kube-controller-manager kube-scheduler kubelet kwok

tool-helm:
	@$(TOOL) helm

tool-sbom:
	@$(TOOL) cyclonedx-gomod

tool-vuln:
	@$(TOOL) govulncheck

tool-lint:
	@$(TOOL) golangci-lint workflowcheck
