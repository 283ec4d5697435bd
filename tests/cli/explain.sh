#!/bin/bash
# Where an iteration's time went, from traces of four ranks: generated ones of which the truth is known, one of 100 MB
# (EXPLAIN_MB), and real ones where there is a PyTorch whose profiler is Kineto.
# Once: it is the generator's time and torch's; what it calls of ours has tests of its own.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 52
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
megabytes=${EXPLAIN_MB:-100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
say() { python3 "$root/tests/cli/explain.py" "$@"; }

# ---- generated: late by 5 ms, clocks up to 3 s apart ----
for form in gloo nccl; do
    mkdir $form
    say write $form $form || echo "not ok $form: traces are written"
    check ${form}_is_explained 0 'Rank 2 is late: the others wait' "$syncopate" explain $form/rank?.json
    [ "$(grep -cE '^rank [0-3] +\| *#+\.*=+ +\|$' out)" = 4 ]
    verdict ${form}_is_drawn $? "$(head -n 9 out)"
    "$syncopate" explain $form/rank?.json --json >$form.json 2>err
    say check $form.json
done
check it_is_a_page_too 0 'page written to page.html' "$syncopate" explain nccl/rank?.json --html page.html
python3 -c 'import re, xml.dom.minidom as x; t = open("page.html").read(); x.parseString(re.sub("<!DOCTYPE[^>]*>", "", t)); assert "Rank 2 is late" in t and t.count(">rank ") >= 4'
verdict the_page_says_it $?
check the_order_of_files_does_not_matter 0 '' "$syncopate" explain nccl/rank3.json nccl/rank0.json nccl/rank2.json nccl/rank1.json --json
python3 -c 'import json; a, b = (json.load(open(f)) for f in ("out", "nccl.json")); assert a == b'
verdict it_says_the_same $?
check several_pipes 0 'Rank 2 is late' bash -c \
    "'$syncopate' explain - <(cat gloo/rank1.json) <(cat gloo/rank2.json) <(cat gloo/rank3.json) <gloo/rank0.json"
check one_trace_alone 0 "one rank's trace does not tell when the others came" "$syncopate" explain nccl/rank0.json
check some_ranks_are_missing 0 'more ranks than there are traces' "$syncopate" explain nccl/rank[012].json

# ---- costs for a cluster file ----
check costs_go_into_a_cluster 0 '3 all-reduces written to measured.json' "$syncopate" explain nccl/rank?.json --cluster lab-4x1g --out measured.json
python3 - <<'PY'
import json
cluster = json.load(open("measured.json"))
new = [m for m in cluster["measurements"] if m["operation"] == "all_reduce" and m["algorithm"] == "auto"]
assert [m["bytes"] for m in new] == [1 << 16, 1 << 20, 1 << 22], new
assert all(m["low_us"] <= m["time_us"] <= m["high_us"] and m["devices"] == 4 for m in new)
PY
verdict they_have_intervals $?
check they_can_be_used 0 wfbp "$syncopate" simulate cnn-small measured.json --baseline wfbp
"$syncopate" explain nccl/rank[012].json --cluster lab-4x1g --out none.json >out 2>err
[ $? = 3 ] && grep -q 'nothing to write into none.json' err && grep -q 'Rank 2 is late' out
verdict costs_need_all_ranks $? "$(cat err)"
[ ! -e none.json ]
verdict nothing_is_written_then $?
check out_without_a_cluster 2 '--out without --cluster' "$syncopate" explain nccl/rank0.json --out none.json
check costs_do_not_go_where_the_explanation_goes 2 'give a file' "$syncopate" explain nccl/rank0.json --cluster lab-4x1g --out -
check nor_does_the_page 2 'give a file' "$syncopate" explain nccl/rank0.json --html -
check a_floor_needs_a_model 0 'what no strategy can hide is not told: nccl/rank0.json' "$syncopate" explain nccl/rank?.json --cluster lab-4x1g
check a_floor_needs_the_same_devices 0 'lab-8x500m has 8 devices, but the job had 4 ranks' "$syncopate" explain nccl/rank?.json --cluster lab-8x500m
check no_such_cluster 2 'nowhere.json' "$syncopate" explain nccl/rank?.json --cluster nowhere.json --out none.json

# ---- a file that cannot be written does not cost the explanation ----
check a_page_that_cannot_be_written 1 'no/page.html: cannot be written' "$syncopate" explain nccl/rank?.json --html no/page.html
grep -q 'Rank 2 is late' out
verdict it_is_explained_all_the_same $? "$(cat out)"
check a_cluster_that_cannot_be_written 1 'no/x.json: cannot be written' "$syncopate" explain nccl/rank?.json --cluster lab-4x1g --out no/x.json
grep -q 'Rank 2 is late' out
verdict that_costs_nothing_either $? "$(cat out)"

# ---- many ranks: pictures and tables show those that stand out ----
mkdir many
RANKS=256 say write many nccl
check many_ranks_are_explained 0 '6 of 256 ranks are shown' "$syncopate" explain many/rank*.json
[ "$(grep -cE '^rank [0-9]+ +\|' out)" = 6 ] && grep -q '^rank 2  ' out && grep -q 'ms  late$' out
verdict the_late_rank_and_a_few_are_drawn $? "$(cat out)"
echo "# peak memory: $(say peak "$syncopate" explain many/rank*.json) MiB for 256 ranks"
"$syncopate" explain many/rank*.json --json >many.json 2>err
python3 -c 'import json; s = json.load(open("many.json")); assert s["late_rank"] == 2 and len(s["ranks"]) == 256 and s["unmatched"] == 0, s["unmatched"]'
verdict json_has_all_of_them $?
rm -r many

# ---- refused ----
check a_missing_file 2 'none.json: No such file' "$syncopate" explain nccl/rank0.json none.json
check the_same_rank_twice 2 'of rank 0, as' "$syncopate" explain nccl/rank0.json gloo/rank0.json
check a_model_is_no_trace 2 'no list "traceEvents"' "$syncopate" explain "$root/examples/models/cnn-small.json"
head -c 3000 nccl/rank0.json >cut.json
check a_trace_that_is_cut 2 'is the file complete?' "$syncopate" explain cut.json
gzip -k nccl/rank1.json
check a_compressed_trace 2 'gunzip' "$syncopate" explain nccl/rank1.json.gz

# ---- from a GPU ----
# Four ranks of PyTorch 2.11 on one H200, with NCCL between namespaces joined by 2 Gbit/s; rank 2 slept for 20 ms before each
# forward pass. Kernels, copies and annotations of the traces as they were written. The PyTorch bench of that run timed
# all-reduces of 4 MiB at 26361 us and of 16 MiB at 106272 us: 6351 us a MB, so 53.9 ms and 179.3 ms for these sizes.
mkdir gpu
tar -xzf "$root/tests/cli/nccl_ranks.tgz" -C gpu
check a_gpu_s_late_rank_is_named 0 'it comes last to 8 of 12 collectives, by 17.7 ms' "$syncopate" explain gpu/rank?.json
"$syncopate" explain gpu/rank?.json --json >gpu.json 2>err
python3 - <<'PY'
import json
costs = {c["bytes"]: c["time_us"] for c in json.load(open("gpu.json"))["costs"]}
assert sorted(costs) == [1071144, 8566272, 28315648], costs
for size, want in ((8566272, 26361 + (8566272 - (4 << 20)) * 6351e-6), (28315648, 106272 + (28315648 - (16 << 20)) * 6351e-6)):
    assert abs(costs[size] / want - 1) < 0.05, (size, costs[size], want)
PY
verdict a_gpu_s_costs_are_the_bench_s $? "$(cat gpu.json)"

# ---- large: memory does not grow with the file ----
mkdir large
say write large gloo "$megabytes"
[ "$(stat -c %s large/rank0.json)" -gt $((megabytes * 1000000)) ]
verdict a_large_trace_is_written $? "$(ls -l large)"
small=$(say peak "$syncopate" explain gloo/rank?.json) large=$(say peak "$syncopate" explain large/rank?.json)
echo "# peak memory: $small MiB for small traces, $large MiB for one of $megabytes MB"
[ "$large" -le $((small + 16)) ]
verdict it_is_read_in_bounded_memory $? "$large MiB, and $small MiB for small traces"
rm -r large

# ---- real ----
kineto='import torch, torch.distributed as d; assert torch.profiler.kineto_available() and d.is_gloo_available()'
for python in "$root/build/venv/bin/python3" python3 none; do $python -c "$kineto" 2>/dev/null && break; done
if [ $python = none ]; then
    echo "skip real_traces: needs a PyTorch whose profiler is Kineto (.ci/torch; Debian's has none)"
else
    mkdir real
    OMP_NUM_THREADS=1 timeout 200 $python -m torch.distributed.run --nproc-per-node 4 --master-addr 127.0.0.1 \
        --master-port $((20000 + $$ % 10000)) "$root/tests/cli/explain.py" real real >/dev/null 2>err
    verdict real_traces_are_made $? "$(tail -n 1 err)"
    check real_traces_have_a_late_rank 0 'Rank 2 is late' "$syncopate" explain real/rank?.json
    check real_traces_tell_what_no_strategy_can_hide 0 'On lab-4x1g no strategy can hide' "$syncopate" explain real/rank?.json --cluster lab-4x1g
    "$syncopate" explain real/rank?.json --json >real.json 2>err
    python3 - <<'PY'
import json
said = json.load(open("real.json"))
late = said["ranks"][2]
assert 1e5 < late["held_up_us"] < 4e5 and late["last"] >= 7 and said["collectives"] == 8 and said["unmatched"] == 0, said
assert len(said["costs"]) == 1 and said["costs"][0]["bytes"] == 4 * (128 * 512 + 512 + 512 * 512 + 512 + 512 * 64 + 64), said
PY
    verdict real_traces_tell_times_and_bytes $?
fi
