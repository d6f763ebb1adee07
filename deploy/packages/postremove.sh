#!/bin/sh
# The data stays, also after a purge: with it gone an embedded store would begin at 1 again. Who
# wants that says so: LEAF_REMOVE_DATA=yes apt-get purge leaf-id
case "$1" in
purge | 0) # dpkg, rpm
	if [ "$LEAF_REMOVE_DATA" = yes ]; then
		rm -rf "$DPKG_ROOT/var/lib/private/leaf" "$DPKG_ROOT/var/lib/leaf"
	elif [ -e "$DPKG_ROOT/var/lib/private/leaf" ] || [ -e "$DPKG_ROOT/var/lib/leaf" ]; then
		echo "leaf-id: the counters stay in /var/lib/leaf; remove them only if no ID was ever used"
	fi
	;;
esac
[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] && systemctl daemon-reload
exit 0
