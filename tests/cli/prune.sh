#!/bin/bash
# syncopate dataset prune, in a file and in PostgreSQL: what is old goes, trials and what belongs to sessions that are
# open stay. Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 10
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/support/postgres.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'postgres_stop; rm -rf "$dir"' EXIT
chmod 711 "$dir" # PostgreSQL is another user's
cd "$dir"

: >empty.jsonl
id=$(printf '0%.0s' {1..64}) old=2026-01-01T00:00:00.000Z young=2199-01-01T00:00:00.000Z
cat >rows.sql <<END
INSERT INTO models (id, name, content, created) VALUES ('$id', 'm', '{}', 'x');
INSERT INTO clusters (id, name, content, created) VALUES ('$id', 'c', '{}', 'x');
INSERT INTO sessions (id, model, cluster, seed, budget, options, state, started, ended) VALUES
    ('open', '$id', '$id', 1, '{}', '{}', 'running', '$old', NULL),
    ('over', '$id', '$id', 1, '{}', '{}', 'done', '$old', '2026-01-02T00:00:00.000Z');
INSERT INTO events (session, kind, content, created) VALUES
    ('open', 'x', '{}', '$old'), ('open', 'x', '{}', '$young'), ('over', 'x', '{}', '$old'), ('over', 'x', '{}', '$young');
INSERT INTO audit (at, method, path, status)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT '$old', 'GET', '/', 200 FROM n;
INSERT INTO audit (at, method, path, status) VALUES ('$young', 'GET', '/', 200);
END
in_file() { python3 -c 'import sqlite3, sys
db = sqlite3.connect("d.db")
rows = list(db.execute(sys.argv[1])) if sys.argv[1].startswith("SELECT") else db.executescript(sys.argv[1])
print(rows[0][0] if isinstance(rows, list) else "")' "$1"; }
in_postgresql() { postgres_sql public "$1"; }

# prune WHERE DATASET
prune() {
    local where=$1 prune=("$syncopate" dataset prune --dataset "$2")
    "$syncopate" dataset import empty.jsonl --dataset "$2" >/dev/null 2>&1
    "$where" "$(cat rows.sql)" >/dev/null || { echo "skip prune $where: the rows cannot be written"; return; }
    check "pruning_needs_to_be_told_what_$where" 2 '--events, --audit or --answers' "${prune[@]}"
    check "old_events_go_$where" 0 '1 events, 0 audit entries' "${prune[@]}" --events 1h
    [ "$("$where" 'SELECT count(*) FROM events')" = 3 ] &&
        [ "$("$where" "SELECT count(*) FROM events WHERE session = 'open'")" = 2 ] &&
        [ "$("$where" 'SELECT last FROM pruned_events')" = 3 ]
    verdict "events_of_an_open_session_and_young_ones_stay_$where" $?
    check "old_audit_entries_go_$where" 0 '2500 audit entries' "${prune[@]}" --audit 1h
    [ "$("$where" 'SELECT count(*) FROM audit')" = 1 ] && [ "$("$where" 'SELECT count(*) FROM sessions')" = 2 ]
    verdict "the_rest_stays_$where" $?
}

prune in_file d.db
postgres_start "$dir/server" >why || { echo "skip prune in_postgresql: $(head -n 1 why)"; exit 0; }
prune in_postgresql "$postgres_url"
