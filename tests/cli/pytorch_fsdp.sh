#!/bin/bash
# Training by fully_shard as a strategy says (syncopate_torch.fsdp) against plain training, with gloo on the loopback.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 63
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
source tests/cli/torchrun.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'forks_end; rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
export PYTHONPATH=$root/interop/pytorch:$root/tests/cli:$root/examples/pytorch

# ---- an older PyTorch says so in a line ----
cat >old.py <<'PY'
import sys, torch
from syncopate_torch.fsdp import apply
try:
    apply(torch.nn.Linear(2, 2), {"groups": [{"variables": ["weight", "bias"]}]})
except RuntimeError as error:
    sys.exit(f"{error}")
PY
old=/usr/bin/python3
if $old -c 'import torch; assert torch.__version__.startswith("1.")' 2>/dev/null; then
    check torch_1_13_is_told_that_it_has_no_fully_shard 1 \
        "sharded parameters need fully_shard of PyTorch 2.13, and this is PyTorch 1.13" timeout 100 $old old.py
    timeout 100 $old -m syncopate_torch.bench --sharded --out none.json 2>err
    [ $? = 2 ] && grep -q 'error: --sharded needs PyTorch 2' err
    verdict nor_does_its_bench_measure_halves $? "$(tail -n 1 err)"
else
    echo "skip torch_1_13_is_told_that_it_has_no_fully_shard: needs Debian's python3-torch"
    echo "skip nor_does_its_bench_measure_halves: needs Debian's python3-torch"
fi

# ---- the strategies of the tests, and random ones ----
python=$root/build/venv/bin/python3
if ! "$python" -c 'from torch.distributed.fsdp import FSDPModule; FSDPModule.set_custom_reduce_scatter' 2>/dev/null; then
    echo "skip pytorch_fsdp: needs PyTorch 2.13 in build/venv (.ci/torch)"
    exit 0
fi
cd "$root" && torchrun_of "$python" "$dir/programs" script && cd "$dir" || exit 2
forked=$dir/programs/forked ranks="$dir/programs/forked $root/tests/cli/pytorch_fsdp.py"
timeout 100 $ranks profile 2>err || echo "not ok profile_ends_well: $(tail -n 1 err)"
cat >cluster.json <<'JSON'
{"schema":"syncopate.cluster/1","name":"here",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":1,"device_link_gbyte_per_s":12}]}
JSON
sed 's/"count":3/"count":4/' cluster.json >four.json
# Each parameter in a group of its own, which fully_shard cannot do.
"$syncopate" strategy show model.json cluster.json --baseline wfbp --json | "$python" -c '
import json, sys
strategy = json.load(sys.stdin)
strategy["schedule"] = {"policy": "fifo", "credit_bytes": 0, "forward_prefetch": 1, "backward_prefetch": 0}
for group in strategy["groups"]:
    group["sharded"], group["reshard_after_forward"] = "parameters", True
json.dump(strategy, open("apart.json", "w"))'
export_on() { # CLUSTER PREFIX STRATEGY OPTION...
    local on=(--model model.json --cluster "$1") to=$2${3%.json}
    "$syncopate" strategy export "$3" "${on[@]}" --to fsdp2 --out "$to.json" "${@:4}" &&
        "$syncopate" strategy export "$3" "${on[@]}" --to fsdp2-code --out "$to.py" --log quiet "${@:4}"
}
export_of() { export_on cluster.json exported_ "$@"; }
check parts_of_a_module_are_noted 0 "fully_shard takes a module's own variables together, and those of " \
    export_of apart.json
check wrapped_blocks_are_said_whole 0 "" export_of fsdp-per-block --strict
check what_torchtitan_wraps_is_said_whole 0 "" export_of torchtitan --strict
# Gathered as bf16 and summed as f32.
"$syncopate" strategy show model.json cluster.json --baseline fsdp-per-block --json | "$python" -c '
import json, sys
strategy = json.load(sys.stdin)
for group in strategy["groups"]:
    group["gathered_as"], group["summed_as"] = "bf16", "f32"
json.dump(strategy, open("typed.json", "w"))'
check types_are_said_whole 0 "" export_of typed.json --strict
mv exported_typed.json typed_export.json
check the_code_says_types_too 0 "MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)" cat exported_typed.py
# On four ranks: two replicas, and parts that two ranks keep between the passes.
"$syncopate" strategy show model.json four.json --baseline fsdp-per-block --json | "$python" -c '
import json, sys
strategy = json.load(sys.stdin)
strategy["schedule"]["shard_ranks"] = 2
json.dump(strategy, open("replicas.json", "w"))
del strategy["schedule"]["shard_ranks"]
for group, reshard in zip(strategy["groups"], [2, True, 2, False, 2]):
    group["reshard_after_forward"] = reshard
json.dump(strategy, open("fewer.json", "w"))'
check replicas_are_said_whole 0 "" export_on four.json four_ replicas.json --strict
check parts_that_fewer_keep_are_said_whole 0 "" export_on four.json four_ fewer.json --strict
check halves_are_refused 3 "the parameters of 36 of 36 variables are whole, and would be sharded" \
    export_of dear
SYNCOPATE=$syncopate timeout 600 $ranks typed_export.json exported_*.json four_*.json 2>err ||
    echo "not ok training_ends_well: $(tail -n 1 err)"

# ---- how much travels, on a loopback of our own ----
if unshare -n true 2>/dev/null && command -v ip >/dev/null; then
    timeout 100 unshare -n bash -c "ip link set lo up && $python $root/tests/cli/pytorch_fsdp.py bytes" 2>err ||
        echo "not ok bytes_end_well: $(tail -n 1 err)"
else
    echo "skip our_reduce_scatter_sends_half_the_bytes_of_gloos: needs root and iproute2"
fi

# ---- docs/fsdp.md, typed as it stands ----
export ROOT=$root OUT=${OUT:-build/release} PATH=$dir/programs:$root/build/venv/bin:$PATH PYTHONPATH=$root/interop/pytorch:$root/tests/http
mkdir page
(cd page && python3 -c 'import guide
guide.BLOCK_SECONDS = 300
guide.main(["docs/fsdp.md"])')

# ---- what the bench writes of halves: of each operation the same sizes ----
timeout 300 "$forked" "$root/tests/cli/pytorch.py" "$root/interop/pytorch" bench --max-bytes 16384 --idle --sharded --out halves.json 2>bench.err ||
    echo "not ok bench_ends_well: $(tail -n 1 bench.err)"
check it_can_be_used 0 "fsdp-per-block" "$syncopate" simulate cnn-small halves.json --baseline fsdp-per-block
check halves_are_measured_as_all_reduces_are 0 "" "$python" -c '
import json
times = {}
for m in json.load(open("halves.json"))["measurements"]:
    times.setdefault(m["operation"], {})[m["bytes"]] = m["time_us"]
assert sorted(times) == ["all_gather", "all_reduce", "reduce_scatter"], sorted(times)
assert all(sorted(t) == [4**k for k in range(5, 8)] for t in times.values()), times
assert all(t > 0 for curve in times.values() for t in curve.values()), times'
