#!/usr/bin/env bash
# Makes sure that the benchmarks find what they need beside what the tests need: see deps.sh.
set -euo pipefail
. "$(dirname "$0")/need.sh"

want mvn maven
want javac default-jdk-headless

install_missing "make bench"
