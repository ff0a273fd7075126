#!/bin/sh
# An organization of the simulation, and what people do there: enrol, run, after the alignment ingest,
# after the fit grant predictions. What other organizations send comes by the desk (/exchange).
set -eu
hub=spiffe://simulation/coordinator/hub

say() { echo "$NAME: $*"; }

hand_out() { install -m 644 "$1" "/exchange/$2.new" && mv "/exchange/$2.new" "/exchange/$2"; }

await() { until [ -e "$1" ]; do sleep 0.2; done; }

enrol() {
    rm -rf ./* /exchange/certificate.pem  # what an attempt that was interrupted left
    colonnade party new "$NAME" --federation simulation --coordinator coordinator:7443 --folder . \
        --data /exchange/people.csv --id "$ID" --id-rule digits-only ${LABEL:+--label "$LABEL"} >/dev/null
    cp /exchange/schema.toml schema.toml  # the draft, as a person completes it
    sed -i 's/^# \(metrics\|health\) = /\1 = /' party.toml
    sed -i "0,/^max_epsilon = .*/s//max_epsilon = $CAP/; s/^max_rounds = .*/max_rounds = 100000/" policy.toml
    hand_out "$NAME.csr" request.csr
    await /exchange/certificate.pem
    colonnade party join /exchange/certificate.pem --folder . --epsilon "$CAP" >/dev/null
    if [ -n "${LABEL:-}" ]; then
        await /exchange/officer.pem
        colonnade ledger approvers ledger --add /exchange/officer.pem --reason "decides on jobs" >/dev/null
        sed -i '0,/^\[\[allow\]\]/s//[[allow]]\napprove = "ask"/' policy.toml
        cat >>policy.toml <<END

[[allow]]
coordinator = "$hub"
kinds = ["evaluation"]
features = ["*"]
label = true
max_epsilon = $CAP
delta = 1e-6
max_rounds = 10
END
    fi
    colonnade party peers --config party.toml | sed -n 's/^this party: //p' >key.txt
    hand_out key.txt key.txt
    touch enrolled
    say "made its own key, ledger and policy; the ledger's cap is epsilon $CAP, for these people, for good"
}

start() { colonnade-entrypoint party run --config party.toml & party=$!; }

stop() { kill -TERM "$party" && wait "$party" || true; }

ended() { ls alignments/*.alignment >/dev/null 2>&1 && ! ls alignments/*.state >/dev/null 2>&1; }

ingest() {
    stop  # a party has one table as long as it runs
    rm -rf data
    colonnade party ingest --config party.toml >/dev/null
    touch ingested
    start
    say "ingested its file in the alignment's order; who is on which row, it alone knows"
}

grant() {
    stop
    for purpose in "readmission study" evaluation; do
        cat >>policy.toml <<END

[[predict]]
coordinator = "$hub"
job = "$(cat /exchange/job.txt)"
receiver = "hospital"
purpose = "$purpose"
max_rows = 1000000
until = 9999-12-31
peers = { $(cat /exchange/peers.txt) }
END
    done
    touch granted
    start
    until colonnade health 127.0.0.1:9465 >/dev/null 2>&1; do sleep 0.2; done
    say "granted the hospital scores by this job's model; the keys of all three are pinned"
    if [ -e /exchange/tonight.csv ]; then
        colonnade party rows --config party.toml --people /exchange/tonight.csv --out rows.csv >/dev/null
        hand_out rows.csv rows.csv
    fi
    hand_out granted granted
}

[ -e enrolled ] || enrol
start
trap 'kill -TERM "$party"; wait "$party"; exit $?' TERM INT
while kill -0 "$party" 2>/dev/null; do
    if [ ! -e ingested ] && ended; then ingest; fi
    if [ ! -e granted ] && [ -e /exchange/job.txt ]; then grant; fi
    sleep 0.5
done
wait "$party"
