#!/bin/sh
# Once: the federation's authority and the made-up tables. Then approve what members request. It never
# ends by itself, because `up --exit-code-from` takes the first container that ends for the end of all.
set -eu
members="hub analyst watcher hospital laboratory insurer gateway"

owner=$(stat -c %u /runs)
if [ "$owner" = 0 ]; then
    chown "$RUNS_UID:$RUNS_GID" /runs  # made by the engine just now
elif [ "$owner" != "$RUNS_UID" ]; then
    echo "runs/ belongs to user $owner: write COLONNADE_UID=$owner and its COLONNADE_GID to .env" >&2
    exit 3
fi
[ -e /authority/ca/root.pem ] || colonnade pki init --folder /authority/ca --federation simulation
if [ ! -e /authority/tables ]; then
    python3 /simulation/tables.py /exchange "$ROWS" "$FEATURES" "$SEED" ${CLIENTS:-}
    touch /authority/tables
fi
touch /tmp/ready
echo "the authority and the tables are made"
trap 'exit 0' TERM INT
while true; do
    for member in $members; do
        desk=/exchange/$member
        if [ -e "$desk/request.csr" ]; then
            colonnade pki approve "$desk/request.csr" --authority /authority/ca --out "$desk/new.pem"
            rm "$desk/request.csr"
            mv "$desk/new.pem" "$desk/certificate.pem"
        fi
    done
    sleep 0.5
done
