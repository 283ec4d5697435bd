#!/bin/bash
# Programs whose datasets lie in a PostgreSQL of their own in place of files (tests/support/dataset/place.h), each of them
# in schemas of its own: postgresql.sh PROGRAM... (make test-postgresql). Ends as tests/run.sh does.
set -u
cd "$(dirname "$0")/.." || exit 2
source tests/support/postgres.bash
dir=$(mktemp -d)
trap 'postgres_stop; rm -rf "$dir"' EXIT
chmod 711 "$dir"
postgres_start "$dir/server" || exit
SYNCOPATE_TEST_POSTGRESQL=$postgres_url TEST_SCRIPTS=0 tests/run.sh "$@"
