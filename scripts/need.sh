# Sourced by scripts that need programs beside Go: names what is missing and, as root on Debian, installs it.
#
#	want COMMAND PACKAGE...       a command on the path
#	wantFile FILE PACKAGE...      a file
#	wantGlob PATTERN PACKAGE...   a file of that form
#	install_missing WHO           installs the packages of all that is missing, or says so and fails
PATH=$PATH:/usr/sbin:/sbin

commands=() packages=()
want() {
	command -v "$1" >/dev/null 2>&1 && return
	commands+=("$1")
	packages+=("${@:2}")
}

wantFile() {
	[ -e "$1" ] && return
	commands+=("$1")
	packages+=("${@:2}")
}

wantGlob() {
	compgen -G "$1" >/dev/null && return
	commands+=("$1")
	packages+=("${@:2}")
}

apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@" </dev/null >&2
}

install_packages() { apt install --yes --no-install-recommends "${packages[@]}"; }

install_missing() (
	[ ${#commands[@]} -eq 0 ] && exit 0
	if [ "$(id -u)" -ne 0 ] || ! [ -f /etc/debian_version ] || ! command -v apt-get >/dev/null; then
		{
			echo "$1 need ${commands[*]}, not found"
			echo "on Debian and Ubuntu: sudo apt-get install --no-install-recommends ${packages[*]}"
		} >&2
		exit 1
	fi
	policy=/usr/sbin/policy-rc.d # Debian's way to say that no service is to be started
	if ! [ -e "$policy" ]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	echo "installing ${packages[*]}" >&2
	compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || apt update || true
	install_packages || {
		apt update
		install_packages
	}
)
