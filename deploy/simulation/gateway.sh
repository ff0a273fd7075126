#!/bin/sh
# The gateway of docker-compose.admm.yml, which hosts clients: the commands of deploy/party/README.md.
set -eu
. /simulation/enrol.sh
enrol party gateway
if [ ! -e ingested ]; then
    rm -rf data
    colonnade party ingest --schema /exchange/schema.toml --out data /exchange/people.csv
    touch ingested
fi
[ -e ledger/ledger.db ] || colonnade party init --ledger ledger --name gateway --epsilon "$CAP" --delta 1e-6
cat >policy.toml <<END
[[allow]]
coordinator = "spiffe://simulation/coordinator/hub"
kinds = ["admm"]
features = ["*"]
label = true
max_rho = 2.0
max_rounds = 100000
END
cat >party.toml <<END
coordinator = "coordinator:7443"
credentials = "pki"
data = "data"
ledger = "ledger"
policy = "policy.toml"
uplink_log = "uplink.jsonl"
metrics = "127.0.0.1:9464"
health = "127.0.0.1:9465"
END
exec colonnade-entrypoint party run --config party.toml
