#!/usr/bin/env bash
# Makes sure that the tests find what they need beside Go, and does nothing when all is there. As root on Debian it
# installs what is missing; elsewhere it names it and fails.
#
# The tests start their own servers, on loopback, in temporary folders. Where there is a package with a server's program
# and nothing that starts it, such as mariadb-server-core, that one is listed; services that other packages bring are
# not started.
set -euo pipefail
. "$(dirname "$0")/need.sh"

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
want haproxy haproxy
want prometheus prometheus # promtool too; nothing starts the service
want setpriv util-linux
want ip iproute2 # network namespaces
want spin spin                                                          # checks the model of the lease protocol
want dpkg dpkg                       # installs the packages into empty folders
want rpm rpm
want systemd-analyze systemd         # checks the unit
wantFile /usr/share/dict/british-english wbritish # the spelling of docs/

install_missing "make: the tests"
