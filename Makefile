# make builds bin/tare; make weigh weighs what is here; make test tests it;
# make help lists the rest.

.DEFAULT_GOAL := build
.PHONY: build image weigh weigh-engines test test-engines test-cluster test-browser test-vm test-tools test-all test-beside prove torture lint audit bench fuzz screenshots docs runtimes probe bpf clean help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tare

# Found, or fetched, the first time that a target needs it.
GO = $(eval GO := $(shell scripts/go))$(or $(GO),$(error no go command; the reason is above))

# What the tree says is what is used: nothing else is fetched on the side.
export GOTOOLCHAIN := local
# runc lives in sbin, which a user's own path often leaves out.
export PATH := $(PATH):$(CACHE)/bin:/usr/local/sbin:/usr/sbin:/sbin

MODULE  := github.com/tare-bench/tare
VERSION  = $(shell git describe --tags --always --dirty 2>/dev/null)
# What libraries do when they are linked in, and nobody here needs: fortio's own root
# certificates, which take a tenth of what a command costs, and gRPC's trace pages.
TAGS    := no_tls_fallback,grpcnotrace
LDFLAGS  = $(if $(VERSION),-X $(MODULE)/internal/version.Version=$(VERSION))

GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)
ACTIONLINT       := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

FUZZTIME ?= 10s
ARGS     ?= # for tare, or for the go test of bench: make bench ARGS=-benchtime=60x
TESTARGS ?= # for go test: make test TESTARGS='-run Batch'

BUILD = CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '-s -w $(LDFLAGS)'

build: ## bin/tare, the one static binary (the default)
	$(BUILD) -o bin/tare ./cmd/tare

image: build ## bin/tare.oci, the container image of tare for amd64 and arm64, with no Docker
	GOARCH=amd64 $(BUILD) -o bin/tare-amd64 ./cmd/tare
	GOARCH=arm64 $(BUILD) -o bin/tare-arm64 ./cmd/tare
	rm -rf bin/tare.oci
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null)} \
	bin/tare image -o bin/tare.oci --binary linux/amd64=bin/tare-amd64 --binary linux/arm64=bin/tare-arm64 $(ARGS)

weigh: build ## weigh the runtimes that are here; installs runc and crun if it can
	@scripts/install-runtimes
	@mkdir -p records
	bin/tare lifecycle -o records/lifecycle-$$(date -u +%Y%m%dT%H%M%SZ).jsonl $(ARGS)

weigh-engines: build ## weigh docker, podman, containerd and CRI-O, started for it; says first what it installs
	@GO='$(GO)' scripts/install-tests engines
	@mkdir -p records
	$(GO) build -o bin/with ./internal/testing/engines/with
	bin/with sh -c 'exec bin/tare lifecycle runc docker/runc docker+cli/runc podman/runc containerd/runc \
	cri+containerd/runc cri+cri-o/runc --cri containerd=$$CONTAINERD_CRI --cri cri-o=$$CRIO_CRI \
	-o records/engines-$$(date -u +%Y%m%dT%H%M%SZ).jsonl $(ARGS)'

# Compiled with the flags of the tests, which share the standard library with it.
GOTESTSUM = CGO_ENABLED=0 GOFLAGS=-trimpath $(GO) tool gotestsum
# Quiet about the hundreds of tests that other tiers run; their number is in the last line.
QUICK = --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary=skipped
FULL  = --format pkgname-and-test-fails --format-hide-empty-pkg

test: ## gofmt, vet, and every test that needs only Go, runc and crun: minutes; installs nothing
	@unclean=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && if [ -n "$$unclean" ]; then echo "not as gofmt writes it: $$unclean"; exit 1; fi
	CGO_ENABLED=0 $(GO) vet -trimpath -tags prove,$(TAGS) ./...
	@GO='$(GO)' $(GOTESTSUM) $(QUICK) --raw-command -- scripts/go-test quick $(TESTARGS)
	@echo 'More tests: make test-engines, test-cluster, test-browser, test-vm, test-tools, or all of them: make test-all (each says first what it installs)'

