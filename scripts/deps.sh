#!/usr/bin/env bash
# Makes sure that the tests find what they need beside Go, and does nothing when all is there. As root on Debian it
# installs what is missing; elsewhere it names it and fails.
#
# Only packages that bring no system service are listed: mariadb-server-core and libzookeeper-java hold the servers'
# programs and nothing that starts them. The tests start their own servers, on loopback, in temporary folders.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

commands=() packages=()
want() { # want COMMAND PACKAGE...
	command -v "$1" >/dev/null 2>&1 && return
	commands+=("$1")
	packages+=("${@:2}")
}

wantFile() { # wantFile FILE PACKAGE...
	[ -e "$1" ] && return
	commands+=("$1")
	packages+=("${@:2}")
}

want "${CC:-$(go env CC)}" gcc libc6-dev # the race detector needs a C compiler
want mariadbd mariadb-server-core
want my_print_defaults mariadb-client-core
want curl curl ca-certificates
want java default-jre-headless
wantFile /usr/share/java/zookeeper.jar libzookeeper-java libslf4j-java # the server's classes, without a service
want spin spin                                                          # checks the model of the lease protocol

[ ${#commands[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! [ -f /etc/debian_version ] || ! command -v apt-get >/dev/null; then
	{
		echo "make: the tests need ${commands[*]}, not found"
		echo "make: on Debian and Ubuntu: sudo apt-get install --no-install-recommends ${packages[*]}"
	} >&2
	exit 1
fi

apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@" </dev/null >&2
}
install() { apt install --yes --no-install-recommends "${packages[@]}"; }

echo "make: installing ${packages[*]}" >&2
compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || apt update || true
install || {
	apt update
	install
}
