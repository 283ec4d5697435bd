#!/bin/bash
# Training by the hook against plain DistributedDataParallel, profiling in all ranks at once, and the bench of
# torch.distributed, with gloo on the loopback.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Plan: 48
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/interop/pytorch
gloo='import torch.distributed as d; assert d.is_available() and d.is_gloo_available()'
for python in python3 /usr/bin/python3 none; do $python -c "$gloo" 2>/dev/null && break; done
if [ $python = none ]; then
    echo "skip pytorch: needs PyTorch with gloo (Debian: python3-torch)"
    exit 0
fi

# ---- a model and a cluster of this machine ----
module=$root/interop/pytorch
timeout 100 $python "$root/tests/cli/pytorch.py" "$module" profile . 2>err ||
    echo "not ok profile_ends_well: $(tail -n 1 err)"
cat >cluster.json <<'JSON'
{"schema":"syncopate.cluster/1","name":"here",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":1,"device_link_gbyte_per_s":12}]}
JSON
timeout 100 $python "$root/tests/cli/pytorch.py" "$module" bench cluster.json --max-bytes 65536 --out measured.json 2>bench.err
bench=$?
timeout 100 $python "$root/tests/cli/pytorch.py" "$module" bench missing.json --out none.json >missing 2>&1
check bench_of_a_missing_file_says_one_line 0 "" test "$(cat missing)" = "syncopate_torch.bench: missing.json: No such file or directory"
check bench_of_torch_distributed_ends_well 0 "" test "$bench" = 0
check bench_measures_all_reduces 0 "4" grep -c '"time_us"' measured.json
check bench_measures_encoding 0 "1" grep -c '"encode_gbyte_per_s": [0-9.]*[1-9]' measured.json
check bench_measures_what_computing_and_messages_leave_each_other 0 "" $python -c '
import json
parts = json.load(open("measured.json"))["interference"]
shares = [parts[part][of] for part in ("startup", "transfer") for of in ("compute", "traffic")]
assert len(parts) == 2 and all(0 < share <= 1 for share in shares), parts'
check bench_says_in_a_line_which_shares_it_clamps 0 "" $python -c '
from syncopate_torch.interference import shares
found, warning = shares({"startup": {"compute": 0.7404, "traffic": 1.004}, "transfer": {"compute": 1.25, "traffic": 0}})
assert found == {"startup": {"compute": 0.74, "traffic": 1}, "transfer": {"compute": 1, "traffic": 0.01}}, found
assert warning.startswith("warning: shares above 1 count as 1: transfer compute 1.25;") and "\n" not in warning, warning
assert shares({"startup": {"compute": 1, "traffic": 0.9}})[1] is None'
check bench_help_says_what_it_measures 0 "computing and messages slow each other" \
    timeout 100 $python -m syncopate_torch.bench --help
check bench_writes_a_cluster_that_predicts 0 "pytorch-ddp" "$syncopate" simulate model.json \
    measured.json --baseline pytorch-ddp

# ---- strategies of syncopate, and random ones ----
hooks=()
for baseline in pytorch-ddp single mg-wfbp bytescheduler-all-reduce pace ps; do
    "$syncopate" strategy export $baseline --model model.json --cluster measured.json --to pytorch-hook \
        --out "$baseline.json" 2>"$baseline.err" && hooks+=("$baseline.json")
done
check hook_says_priority_whole 0 "" test ! -s bytescheduler-all-reduce.err
check hook_says_slices_whole 0 "" test ! -s pace.err
check hook_has_no_servers 0 "parameter-server" cat ps.err
timeout 500 $python "$root/tests/cli/pytorch.py" "$module" train "${hooks[@]}" 2>err ||
    echo "not ok training_ends_well: $(tail -n 1 err)"
