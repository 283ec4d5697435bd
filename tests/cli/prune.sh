#!/bin/bash
# syncopate dataset prune: what is old goes, trials and what belongs to sessions that are open stay. Needs OUT and
# python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 5
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

: >empty.jsonl
"$syncopate" dataset import empty.jsonl --dataset d.db >/dev/null 2>&1
python3 - <<'END' || { echo "skip prune: python3 cannot write the dataset"; exit 0; }
import sqlite3
db = sqlite3.connect("d.db")
model = "0" * 64
db.execute("INSERT INTO models (id, name, content, created) VALUES (?, 'm', '{}', 'x')", (model,))
db.execute("INSERT INTO clusters (id, name, content, created) VALUES (?, 'c', '{}', 'x')", (model,))
for name, state, ended in (("open", "running", None), ("over", "done", "2026-01-02T00:00:00.000Z")):
    db.execute("INSERT INTO sessions (id, model, cluster, seed, budget, options, state, started, ended) "
               "VALUES (?, ?, ?, 1, '{}', '{}', ?, '2026-01-01T00:00:00.000Z', ?)", (name, model, model, state, ended))
    for stamp in ("2026-01-01T00:00:00.000Z", "2199-01-01T00:00:00.000Z"):
        db.execute("INSERT INTO events (session, kind, content, created) VALUES (?, 'x', '{}', ?)", (name, stamp))
for n in range(2500):
    db.execute("INSERT INTO audit (at, method, path, status) VALUES ('2026-01-01T00:00:00.000Z', 'GET', '/', 200)")
db.execute("INSERT INTO audit (at, method, path, status) VALUES ('2199-01-01T00:00:00.000Z', 'GET', '/', 200)")
db.commit()
END
rows() {
    python3 -c 'import sqlite3, sys; print(sqlite3.connect("d.db").execute(sys.argv[1]).fetchone()[0])' "$1"
}

check pruning_needs_to_be_told_what 2 '--events, --audit or --answers' "$syncopate" dataset prune --dataset d.db
check old_events_go 0 '1 events, 0 audit entries' "$syncopate" dataset prune --events 1h --dataset d.db
[ "$(rows 'SELECT count(*) FROM events')" = 3 ] && [ "$(rows "SELECT count(*) FROM events WHERE session = 'open'")" = 2 ]
verdict events_of_an_open_session_and_young_ones_stay $?
check old_audit_entries_go 0 '2500 audit entries' "$syncopate" dataset prune --audit 1h --dataset d.db
[ "$(rows 'SELECT count(*) FROM audit')" = 1 ] && [ "$(rows 'SELECT count(*) FROM sessions')" = 2 ]
verdict the_rest_stays $?
