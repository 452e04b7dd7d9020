# `make` shows the targets. Nothing but Go, a C compiler (for the race
# detector) and what the lab installs or asks for is needed.

GO  ?= go
BIN := bin/ck2hbase

# The servers that the tests share: both ends of the supported versions.
LAB := $(GO) run ./deploy/lab exec -clickhouse 3 -clickhouse-old 3 -hbase --

.DEFAULT_GOAL := help
.PHONY: help build demo test lint fmt bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/ck2hbase
	$(GO) build -trimpath -o $(BIN) ./cmd/ck2hbase

demo: ## Start real servers, load real data, run both example jobs, read rows back
	$(GO) run ./deploy/demo

test: ## Vet, then run all tests with the race detector on real servers
	@command -v "$$($(GO) env CC)" >/dev/null || { echo "make test needs a C compiler for the race detector: apt-get install gcc" >&2; exit 1; }
	$(GO) vet ./...
	$(LAB) $(GO) test -race -count=1 -timeout 40m ./...

lint: ## Run golangci-lint, which also holds the layers (the first time builds it: some minutes)
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...

fmt: ## Format the code and its imports
	$(GO) tool -modfile=tools/go.mod golangci-lint fmt ./...

bench: ## Run the benchmarks of the packages; benchmarks/ holds those against real servers
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean: ## Remove what was built; downloads stay in .cache
	rm -rf bin
