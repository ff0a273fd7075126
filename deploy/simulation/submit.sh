#!/bin/sh
# The simulation's analyst: submit one job, follow it, fetch its report, end with its status.
set -eu
. /simulation/enrol.sh
enrol operator analyst
export COLONNADE_COORDINATOR=coordinator:7443 COLONNADE_CREDENTIALS=pki
status=0
colonnade job submit --target annual_cost --epsilon "$EPSILON" --parties hospital,laboratory,insurer \
    --timeout 600 --write-spec job.spec --watch || status=$?
[ -e job.spec ] || exit "$status"
job=$(sha256sum job.spec | cut -c 1-12)  # a job's name is the digest of its specification
colonnade job report "$job" --out "/runs/$job"
[ "$status" != 0 ] || echo "the report is runs/$job/report.html"
exit "$status"
