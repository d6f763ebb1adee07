#!/usr/bin/env bash
# Compares benchmarks of the working tree with those of another commit: both are built first, then they take turns.
#
#	scripts/benchstat.sh REF [PATTERN [PACKAGE]]
#
# Without a package the benchmarks are those in bench/, as they stand in the working tree, on the code of both. A run
# takes about COUNT x 2 x the number of benchmarks seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
ref=${1:?which commit to compare with}
pattern=${2:-'Next/(atomic|buffer|set|cursor|take|snowflake|uid)$'}
package=${3:-bench}
count=${COUNT:-10}

tmp=$(mktemp -d)
cleanup() {
	git worktree remove --force "$tmp/ref" >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap cleanup EXIT
git worktree add --quiet --detach "$tmp/ref" "$ref"

# build ROOT BINARY
build() {
	if [ "$package" = bench ]; then
		(cd "$1/bench" && go test -mod=mod -c -o "$2" .) # the go.mod of the other commit may differ
	else
		(cd "$1" && go test -c -o "$2" "$package")
	fi
}

if [ "$package" = bench ]; then
	rm -rf "$tmp/ref/bench"
	cp -r bench "$tmp/ref/bench"
fi
echo "benchstat: building $ref and the working tree" >&2
build "$tmp/ref" "$tmp/old.test"
build . "$tmp/new.test"
cd "$package"
for round in $(seq "$count"); do
	echo "benchstat: round $round of $count" >&2
	for which in old new; do
		"$tmp/$which.test" -test.run '^$' -test.bench "$pattern" -test.benchtime 300ms -test.cpu "1,$(nproc)" -test.benchmem >>"$tmp/$which.txt"
	done
done
cd - >/dev/null
go tool -modfile=tools.mod benchstat "$ref=$tmp/old.txt" "working=$tmp/new.txt"
