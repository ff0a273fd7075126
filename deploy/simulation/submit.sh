#!/bin/sh
# The simulation's analyst: tell the story, end with its status. With CLIENTS, afterwards a job over the
# gateway's clients.
set -eu
. /simulation/enrol.sh
enrol operator analyst
export COLONNADE_COORDINATOR=coordinator:7443 COLONNADE_CREDENTIALS=pki
python3 /simulation/story.py "$EPSILON"
[ -n "${CLIENTS:-}" ] || exit 0
status=0
colonnade job admm --target y --epsilon "$CLIENT_EPSILON" --delta 1e-6 --parties gateway \
    --again --timeout 600 --write-spec job.spec --watch || status=$?
[ -e job.spec ] || exit "$status"
job=$(sha256sum job.spec | cut -c 1-12)  # a job's name is the digest of its specification
colonnade job report "$job" --out "/runs/$job"
exit "$status"
