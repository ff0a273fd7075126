#!/bin/sh
# Once: the federation's authority and the made-up files. Then approve what members request, and carry
# what people would send or read out to each other: ledger keys, the job's name, row numbers. It never
# ends by itself, because `up --exit-code-from` takes the first container that ends for the end of all.
set -eu
parties="hospital laboratory insurer"
members="hub analyst watcher $parties gateway"

owner=$(stat -c %u /runs)
if [ "$owner" = 0 ]; then
    chown "$RUNS_UID:$RUNS_GID" /runs  # made by the engine just now
elif [ "$owner" != "$RUNS_UID" ]; then
    echo "runs/ belongs to user $owner: write COLONNADE_UID=$owner and its COLONNADE_GID to .env" >&2
    exit 3
fi
[ -e /authority/ca/root.pem ] || colonnade pki init --folder /authority/ca --federation simulation >/dev/null
if [ ! -e /authority/tables ]; then
    python3 /simulation/tables.py /exchange "$PEOPLE" "$SEED" ${CLIENTS:-}
    touch /authority/tables
fi
touch /tmp/ready

# carry FILE FROM TO: once, and whole.
carry() {
    [ -e "/exchange/$2/$1" ] && [ ! -e "/exchange/$3/$1" ] || return 0
    cp "/exchange/$2/$1" "/exchange/$3/.$1" && mv "/exchange/$3/.$1" "/exchange/$3/$1"
}

all_have() { for party in $parties; do [ -e "/exchange/$party/$1" ] || return 1; done; }

keys() { for party in $parties; do echo "$party = \"$(cat "/exchange/$party/key.txt")\""; done | paste -s -d ,; }

trap 'exit 0' TERM INT
while true; do
    for member in $members; do
        desk=/exchange/$member
        if [ -e "$desk/request.csr" ]; then
            colonnade pki approve "$desk/request.csr" --authority /authority/ca --out "$desk/new.pem" >/dev/null
            echo "the authority approved the request of $member"
            rm "$desk/request.csr"
            mv "$desk/new.pem" "$desk/certificate.pem"
        fi
    done
    if all_have key.txt; then
        for party in $parties; do
            [ -e "/exchange/$party/peers.txt" ] || keys >"/exchange/$party/peers.txt"
            carry job.txt analyst "$party"
        done
    fi
    carry rows.csv hospital analyst
    if all_have granted; then carry granted hospital analyst; fi
    sleep 0.5
done
