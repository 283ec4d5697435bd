# Sourced by the scripts of this folder, which stand in a folder of their own when they call it.

# verdict NAME STATUS [WHY]: 0 is good. STATUS is mostly $?, which must stand before a WHY that runs commands.
verdict() {
    [ "$2" = 0 ] && echo "ok $1" || echo "not ok $1${3:+: $3}"
}

# check NAME STATUS PART COMMAND...: it ends with STATUS and says PART ("": anything); a refusal, status 2 and more, says
# so on one line of standard error and leaves standard output empty. What it said stays in the files out and err. COMMAND
# reads nothing: a program from a here-document goes without check, before a verdict.
check() {
    local name=$1 status=$2 part=$3 got
    shift 3
    "$@" >out 2>err </dev/null
    got=$?
    if [ $got != "$status" ]; then
        echo "not ok $name: exit status $got instead of $status: $(head -c 300 err)"
    elif [ -n "$part" ] && ! cat out err | grep -qF -- "$part"; then
        echo "not ok $name: no \"$part\" in: $(cat out err | head -c 300)"
    elif [ "$status" -ge 2 ] && { [ "$(wc -l <err)" != 1 ] || [ -s out ]; }; then
        echo "not ok $name: a refusal is one line on standard error and nothing on standard output"
    else
        echo "ok $name"
    fi
}

# python_with MODULE...: print the first Python here that has these. It looks for them only; importing torch takes 2 s.
python_with() {
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))' \
            "$@" 2>/dev/null && echo "$python" && return
    done
    return 1
}

# under_sanitizer: whether the programs in OUT are built with one. They take several times as long, and what they take is
# nothing to compare; what compares numbers alone may end there.
under_sanitizer() {
    [[ ${OUT:-build/release} = *[at]san?(/) ]]
}
