#!/bin/sh
# Generates the Go code for leaf/v1/*.proto. Needs protoc (Debian: protobuf-compiler);
# the plug-ins are built at the versions that tools.mod names.
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for tool in google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/cmd/protoc-gen-connect-go; do
	go build -modfile=../tools.mod -o "$bin/" "$tool"
done
PATH="$bin:$PATH" protoc -I . \
	--go_out=. --go_opt=paths=source_relative \
	--connect-go_out=. --connect-go_opt=paths=source_relative,simple \
	leaf/v1/leaf.proto leaf/v1/admin.proto leaf/v1/worker.proto
