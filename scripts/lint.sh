#!/usr/bin/env bash
# Checks the form of the code. Every check runs; the script fails if one did.
set -euo pipefail
cd "$(dirname "$0")/.."
modules=(. e2e bench examples deploy site)
failed=()

# check TITLE COMMAND...: the command must succeed and print nothing on standard output.
check() {
	local title=$1 out
	shift
	if out=$("$@") && [ -z "$out" ]; then
		echo "lint: $title"
		return
	fi
	failed+=("$title")
	printf 'lint: FAILED: %s\n%s\n' "$title" "$out"
}

# each COMMAND...: runs the command in every module.
each() {
	local module status=0
	for module in "${modules[@]}"; do
		(cd "$module" && "$@") || status=1
	done
	return $status
}

# other_systems compiles the code behind build tags.
other_systems() {
	local system status=0
	for system in darwin windows; do
		GOOS=$system CGO_ENABLED=0 go build ./cmd/... ./client ./driver/... || status=1
	done
	return $status
}

sources() { find . -name '*.go' -not -path './.git/*' -not -path './site/node_modules/*' "$@"; }

long_files() {
	local file
	sources -print | while read -r file; do
		grep -qE '^// Code generated .* DO NOT EDIT\.$' "$file" || echo "$(wc -l <"$file") $file"
	done | awk '$1 > 500 { print $2 ": " $1 " lines, at most 500" }'
}

# testserver.Long alone leaves a test out, and says where it runs.
skipped_tests() { sources -not -path ./internal/testserver/long.go -exec grep -nHE '\b(t|b|f|tb)\.Skip(f|Now)?\(' {} + || true; }

# stale_generated generates the code again in a copy. The line that names the version
# of protoc may differ between machines.
stale_generated() {
	local copy
	copy=$(mktemp -d)
	cp -r go.mod go.sum tools.mod tools.sum api "$copy"
	sh "$copy/api/generate.sh"
	diff -ru -I '^// .*protoc' api "$copy/api" || true
	rm -rf "$copy"
}

# sabotaged checks the code behind the lab's tags, in a copy that has the lab's faults.
sabotaged() {
	local copy status=0
	copy=$(mktemp -d)
	git ls-files -z | xargs -0 cp --parents -t "$copy"
	(cd "$copy/e2e" && go run ./lab/saboteurs/overlay -plant && "$staticcheck" -tags leafsabotage . ./lab/...) || status=1
	(cd "$copy" && "$staticcheck" -tags leaflab ./internal/server) || status=1
	rm -rf "$copy"
	return $status
}

staticcheck=$(go tool -modfile=tools.mod -n staticcheck)

check 'gofmt' gofmt -l .
check 'go vet' each go vet ./...
check 'builds on macOS and Windows' other_systems
check 'staticcheck' each "$staticcheck" ./...
check 'staticcheck of the lab' sabotaged
check 'go fix' each go fix -diff ./...
check 'go mod tidy' each go mod tidy -diff
check 'no file above 500 lines' long_files
check 'no skipped tests' skipped_tests
if command -v protoc >/dev/null && [ -d api ]; then
	check 'generated code is up to date' stale_generated
fi

if [ ${#failed[@]} -gt 0 ]; then
	printf 'lint: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
