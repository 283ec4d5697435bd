# Sourced. forks_of PYTHON FOLDER: start a process of PYTHON that has torch imported, and write FOLDER/forked, which is
# PYTHON but for that its processes are forked by that one (tests/cli/forks.py). forks_end ends it, and waits, so that its
# time is part of the script's.
forks_of() {
    mkdir -p "$2"
    printf '#!/bin/sh\nexec /usr/bin/python3 -IS "%s" run "%s" "$@"\n' "$PWD/tests/cli/forks.py" "$2/socket" \
        >"$2/forked"
    chmod +x "$2/forked"
    env -u PYTHONPATH "$1" tests/cli/forks.py serve "$2/socket" </dev/null >/dev/null 2>&1 &
    forks=$!
}
forks_end() {
    [ -z "${forks-}" ] || { kill $forks && wait $forks; } 2>/dev/null
}
