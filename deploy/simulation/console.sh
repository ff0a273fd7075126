#!/bin/sh
# A console of the simulation, on a port that is published on the host's loopback. Its log has the address
# that opens it, once. It only looks: the hospital's volume is mounted read-only and there is no key.
set -eu
listen="--listen 0.0.0.0:8080 --published $PUBLISHED"
case $1 in
party)
    exec colonnade-entrypoint party console --config party.toml $listen
    ;;
coordinator)
    . /simulation/enrol.sh
    enrol operator watcher
    exec colonnade-entrypoint coordinator console --coordinator coordinator:7443 --credentials pki $listen
    ;;
esac
