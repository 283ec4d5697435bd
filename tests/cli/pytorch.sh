#!/bin/bash
# Training by the hook against plain DistributedDataParallel, profiling in all ranks at once, and the bench of
# torch.distributed, with gloo on the loopback.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 108
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
source tests/cli/forks.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'forks_end; rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/interop/pytorch
gloo='import torch.distributed as d; assert d.is_available() and d.is_gloo_available()'
for python in python3 /usr/bin/python3 none; do $python -c "$gloo" 2>/dev/null && break; done
if [ $python = none ]; then
    echo "skip pytorch: needs PyTorch with gloo (Debian: python3-torch)"
    exit 0
fi

# Whatever needs torch below is forked by a process that has it; cli/pytorch_pages.sh starts programs as users do.
forks_of $python "$dir"
python=$dir/forked
cd "$dir" || exit 2

# ---- a model and a cluster of this machine ----
module=$root/interop/pytorch
timeout 300 $python "$root/tests/cli/pytorch.py" "$module" profile . 2>err ||
    echo "not ok profile_ends_well: $(tail -n 1 err)"
cat >cluster.json <<'JSON'
{"schema":"syncopate.cluster/1","name":"here",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":1,"device_link_gbyte_per_s":12}]}
JSON
timeout 300 $python "$root/tests/cli/pytorch.py" "$module" bench cluster.json --max-bytes 65536 --out measured.json 2>bench.err
ended=$?

# ---- bad input, for which one version of PyTorch is enough ----
# one_line NAME LINE COMMAND...: it ends with status 2 and says LINE and nothing else. PyTorch's own warnings, such as that
# it has no NumPy, do not count.
export PYTHONWARNINGS=ignore::UserWarning
one_line() {
    local name=$1 line=$2 got
    shift 2
    timeout 100 "$@" >said 2>&1 </dev/null
    got=$?
    [ $got = 2 ] && [ "$(cat said)" = "$line" ]
    verdict "$name" $? "status $got, $(head -c 400 said)"
}
bad_input() {
    bench=syncopate_torch.bench
    echo '{' >cut.json
    echo '{"groups": [{}]}' >other.json
    echo '{"nodes": 3}' >nodes.json
    ranks_bench=("$python" "$root/tests/cli/pytorch.py" "$module" bench)
    for file in missing . cut nodes; do
        case $file in
        missing) path=missing.json why="missing.json: No such file or directory" ;;
        .) path=. why=".: Is a directory" ;;
        *) path=$file.json why="$file.json: is no cluster file; \`syncopate import cluster\` makes one" ;;
        esac
        one_line "bench_of_${file/./a_folder}_says_one_line" "$bench: error: $why" "${ranks_bench[@]}" $path --out none.json
    done
    one_line bench_into_a_missing_folder_says_one_line "$bench: error: none/m.json: cannot write into none: No such file or directory" \
        "${ranks_bench[@]}" cluster.json --out none/m.json
    one_line bench_into_a_folder_says_one_line "$bench: error: .: is a directory; name a file in it" \
        "${ranks_bench[@]}" cluster.json --out .
    timeout 100 "$python" -m $bench cluster.json --out none.json >said 2>&1 </dev/null
    [ $? = 2 ] && [ "$(wc -l <said)" = 1 ] && grep -qF "RANK expected" said && grep -qF "by torchrun, srun or mpirun" said
    verdict bench_without_ranks_says_one_line $? "$(head -c 400 said)"
    train=$root/examples/pytorch/train.py
    one_line training_by_a_missing_strategy_says_one_line "train.py: error: missing.json: No such file or directory" \
        "$python" "$train" --strategy missing.json
    one_line training_by_a_cut_strategy_says_one_line \
        "train.py: error: cut.json: Expecting property name enclosed in double quotes: line 2 column 1 (char 2)" \
        "$python" "$train" --strategy cut.json
    one_line training_by_another_file_says_one_line \
        "train.py: error: other.json: no groups of variables; syncopate strategy export --to pytorch-hook writes them" \
        "$python" "$train" --strategy other.json
    one_line a_profile_into_a_missing_folder_says_one_line \
        "train.py: error: none/m.json: cannot write into none: No such file or directory" "$python" "$train" --profile none/m.json
    check a_table_of_a_missing_folder_says_one_line 1 "" "$python" "$root/examples/pytorch/table.py" none what 1
    [ "$(cat err)" = "table.py: error: none/model.json: No such file or directory" ]
    verdict and_which_file_that_is $? "$(head -c 400 err)"
}
[ -n "${GOOD_INPUT_ONLY-}" ] || bad_input
unset PYTHONWARNINGS

# ---- what the bench has measured ----
check bench_of_torch_distributed_ends_well 0 "" test "$ended" = 0
check bench_measures_all_reduces 0 "4" grep -c '"time_us"' measured.json
check bench_measures_encoding 0 "1" grep -c '"encode_gbyte_per_s": [0-9.]*[1-9]' measured.json
check bench_measures_pushes_and_sums 0 "2" grep -cE '"(push_us|sum_gbyte_per_s)": [0-9.]*[1-9]' measured.json
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
for baseline in pytorch-ddp single mg-wfbp bytescheduler-all-reduce pace ps ps-partitioned bytescheduler-ps p3; do
    "$syncopate" strategy export $baseline --model model.json --cluster measured.json --to pytorch-hook \
        --out "$baseline.json" 2>"$baseline.err" && hooks+=("$baseline.json")
done
check hook_says_priority_whole 0 "" test ! -s bytescheduler-all-reduce.err
check hook_says_slices_whole 0 "" test ! -s pace.err
check hook_says_servers_whole 0 "" test ! -s ps.err
check hook_says_order_of_servers_whole 0 "" test ! -s bytescheduler-ps.err
timeout 400 $python "$root/tests/cli/pytorch_features.py" "$module" 2>err ||
    echo "not ok features_end_well: $(grep . err | tail -n 3 | tr '\n' '|')"
timeout 500 $python "$root/tests/cli/pytorch.py" "$module" train "${hooks[@]}" 2>err ||
    echo "not ok training_ends_well: $(tail -n 1 err)"
