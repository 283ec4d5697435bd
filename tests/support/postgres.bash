# Sourced by scripts that need a PostgreSQL of their own.
#
# postgres_start FOLDER: a server whose files lie in FOLDER, listening on a socket there alone. Sets $postgres, its process,
# and $postgres_url, the address of its database without what chooses a schema. Returns 1, with one line, where
# PostgreSQL 15 or later is not there. It has connections for three services: each thread that reads has one, and how
# many threads there are follows the cores. It knows only the user `postgres`, and syncs nothing; $postgres_options says
# otherwise.
# postgres_stop: at once, as after a crash.
postgres=
postgres_options="-c fsync=off -c full_page_writes=off"

postgres_start() {
    local programs
    programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
    if [ ! -x "$programs/initdb" ] || [ "$(basename "$(dirname "$programs")")" -lt 15 ]; then
        echo "PostgreSQL 15 is not there (apt-get install postgresql)"
        return 1
    fi
    postgres_as=
    # A server does not run as root.
    if [ "$(id -u)" = 0 ]; then
        postgres_as="setpriv --reuid postgres --regid postgres --clear-groups"
        mkdir -p "$1" && chown postgres "$1" && chmod 711 "$1"
    fi
    postgres_folder=$1 postgres_programs=$programs
    if [ ! -d "$1/data" ]; then
        (cd / && $postgres_as "$programs/initdb" --pgdata "$1/data" --username postgres --auth trust --encoding UTF8 \
            --locale C.UTF-8 --no-sync >"$1.log" 2>&1) || { cat "$1.log" >&2; return 2; }
    fi
    (cd / && exec $postgres_as "$programs/postgres" -D "$1/data" -k "$1" -c listen_addresses= \
        -c max_connections=$((60 + 20 * $(nproc))) $postgres_options >>"$1.log" 2>&1) &
    postgres=$!
    postgres_url="postgresql:///postgres?host=$1&user=postgres"
    for _ in $(seq 200); do
        "$programs/pg_isready" -q -h "$1" && return 0
        sleep 0.05
    done
    cat "$1.log" >&2
    return 2
}

postgres_stop() {
    [ -n "$postgres" ] || return 0
    kill -QUIT "$postgres" 2>/dev/null
    wait "$postgres" 2>/dev/null
    postgres=
}

# postgres_sql SCHEMA TEXT: what psql says.
postgres_sql() {
    "$postgres_programs/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$postgres_url&options=-csearch_path%3D$1" -c "$2"
}
