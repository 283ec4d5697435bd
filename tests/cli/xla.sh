#!/bin/bash
# XLA's flags for a strategy, against programs that XLA compiles: its compiler for GPUs combines collectives by the rule that
# the export inverts, on random instances, and makes a strategy's groups from its flags. That needs a Python with jax
# (JAX_PYTHON, build/venv or python3) and for GPUs' programs jax-cuda12-plugin, but no GPU.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md). SYNCOPATE_TEST_SEED sets the seed.
# Once: it is the compiler's time.
# Plan: 12
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export PYTHONDONTWRITEBYTECODE=1
for python in "${JAX_PYTHON:-none}" "$root/build/venv/bin/python3" python3 none; do
    "$python" -c 'import jax' 2>/dev/null && break
done
if [ "$python" = none ]; then
    echo "skip xla: needs a Python with jax (pip install jax)"
    exit 0
fi
xla() { timeout 250 "$python" "$root/tests/cli/xla.py" "$@" 2>err; }
export_to() { "$syncopate" strategy export "$1" --model resnet18 --cluster lab-4x1g --to xla --out "$1.flags" 2>err; }

export_to wfbp
XLA_FLAGS="$dir/wfbp.flags" xla flags >out
verdict xla_knows_the_flags $? "$(tail -n 1 err)"
sed 's/combine_threshold/combine_nothing/' wfbp.flags >wrong.flags
XLA_FLAGS="$dir/wrong.flags" xla flags >out
[ $? != 0 ] && grep -q 'Unknown flag.* in XLA_FLAGS' err
verdict it_would_have_refused_others $? "$(tail -n 1 err)"
xla cpu

if ! xla gpu; then
    echo "skip xla_for_gpus: needs XLA's compiler for GPUs (pip install jax-cuda12-plugin jax-cuda12-pjrt nvidia-cuda-nvcc-cu12)"
    exit 0
fi
xla combine "${SYNCOPATE_TEST_SEED:-20261126}"
python3 - "$root/examples/models/resnet18.json" >elements <<'PY'
import json, math, sys
print(*(math.prod(v["shape"]) for v in json.load(open(sys.argv[1]))["variables"]), sep="\n")
PY
xla apply wfbp.flags all_reduce <elements >out
[ "$(cat out)" = "$(sort -n elements | awk '{printf "%s%d", s, 4 * $1; s = " "}')" ]
verdict every_variable_stays_alone $? "$(head -c 300 out)"
export_to all-reduce && xla apply all-reduce.flags all_reduce <elements >out
[ "$(cat out)" = "$(awk '{n += 4 * $1} END {print n}' elements)" ]
verdict all_variables_go_together $? "$(head -c 300 out)"
# Of sharded parameters a device gathers parts, and gets parts of sums; four devices.
export_to fsdp-whole && awk '{print int(($1 + 3) / 4)}' elements | xla apply fsdp-whole.flags all_gather >out &&
    awk '{print 4 * int(($1 + 3) / 4)}' elements | xla apply fsdp-whole.flags reduce_scatter >>out
[ "$(cat out)" = "$(awk '{n += 4 * int(($1 + 3) / 4)} END {print 4 * n; print n}' elements)" ]
verdict sharded_variables_go_together_both_ways $? "$(head -c 300 out)"
