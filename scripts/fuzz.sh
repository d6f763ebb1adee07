#!/usr/bin/env bash
# Runs every fuzz target of the main module for a while, one after the other: fuzz.sh 10s
set -euo pipefail
cd "$(dirname "$0")/.."

for package in $(grep -rlE --include='*_test.go' --exclude-dir=e2e --exclude-dir=bench '^func Fuzz' . | xargs -r -n1 dirname | sort -u); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz: $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10s}" "$package"
	done
done
