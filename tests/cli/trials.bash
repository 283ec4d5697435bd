# Sourced by tests of strategies in real trials over MPI, with the test's name: a folder to work in, where the test writes
# model.json, cluster.json of three nodes, and a strategy to each NAME.json.
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate worker=$PWD/${OUT:-build/release}/bin/syncopate-worker-mpi
if ! [ -x "$worker" ] || ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip $1: needs the worker program, mpirun and python3"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
as_root=
[ "$(id -u)" = 0 ] && as_root=--allow-run-as-root

# here NAME OPTION...: three ranks of the worker on this machine, which check every sum; what they say is in out. On
# another cluster: `ranks` and `cluster`. Each mpirun has a TMPDIR of its own, as in a trial: in a shared one, an mpirun that
# ends removes the session folder of another that starts, which fails. Segments of shared memory go there too.
here() {
    mkdir -p tmp
    TMPDIR=$PWD/tmp OMPI_MCA_btl_vader_backing_directory=$PWD/tmp timeout 60 mpirun $as_root --oversubscribe \
        --bind-to none --mca btl self,vader -np "${ranks:-3}" "$worker" run --model model.json \
        --cluster "${cluster:-cluster.json}" --strategy "$1.json" --verify "${@:2}" >out 2>err
}

# trial NAME ITERATIONS WARMUP: in the lab; what it says is JSON.
trial() {
    "$syncopate" trial model.json "${cluster:-cluster.json}" --strategy "$1.json" --iterations "$2" --warmup "$3" --json
}

# near LEAST MOST NAME...: the predictions of trials whose output is in NAME.out, over what was measured, lie between these.
# Bounds are wide: a busy machine may delay a message, but not by as much as the links take.
near() {
    python3 - "$@" <<'PY' 2>why
import json, sys
least, most = float(sys.argv[1]), float(sys.argv[2])
t = {name: json.load(open(name + ".out")) for name in sys.argv[3:]}
for name, of in t.items():
    print("%s: predicted %.0f ms, measured %.0f ms" % (name, of["predicted_us"] / 1e3, of["measured_us"] / 1e3))
    assert least < of["predicted_us"] / of["measured_us"] < most, (name, of["predicted_us"], of["measured_us"])
PY
    verdict predictions_are_near $? "$(tail -n 1 why)"
}

# needs_lab NAME: ends the test with a line where there can be no lab, or no times worth comparing.
needs_lab() {
    if under_sanitizer; then
        echo "skip $1_in_the_lab: under a sanitizer no time is as predicted; \`make test\` has it"
        exit 0
    fi
    if [ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null; then
        echo "skip $1_in_the_lab: needs root"
        exit 0
    fi
}
