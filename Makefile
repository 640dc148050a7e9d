# make builds bin/tare; make weigh measures the runtimes on this machine; make test runs
# the tests; make help lists all targets.

.DEFAULT_GOAL := build
.PHONY: build image weigh weigh-engines test test-engines test-cluster test-browser test-vm test-tools test-all test-beside prove torture lint audit bench fuzz screenshots docs runtimes probe bpf clean help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tare

# The go command, found or downloaded when the first target needs it.
GO = $(eval GO := $(shell scripts/go))$(or $(GO),$(error no go command; the reason is above))

# Use only the toolchain that scripts/go selects; the go command must not download another.
export GOTOOLCHAIN := local
# runc is in an sbin directory, which is often not in a user's PATH.
export PATH := $(PATH):$(CACHE)/bin:/usr/local/sbin:/usr/sbin:/sbin

MODULE  := github.com/tare-bench/tare
VERSION  = $(shell git describe --tags --always --dirty 2>/dev/null)
# Leave out unused parts of libraries: fortio's embedded root certificates, which cost a
# tenth of the run time of a command, and gRPC's trace pages.
TAGS    := no_tls_fallback,grpcnotrace
LDFLAGS  = $(if $(VERSION),-X $(MODULE)/internal/version.Version=$(VERSION))

GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)
ACTIONLINT       := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
VALE             := github.com/errata-ai/vale/v3/cmd/vale@v3.17.1

FUZZTIME ?= 10s
ARGS     ?= # for tare, or for the go test of bench: make bench ARGS=-benchtime=60x
TESTARGS ?= # for go test: make test TESTARGS='-run Batch'

BUILD = CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '-s -w $(LDFLAGS)'

build: ## bin/tare, a single static binary (default target)
	$(BUILD) -o bin/tare ./cmd/tare

image: build ## bin/tare.oci, the container image for amd64 and arm64, built without Docker
	GOARCH=amd64 $(BUILD) -o bin/tare-amd64 ./cmd/tare
	GOARCH=arm64 $(BUILD) -o bin/tare-arm64 ./cmd/tare
	rm -rf bin/tare.oci
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null)} \
	bin/tare image -o bin/tare.oci --binary linux/amd64=bin/tare-amd64 --binary linux/arm64=bin/tare-arm64 $(ARGS)

weigh: build ## measure the installed runtimes; installs runc and crun if possible
	@scripts/install-runtimes
	@mkdir -p records
	bin/tare lifecycle -o records/lifecycle-$$(date -u +%Y%m%dT%H%M%SZ).jsonl $(ARGS)

weigh-engines: build ## start and measure docker, podman, containerd and CRI-O; prints what it installs first
	@GO='$(GO)' scripts/install-tests engines
	@mkdir -p records
	$(GO) build -o bin/with ./internal/testing/engines/with
	bin/with sh -c 'exec bin/tare lifecycle runc docker/runc docker+cli/runc podman/runc containerd/runc \
	cri+containerd/runc cri+cri-o/runc --cri containerd=$$CONTAINERD_CRI --cri cri-o=$$CRIO_CRI \
	-o records/engines-$$(date -u +%Y%m%dT%H%M%SZ).jsonl $(ARGS)'

# Built with the same flags as the tests, so both share the compiled standard library.
GOTESTSUM = CGO_ENABLED=0 GOFLAGS=-trimpath $(GO) tool gotestsum
# Do not list the hundreds of skipped tests of other tiers; the last line has their number.
QUICK = --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary=skipped
FULL  = --format pkgname-and-test-fails --format-hide-empty-pkg

test: ## gofmt, vet, and all tests that need only Go, runc and crun; takes minutes, installs nothing
	@unclean=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && if [ -n "$$unclean" ]; then echo "not as gofmt writes it: $$unclean"; exit 1; fi
	CGO_ENABLED=0 $(GO) vet -trimpath -tags prove,$(TAGS) ./...
	@GO='$(GO)' $(GOTESTSUM) $(QUICK) --raw-command -- scripts/go-test quick $(TESTARGS)
	@echo 'More tests: make test-engines, test-cluster, test-browser, test-vm, test-tools, or all of them: make test-all (each says first what it installs)'

test-engines: ## tests on real engines: Docker, Podman, containerd 1 and 2, CRI-O, gVisor
test-cluster: ## tests on a real Kubernetes cluster
test-browser: ## tests of HTML pages in Chromium
test-vm: ## tests in virtual machines: systemd with cgroup v2, and a bare kernel
test-tools: ## tests against other programs: compilers, fio, bpftool, DuckDB, an S3 store
test-engines test-cluster test-browser test-vm test-tools: test-%:
	@GO='$(GO)' scripts/install-tests $*
	@GO='$(GO)' $(GOTESTSUM) $(FULL) --raw-command -- scripts/go-test $* $(TESTARGS)

