#!/bin/sh
# A running server goes on with the old binary until an operator restarts it: a restart of all
# servers at once would stop the IDs.
[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] && systemctl daemon-reload
exit 0
