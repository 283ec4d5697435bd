#!/bin/bash
# tests/load/run.sh FOLDER TRIALS SOAK_S [WORD]: the service under load (service.c), over a file and over a PostgreSQL of its
# own, which syncs as it does by default. FOLDER keeps both datasets for the next run. WORD: only the rows that have it.
set -eu
cd "$(dirname "$0")/../.."
source tests/support/postgres.bash
load=$OUT/tests/load/load folder=$(mkdir -p "$1" && cd "$1" && pwd) trials=$2 soak=$3 only=${4-} postgresql=()
kept=trials_$trials used=used_$$
sql() { "$postgres_programs/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$postgres_url" -c "$1"; }
trap '[ -z "$postgres" ] || sql "drop database if exists $used" || true; postgres_end' EXIT
postgres_end() { # its files stay, so it ends as it should
    [ -z "$postgres" ] || { kill -INT "$postgres" && wait "$postgres"; } || true
}

# A database of a million trials is larger than the default's 128 MiB.
postgres_options="-c shared_buffers=512MB -c max_wal_size=4GB"
if postgres_start "$folder/postgres" >"$folder/why"; then
    at() { echo "${postgres_url/\/postgres?/\/$1?}"; }
    if [ -z "$(sql "select 1 from pg_database where datname = '$kept'")" ]; then
        echo "making PostgreSQL's $kept" >&2
        sql "drop database if exists half"
        sql "create database half"
        "$load" --trials "$trials" --fill "$(at half)"
        sql "alter database half rename to $kept"
    fi
    sql "create database $used template $kept"
    psql=$postgres_programs/psql
    "$psql" -X -q "$(at "$used")" -c 'vacuum analyze'
    postgresql=(--postgresql "$(at "$used")" --database "$postgres")
else
    echo "not measured over PostgreSQL: $(head -n 1 "$folder/why")"
fi
"$load" --trials "$trials" --soak "$soak" --folder "$folder" ${only:+--only "$only"} "${postgresql[@]}" "$OUT/bin/syncopate"
