#!/bin/sh
# Not on an upgrade: dpkg passes "upgrade", rpm the number of versions that stay.
case "$1" in upgrade | 1) exit 0 ;; esac
[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] && systemctl disable --now leaf.service
exit 0
