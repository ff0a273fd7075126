#!/bin/sh
# The hospital's data-protection officer: reads what is asked, and signs. A real one refuses, too. The
# private key is in a volume of its own, where the party's process cannot read it.
set -eu
home=/hospital
if [ ! -e officer.pem ]; then
    openssl genpkey -algorithm ed25519 -out officer.new
    mv officer.new officer.pem
fi
openssl pkey -in officer.pem -pubout >/exchange/officer.new
mv /exchange/officer.new /exchange/officer.pem
trap 'exit 0' TERM INT
until [ -e $home/enrolled ]; do sleep 0.5; done
signed=
while true; do
    colonnade party jobs --config $home/party.toml >/tmp/jobs || true
    job=$(sed -n 's/^job //p' /tmp/jobs | head -n 1)
    if [ -n "$job" ] && [ "$job" != "$signed" ]; then
        echo "Approve: what the hospital's officer reads"
        sed -n '3,7s/^/ /p' /tmp/jobs
        if colonnade party approve "$job" --config $home/party.toml --key officer.pem >/dev/null; then
            signed=$job
            echo "   the officer signs; the decision is in the ledger"
        fi
    fi
    sleep 2
done