test-all: ## all tests of all tiers, with the race detector; prints what it installs first
	@GO='$(GO)' scripts/install-tests engines youki cluster browser vm tools
	@GO='$(GO)' $(GOTESTSUM) $(FULL) --raw-command -- scripts/go-test all $(TESTARGS)

TIER = test

test-beside: ## tests of TIER next to busy loops, disk writers and BPF programs; NEIGHBOURS='-docker 20' adds containers
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -o bin/neighbours ./internal/testing/neighbours
	bin/neighbours $(NEIGHBOURS) $(MAKE) $(TIER)

PROOFS = $(shell grep -rl --include='*_test.go' '^//go:build prove$$' internal record)

prove: ## tests that need a quiet machine: ratios, tight bounds, thousands of simulated runs; takes minutes
	TARE_REQUIRE=all $(GOTESTSUM) --format testname -- -tags prove,$(TAGS) -p 1 -count=1 -timeout=60m $(TESTARGS) \
	-run "^($$(grep -ho '^func Test[A-Za-z0-9_]*' $(PROOFS) | cut -c6- | paste -sd '|'))$$" $(sort $(addprefix ./,$(dir $(PROOFS))))

GUARANTEES = $(shell grep -oh 'Test[A-Z][A-Za-z0-9]*' SECURITY.md | sort -u | paste -sd '|')

torture: ## release tests: SECURITY.md's guarantees, kills, faulty runtimes and daemons; takes an hour
	TARE_REQUIRE=all $(GOTESTSUM) --format testname --format-hide-empty-pkg -- -tags torture,$(TAGS) -p 1 -count=1 -timeout=120m $(TESTARGS) \
	-run '^(TestTorture|$(GUARANTEES))$$' ./internal/... ./record

PROSE = README.md CONTRIBUTING.md SECURITY.md docs/*.md $$(find cmd internal published record -name '*.go' -not -path '*/testdata/*')

lint: $(GOLANGCI) ## golangci-lint, actionlint, vale, and shellcheck if installed
	PATH="$(dir $(GO)):$$PATH" $(GOLANGCI) run ./...
	$(GO) run $(ACTIONLINT) docs/ci/github.yml
	@$(GO) run $(VALE) $(PROSE)
	@if command -v shellcheck >/dev/null; then shellcheck scripts/* .ci/run; \
	else echo "no shellcheck here: the scripts are not checked"; fi

audit: ## reproducible build, licences, bill of materials, known vulnerabilities
	@GO='$(GO)' scripts/audit

$(GOLANGCI):
	@mkdir -p $(@D)
	@echo "golangci-lint $(GOLANGCI_VERSION): building; this takes minutes"
	@new=$$(mktemp -d $(@D)/new.XXXXXX) && trap 'rm -rf "$$new"' EXIT && \
	GOBIN=$$new $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) && \
	mv $$new/golangci-lint $@

bench: ## benchmark tare itself
	GOFLAGS=-tags=$(TAGS) $(GO) test -run='^$$' -bench=. $(ARGS) $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Benchmark' ./internal ./record)))

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort -u | \
	while IFS=: read -r file func; do \
		echo "$${file%/*} $${func#func }"; \
		$(GO) test -run='^$$' -fuzz="^$${func#func }\$$" -fuzztime=$(FUZZTIME) "$${file%/*}" || exit 1; \
	done

screenshots: ## regenerate docs/screenshots from stored records
	$(GO) test -count=1 -run '^TestDocsHaveAScreenshotOfEveryPage$$' ./internal/testing/browser -update

docs: ## generate the tables in docs/figures.md from the instruments' catalogues
	$(GO) test -count=1 -run '^TestFiguresPageHasEveryCatalogue$$' ./internal/instrument -update

runtimes: ## build youki and runsc, which Debian does not package, into the user's cache
	@GO='$(GO)' scripts/install-runtimes build

probe: ## rebuild the embedded C programs
	scripts/build-probe

bpf: ## rebuild the embedded BPF programs; needs clang-14, llvm-14 and libbpf-dev
	$(GO) generate ./internal/node/tracer ./internal/instrument/bpf/run/datapath

clean: ## remove build outputs; keeps records
	rm -rf bin

help: ## print this help
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
