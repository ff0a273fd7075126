#!/bin/sh
# The simulation's analyst: submit a job, follow it, fetch its report, end with its status. With
# CLIENTS, a second job over the gateway's clients.
set -eu
. /simulation/enrol.sh
enrol operator analyst
export COLONNADE_COORDINATOR=coordinator:7443 COLONNADE_CREDENTIALS=pki
follow() {
    status=0
    rm -f job.spec
    colonnade job "$@" --again --timeout 600 --write-spec job.spec --watch || status=$?
    [ -e job.spec ] || exit "$status"
    job=$(sha256sum job.spec | cut -c 1-12)  # a job's name is the digest of its specification
    colonnade job report "$job" --out "/runs/$job"
    [ "$status" = 0 ] || exit "$status"
    echo "the report is runs/$job/report.html"
}
follow submit --target annual_cost --epsilon "$EPSILON" --parties hospital,laboratory,insurer
[ -z "${CLIENTS:-}" ] || follow admm --target y --epsilon "$CLIENT_EPSILON" --delta 1e-6 --parties gateway
