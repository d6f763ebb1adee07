#!/bin/sh
# Tells a Galera member that joins where its donor stands, and nothing else: what the
# member missed comes from the donor's cache, without this script. A member that would
# need a full copy is refused. The arguments and what is printed are the server's own.
folder=$(dirname "$0") bypass=0 domain=0
while [ $# -gt 0 ]; do
	case $1 in
	--role) role=$2 ;;
	--address) address=$2 ;;
	--parent) parent=$2 ;;
	--gtid) position=$2 ;;
	--gtid-domain-id) domain=$2 ;;
	--bypass) bypass=1 ;;
	esac
	shift
done
file=$folder/state-${address##*:}
case $role in
donor)
	[ $bypass = 1 ] || exit 22
	echo "$position $domain" >"$file.new"
	mv "$file.new" "$file"
	echo "done $position $domain"
	;;
joiner)
	rm -f "$file"
	echo "ready $address"
	until [ -e "$file" ]; do
		kill -0 "$parent" || exit 32
		sleep 0.05
	done
	cat "$file"
	;;
esac
