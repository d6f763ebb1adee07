#!/usr/bin/env bash
# Compares benchmarks of the working tree with those of another commit: both are built first, then they take turns.
#
#	scripts/benchstat.sh REF [PATTERN PACKAGE]
#
# Without a package it runs the packages with hot paths. Those of bench/ are the working tree's, on the code of both
# where they compile with it. A package without benchmarks in the other commit is named and skipped. Of COUNT rounds
# (10), each takes about 2 x the number of benchmarks seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
ref=${1:?which commit to compare with}
count=${COUNT:-10}
rows='Next/(atomic|buffer|set|cursor|take|snowflake|uid)$'
runs=("bench $rows" "segment ." "internal/issuer ." "internal/server/httpapi ." "internal/server/frontend ."
	"internal/server/access ." "internal/server/browser ." "internal/server/rpcapi ." "internal/telemetry ."
	"internal/server/respapi ." "internal/server/fastlane ." "client ." "snowflake ." "worker ." "driver/kv ." "textid ." "mask .")
[ $# -lt 2 ] || runs=("${3:-bench} $2")

tmp=$(mktemp -d)
cleanup() {
	git worktree remove --force "$tmp/ref" >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap cleanup EXIT
git worktree add --quiet --detach "$tmp/ref" "$ref"

# build ROOT PACKAGE BINARY
build() {
	if [ "$2" = bench ]; then
		(cd "$1/bench" && go test -mod=mod -c -o "$3" .) # the go.mod of the other commit may differ
	else
		(cd "$1" && go test -c -o "$3" "./$2")
	fi
}

# build_old PACKAGE BINARY: bench/ is that of the working tree, or else the commit's own.
build_old() {
	if [ "$1" = bench ] && [ -d "$tmp/ref/bench" ]; then
		mv "$tmp/ref/bench" "$tmp/bench"
		cp -r bench "$tmp/ref/bench"
		build "$tmp/ref" bench "$2" 2>/dev/null && return
		rm -rf "$tmp/ref/bench"
		mv "$tmp/bench" "$tmp/ref/bench"
	fi
	build "$tmp/ref" "$1" "$2"
}

built=()
for run in "${runs[@]}"; do
	package=${run%% *} name=${run%% *} && name=${name//\//-}
	if ! grep -rqs --include='*_test.go' '^func Benchmark' "$tmp/ref/$package"; then
		echo "benchstat: $package has no benchmarks at $ref: skipped" >&2
	elif ! build_old "$package" "$tmp/$name-old.test" 2>"$tmp/log" || ! build . "$package" "$tmp/$name-new.test" 2>"$tmp/log"; then
		echo "benchstat: $package does not compile: skipped" >&2
		cat "$tmp/log" >&2
	else
		built+=("$run")
	fi
done
[ ${#built[@]} -gt 0 ] || exit 1
for round in $(seq "$count"); do
	echo "benchstat: round $round of $count" >&2
	for run in "${built[@]}"; do
		package=${run%% *} name=${run%% *} && name=${name//\//-}
		for which in old new; do
			root=. && [ "$which" = new ] || root=$tmp/ref # test data is that of the commit
			(cd "$root/$package" && "$tmp/$name-$which.test" -test.run '^$' -test.bench "${run#* }" -test.benchtime 300ms \
				-test.cpu "1,$(nproc)" -test.benchmem) >>"$tmp/$which.txt" || echo "benchstat: a benchmark of $package failed, $which" >&2
		done
	done
done
go tool -modfile=tools.mod benchstat "$ref=$tmp/old.txt" "working=$tmp/new.txt"
