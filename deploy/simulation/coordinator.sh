#!/bin/sh
# The simulation's coordinator: the commands of deploy/coordinator/README.md.
set -eu
. /simulation/enrol.sh
enrol coordinator hub --host coordinator --host localhost --host 127.0.0.1
touch denied.txt
cat >coordinator.toml <<END
listen = "0.0.0.0:7443"
credentials = "pki"
database = "$DATABASE"
denylist = "denied.txt"
metrics = "127.0.0.1:9464"
health = "127.0.0.1:9465"
END
exec colonnade-entrypoint coordinator --config coordinator.toml
