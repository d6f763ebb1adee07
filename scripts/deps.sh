#!/usr/bin/env bash
# Makes sure that the tests find what they need beside Go, and does nothing when all is there. As root on Debian it
# installs what is missing; elsewhere it names it and fails.
#
# The tests start their own servers, on loopback, in temporary folders. Where there is a package with a server's program
# and nothing that starts it, such as mariadb-server-core, that one is listed; services that other packages bring are
# not started.
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

wantGlob() { # wantGlob PATTERN PACKAGE...
	compgen -G "$1" >/dev/null && return
	commands+=("$1")
	packages+=("${@:2}")
}

want "${CC:-$(go env CC)}" gcc libc6-dev # the race detector needs a C compiler
want mariadbd mariadb-server-core
want my_print_defaults mariadb-client-core
want mariadb-dump mariadb-client
want curl curl ca-certificates
want java default-jre-headless
wantFile /usr/share/java/zookeeper.jar libzookeeper-java libslf4j-java # the server's classes, without a service
want etcd etcd-server
want redis-server redis-server
want redis-sentinel redis-sentinel
want nats-server nats-server
want pgbouncer pgbouncer
wantGlob '/usr/lib/postgresql/*/bin/postgres' postgresql
wantGlob '/usr/lib*/galera*/libgalera_smm.so' galera-4
want nginx nginx
want setpriv util-linux
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

policy=/usr/sbin/policy-rc.d # Debian's way to say that no service is to be started
if ! [ -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
fi

echo "make: installing ${packages[*]}" >&2
compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || apt update || true
install || {
	apt update
	install
}
