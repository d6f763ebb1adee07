#!/bin/sh
# The data stays, also after a purge: with it gone an embedded store would begin at 1 again.
if [ "$1" = purge ] && [ -d "$DPKG_ROOT/var/lib/private/leaf" -o -d "$DPKG_ROOT/var/lib/leaf" ]; then
	echo "leaf-id: the counters stay in /var/lib/leaf; remove them only if no ID was ever used"
fi
[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] && systemctl daemon-reload
exit 0
