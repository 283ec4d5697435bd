#!/bin/bash
# Shards with synchronizers of their own, from a file to a real trial: one strategy is checked, shown, compared, simulated,
# exported and run, by both workers. Prints ok, not ok and skip lines.
# Alone: real trials are timed.
# Plan: 11
set -u
cd "$(dirname "$0")/../.." || exit 1
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
worker=$PWD/${OUT:-build/release}/tests/support/syncopate-worker-nccl
if ! [ -x "$syncopate" ]; then
    echo "skip shards: needs the program"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

cat >model.json <<'END'
{"schema":"syncopate.model/1","name":"embed","batch_per_device":1,
 "variables":[{"name":"table","shape":[1001,7]},{"name":"rows","shape":[500,9],"sparse_rows":60},
  {"name":"w","shape":[300,40]},{"name":"b","shape":[40]}],
 "layers":[{"name":"1","forward_us":500,"backward_us":500,"variables":["table","rows"]},
           {"name":"2","forward_us":500,"backward_us":500,"variables":["w","b"]}]}
END
cat >cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"c",
 "nodes":[{"name":"n","count":2,"devices":1,"device":"cpu","nic_gbit_per_s":1,"nic_latency_us":50}]}
END
# table has 251, 250, 250 and 250 rows, so that no f32 shard but the first begins where one of that type would.
cat >strategy.json <<'END'
{"schema":"syncopate.strategy/1","name":"parts",
 "schedule":{"policy":"priority","credit_bytes":4000,"cross_iteration":true},
 "groups":[{"id":0,"algorithm":"ring","partition_bytes":8000},{"id":1,"algorithm":"ring"},
           {"id":2,"algorithm":"all_gather"}],
 "variables":[
  {"name":"table","partition":{"shards":4},"each_shard":[
    {"encoding":"f16","sync":{"kind":"all_reduce","group":1}},
    {"sync":{"kind":"parameter_server","servers":["n2"],"partition_bytes":2048}},
    {"sync":{"kind":"all_reduce","group":0}},
    {"encoding":"f16","sync":{"kind":"parameter_server","servers":["n1"],"local_reduction":false}}]},
  {"name":"rows","partition":{"axis":1,"shards":3},"each_shard":[
    {"sync":{"kind":"all_reduce","group":0}},
    {"sync":{"kind":"all_reduce","group":2}},
    {"encoding":"bf16","sync":{"kind":"parameter_server","servers":["n2"]}}]},
  {"name":"w","sync":{"kind":"all_reduce","group":0}},
  {"name":"b","sync":{"kind":"parameter_server","servers":["n1"]}}]}
END
job=(model.json cluster.json)
sed 's/"shards":4/"shards":5/' strategy.json >five.json
sed 's/"axis":1,"shards":3/"shards":3/' strategy.json >rows.json
sed 's/{"encoding":"f16","sync":{"kind":"all_reduce","group":1}}/{"sync":{"kind":"all_reduce","group":0}}/' strategy.json >other.json

check shards_are_shown_in_their_group 0 'table[2] .. w (3)' "$syncopate" strategy show "${job[@]}" --strategy strategy.json
check and_on_their_server 0 'table[1]' "$syncopate" strategy show "${job[@]}" --strategy strategy.json
"$syncopate" strategy show "${job[@]}" --strategy strategy.json --json >again.json 2>err
check shown_shards_read_back_the_same 0 '' "$syncopate" strategy diff "${job[@]}" strategy.json again.json
check another_way_of_one_shard_shows 1 '4 shards of axis 0: [0] all-reduce in group 0 by ring, partitions of 8000; [1] server n2' \
    "$syncopate" strategy diff "${job[@]}" strategy.json other.json
check entries_are_counted 2 '/variables/0/each_shard: 4 entries for 5 shards' "$syncopate" strategy check "${job[@]}" five.json
check a_bad_shard_is_named 2 '/variables/1: shard 1: variable "rows" is sparse and cut along axis 0' \
    "$syncopate" strategy check "${job[@]}" rows.json
check shards_are_simulated 0 'parts' "$syncopate" simulate "${job[@]}" --strategy strategy.json
check an_export_says_what_it_leaves_out 0 'the shards of 2 of 4 variables are synchronized in several ways' \
    "$syncopate" strategy export strategy.json --model model.json --cluster cluster.json --to pytorch-ddp --out ddp
check a_job_that_cannot_do_it_is_not_started 3 'horovod cannot say everything that parts does: parameter-server, shards' \
    "$syncopate" trial "${job[@]}" --strategy strategy.json --command true --export-env horovod

# The workers check every sum.
if ! command -v mpirun >/dev/null; then
    echo "skip a_trial: needs mpirun"
    exit 0
fi
check a_trial_completes 0 'an iteration' \
    "$syncopate" trial "${job[@]}" --strategy strategy.json --runner local --iterations 4
if ! [ -x "$worker" ]; then
    echo "skip and_by_nccl: needs the NCCL worker, which CUDA and NCCL are for"
    exit 0
fi
[ "$(id -u)" = 0 ] && root=--allow-run-as-root || root=
sed 's/"cpu"/"gpu"/' cluster.json >gpu.json
check and_by_nccl 0 '"event":"done","iterations":3,"checked":2720' timeout 60 mpirun $root --oversubscribe --bind-to none \
    --mca btl self,vader --mca mpi_yield_when_idle 1 -np 4 \
    "$worker" run --model model.json --cluster gpu.json --strategy strategy.json --iterations 3 --verify
