#!/bin/bash
# Updates in parts by the hook (ZeRO-1, DeAR) against plain DistributedDataParallel, with gloo on the loopback, by the
# PyTorch of Debian and by that of build/venv.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 34
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/interop/pytorch:$root/tests/cli PYTHONWARNINGS=ignore
cat >cluster.json <<'JSON'
{"schema":"syncopate.cluster/1","name":"here",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":1,"device_link_gbyte_per_s":12}]}
JSON
trains() { # PYTHON
    local ranks="$1 $root/tests/cli/pytorch_sharded.py" baseline
    if ! $1 -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null; then
        echo "skip pytorch_sharded by $1: needs PyTorch with gloo"
        return
    fi
    timeout 100 $ranks profile 2>err || echo "not ok profile_ends_well: $(tail -n 1 err)"
    for baseline in dear megatron-distributed-optimizer; do
        "$syncopate" strategy export $baseline --model model.json --cluster cluster.json --to pytorch-hook --strict \
            --out $baseline.json
        verdict "hook_says_${baseline}_whole" $?
    done
    timeout 300 $ranks dear.json megatron-distributed-optimizer.json 2>err ||
        echo "not ok training_ends_well: $(tail -n 1 err)"
}
trains /usr/bin/python3
trains "$root/build/venv/bin/python3"
