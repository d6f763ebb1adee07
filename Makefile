# Everything a developer or the CI runs. `make` alone lists the targets.

FUZZTIME ?= 10s
ARGS     ?=
NAME     ?=
KEEP     ?=
REF      ?= main

# The race detector leaves out SQLite, which is C translated to Go, and took more than half of the time of its tests.
# GORACE saves the second that each program of it rests at its end.
RACE = -race '-gcflags=modernc.org/...=-race=false'
export GORACE ?= atexit_sleep_ms=0

.DEFAULT_GOAL := help
.PHONY: help run build test test-all clients site translated reference pictures deps lint vuln bench benchstat lab lab-short mutants fuzz generate structure clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start a server with the embedded store (ARGS="--listen :9000" adds flags)
	go run ./cmd/leaf serve $(ARGS)

build: ## build bin/leaf and bin/leaf-bench
	GOWORK=$(CURDIR)/deploy/release/release.work go build -trimpath -tags grpcnotrace -o bin/ ./cmd/...

# e2e builds the programs as its tests are built: with the race detector in test-all.
PROGRAMS = go test -vet=off $(SHORT) -p 1 -parallel 6 ./cmd/...
PACKAGES = go test $(RACE) -vet=off $(SHORT) -p 4 -parallel 6 $$(go list ./... | grep -v /cmd/) && \
	go test -count=1 -run 'Imports|Structure' .
E2E = cd e2e && go vet ./... && go test $(if $(SHORT),,$(RACE)) -vet=off $(SHORT) -count=1 -p 1 -parallel 6 -timeout 30m ./...
# docs/ and deploy/ are outside of the modules site and deploy, so a cached result would say nothing.
OTHERS = (cd bench && go vet ./... && go test -run . ./...) && (cd examples && go vet ./... && go test ./...) && \
	(cd deploy && go vet ./... && go test $(if $(SHORT),-skip '^Test(Image|Cluster|GoInstall)') -count=1 ./...) && (cd site && go vet ./... && go test -count=1 ./...)

test: SHORT = -short
test: deps ## run the tests but for the long ones, the packages' with the race detector
	go vet ./...
	{ $(PROGRAMS) && $(OTHERS) && ($(E2E)); } & programs=$$!; { $(PACKAGES); }; others=$$?; \
	wait $$programs && exit $$others

test-all: deps ## run all tests with the race detector, short figures
	go vet ./...
	$(PROGRAMS) & programs=$$!; { $(PACKAGES); }; others=$$?; wait $$programs && exit $$others
	$(E2E)
	$(OTHERS)

clients: ## have programs in other languages take IDs from a server (ARGS=fetch: only that one)
	@clients/run $(ARGS)

site: ## build the website of docs/ into bin/site, for any file server (needs Node)
	@site/build

translated: ## declare that Chinese pages say what the English ones say now (NAME="start which")
	@cd site && go run ./translated $(NAME)

reference: ## write the reference pages of docs/ again, from the code
	go test -count=1 -run 'Reference|MetricsAreDocumented' ./api ./cmd/... ./internal/server ./internal/server/frontend -update
	@cd site && go run ./translated $(filter-out measured,$(basename $(notdir $(wildcard site/phrases/*.json))))

pictures: ## draw the pictures of docs/ again
	@cd site && go run ./pictures

deps: ## install what the tests need beside Go (Debian as root), or say what is missing
	@scripts/deps.sh

lint: ## check form: gofmt, vet, staticcheck, go fix, go.mod, sizes, generated code
	@scripts/lint.sh

vuln: ## look for known vulnerabilities (needs vuln.go.dev)
	go tool -modfile=tools.mod govulncheck ./...

bench: deps ## measure all beside its peers into docs/performance-tables.md, or NAME=http alone (25 minutes)
	@scripts/benchdeps.sh
	cd bench && go run ./lab $(NAME)
	@cd site && go run ./translated performance-tables

benchstat: ## compare the hot paths of the working tree with those of REF=main, in turns (COUNT=10 rounds)
	@scripts/benchstat.sh $(REF) $(ARGS)

lab-short: deps ## run the fault lab in short: simulator, saboteurs, clusters of real servers (minutes)
	cd e2e && go test -count=1 -v -run Schedules ./lab/sim -schedules 200
	cd e2e && go test -count=1 -v -run Saboteurs ./lab/sim
	cd e2e && go test -count=1 -v -parallel 6 -run '^Test(Cluster|Leases|Linearizable|StrictOrder)' . # they mostly wait

lab: deps ## run the fault lab in full and write its tables (about 80 minutes), or NAME=simulator alone; KEEP=DIR adds to earlier runs; FOR=1h simulates for longer
	cd e2e && go run ./lab/report $(if $(NAME),-only '$(NAME)') $(if $(KEEP),-keep "$(abspath $(KEEP))") $(if $(FOR),-for $(FOR))
	@cd site && go run ./translated reliability reliability-detail

mutants: deps ## plant small faults in the code that decides which IDs come, and name those that no test notices (ARGS="-seed 7 -n 50 worker")
	cd e2e && go run ./lab/mutants $(ARGS)

fuzz: ## run each fuzz target for FUZZTIME (default 10s)
	@scripts/fuzz.sh $(FUZZTIME)

structure: ## draw docs/structure.md again, from the imports
	go test -count=1 -run TestStructure -update .
	@cd site && go run ./translated structure

generate: ## write the generated code again (needs protoc)
	sh api/generate.sh

clean: ## remove what the targets above built
	rm -rf bin