test-engines: ## the tests on real engines: Docker, Podman, containerd 1 and 2, CRI-O, gVisor
test-cluster: ## the tests on a real Kubernetes cluster
test-browser: ## the tests of pages, in Chromium
test-vm: ## the tests in virtual machines: systemd and cgroup v2, and a bare kernel
test-tools: ## the tests against other programs: compilers, fio, bpftool, DuckDB, an S3 store
test-engines test-cluster test-browser test-vm test-tools: test-%:
	@GO='$(GO)' scripts/install-tests $*
	@GO='$(GO)' $(GOTESTSUM) $(FULL) --raw-command -- scripts/go-test $* $(TESTARGS)

test-all: ## every test of every tier, and the race detector; says first what it installs
	@GO='$(GO)' scripts/install-tests engines youki cluster browser vm tools
	@GO='$(GO)' $(GOTESTSUM) $(FULL) --raw-command -- scripts/go-test all $(TESTARGS)

TIER = test

test-beside: ## the tests of TIER with busy loops, disk writers and BPF programs as neighbours; NEIGHBOURS='-docker 20' adds containers
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -o bin/neighbours ./internal/testing/neighbours
	bin/neighbours $(NEIGHBOURS) $(MAKE) $(TIER)

PROOFS = $(shell grep -rl --include='*_test.go' '^//go:build prove$$' internal record)

prove: ## what only a quiet machine can show, in minutes: ratios, small bounds, thousands of simulated runs
	TARE_REQUIRE=all $(GOTESTSUM) --format testname -- -tags prove -p 1 -count=1 -timeout=60m $(TESTARGS) \
	-run "^($$(grep -ho '^func Test[A-Za-z0-9_]*' $(PROOFS) | cut -c6- | paste -sd '|'))$$" $(sort $(addprefix ./,$(dir $(PROOFS))))

torture: ## before a release, most of an hour: kills, lying runtimes, hostile records and daemons
	TARE_REQUIRE=all $(GO) test -tags torture -run '^TestTorture$$' -count=1 -timeout=120m -v ./internal/cli | grep -v '^ *=== '

lint: $(GOLANGCI) ## golangci-lint, actionlint, and shellcheck where it is installed
	PATH="$(dir $(GO)):$$PATH" $(GOLANGCI) run ./...
	$(GO) run $(ACTIONLINT) docs/ci/github.yml
	@if command -v shellcheck >/dev/null; then shellcheck scripts/* .ci/run; \
	else echo "no shellcheck here: the scripts are not checked"; fi

audit: ## two builds with one sum, licences and a bill of materials, known vulnerabilities
	@GO='$(GO)' scripts/audit

$(GOLANGCI):
	@mkdir -p $(@D)
	@echo "golangci-lint $(GOLANGCI_VERSION): building; this takes minutes"
	@new=$$(mktemp -d $(@D)/new.XXXXXX) && trap 'rm -rf "$$new"' EXIT && \
	GOBIN=$$new $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) && \
	mv $$new/golangci-lint $@

bench: ## tare's own speed and cost
	GOFLAGS=-tags=$(TAGS) $(GO) test -run='^$$' -bench=. $(ARGS) $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Benchmark' ./internal ./record)))

fuzz: ## every fuzz target, FUZZTIME (10s) each
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort -u | \
	while IFS=: read -r file func; do \
		echo "$${file%/*} $${func#func }"; \
		$(GO) test -run='^$$' -fuzz="^$${func#func }\$$" -fuzztime=$(FUZZTIME) "$${file%/*}" || exit 1; \
	done

screenshots: ## take the pictures of docs/screenshots anew, of stored records
	$(GO) test -count=1 -run '^TestDocsHaveAPictureOfEveryPage$$' ./internal/testing/browser -update

docs: ## write the tables of quantities in docs/figures.md, of the instruments' catalogues
	$(GO) test -count=1 -run '^TestThePageOfFiguresHasTheRowsOfEveryCatalogue$$' ./internal/instrument -update

runtimes: ## build youki and runsc, which Debian has not, into the user's cache
	@GO='$(GO)' scripts/install-runtimes build

probe: ## rebuild the embedded C programs
	scripts/build-probe

bpf: ## rebuild the embedded BPF programs; wants clang-14, llvm-14 and libbpf-dev
	$(GO) generate ./internal/node/tracer ./internal/instrument/bpf/run/datapath

clean: ## remove what was built; records stay
	rm -rf bin

help: ## this
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
