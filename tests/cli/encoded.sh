#!/bin/bash
# Trials of gradients that travel as 16-bit floats, as 8-bit integers in blocks, as their largest elements, and as products
# of thin matrices, over MPI on a network so slow that it alone decides: they take about half and a quarter as long, as
# predicted, and every sum is checked. Needs OUT and, for labs, root; prints ok, not ok and skip lines (tests/README.md).
# Alone: real trials are timed.
# Plan: 24
set -u
cd "$(dirname "$0")/../.."
source tests/cli/trials.bash encoded

# 2.4 MB in two variables; 40 Mbit/s.
cat >model.json <<'END'
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[400,500]},{"name":"b","shape":[500,800]}],
 "layers":[{"name":"1","forward_us":500,"backward_us":500,"variables":["a"]},
           {"name":"2","forward_us":500,"backward_us":500,"variables":["b"]}]}
END
cat >cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"slow",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":0.04,"nic_latency_us":50}]}
END
# strategy NAME SYNC ENCODING [GROUPS]: SYNC is of both variables, in a message each.
strategy() {
    cat >"$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1","schedule":{"policy":"fifo","cross_iteration":true},${4:-}
 "variables":[{"name":"a","encoding":$3,"sync":$2},{"name":"b","encoding":$3,"sync":$2}]}
END
}
for encoding in none f16 bf16; do
    strategy ring-$encoding '{"kind":"all_reduce","group":0}' "\"$encoding\"" '"groups":[{"id":0,"algorithm":"ring"}],'
    strategy server-$encoding '{"kind":"parameter_server","servers":["n2"]}' "\"$encoding\""
done
int8='{"kind":"int8","block_size":128}'
strategy int8 '{"kind":"all_reduce","group":0}' "$int8" '"groups":[{"id":0}],'
strategy int8-parts '{"kind":"all_reduce","group":0}' "$int8" '"groups":[{"id":0,"partition_bytes":300000}],'
strategy topk '{"kind":"all_reduce","group":0}' '{"kind":"topk","part":0.01}' '"groups":[{"id":0}],'
strategy topk-few '{"kind":"all_reduce","group":0}' '{"kind":"topk","part":1e-5}' '"groups":[{"id":0}],'
strategy powersgd '{"kind":"all_reduce","group":0}' '{"kind":"powersgd","rank":4}' '"groups":[{"id":0}],'
strategy int8-server '{"kind":"parameter_server","servers":["n2"]}' "$int8"

here ring-f16 --iterations 3 --warmup 0
[ $? = 0 ] && grep -q '"event":"done"' out
verdict right_sums_of_halves_pass $? "$(head -c 300 out)"
! here ring-f16 --iterations 3 --warmup 0 --fault sum && grep -q '"event":"error".*sum' out
verdict a_wrong_sum_of_halves_is_noticed $? "$(head -c 300 out)"
here int8-parts --iterations 3 --warmup 0
[ $? = 0 ] && grep -q '"event":"done"' out
verdict right_sums_of_blocks_pass $? "$(head -c 300 out)"
! here int8-parts --iterations 3 --warmup 0 --fault sum && grep -q '"event":"error".*sum' out
verdict a_wrong_sum_of_blocks_is_noticed $? "$(head -c 300 out)"
here topk-few --iterations 20 --warmup 0 # 6 elements of a message travel, and 16 are checked
[ $? = 0 ] && grep -q '"event":"done"' out
verdict what_devices_keep_of_their_gradients_goes_later $? "$(head -c 300 out)"
! here topk-few --iterations 3 --warmup 0 --fault sum && grep -q '"event":"error".*sum' out
verdict a_wrong_sum_of_the_largest_is_noticed $? "$(head -c 300 out)"
here powersgd --iterations 20 --warmup 0 # 16 elements of a message are set, and their matrices have more than rank 4
[ $? = 0 ] && grep -q '"event":"done"' out
verdict right_sums_of_thin_matrices_pass $? "$(head -c 300 out)"
! here powersgd --iterations 3 --warmup 0 --fault sum && grep -q '"event":"error".*sum' out
verdict a_wrong_sum_of_thin_matrices_is_noticed $? "$(head -c 300 out)"
# Odd sizes, gradients of f64, messages of several gradients and of a few elements, fewer blocks than devices, shards.
mkdir odd && cp cluster.json odd
cat >odd/model.json <<'END'
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[200001]},{"name":"b","shape":[50,20,40]},{"name":"c","shape":[10,100],"dtype":"f64"},
              {"name":"d","shape":[9]},{"name":"e","shape":[7,50]}],
 "layers":[{"name":"1","forward_us":500,"backward_us":500,"variables":["a","d"]},
           {"name":"2","forward_us":500,"backward_us":500,"variables":["b","c","e"]}]}
END
# odd NAME ENCODING_OF_ELEMENTS ENCODING_OF_FEW
odd() {
    cat >"odd/$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1",
 "schedule":{"policy":"priority","cross_iteration":true,"credit_bytes":100000},
 "groups":[{"id":0,"partition_bytes":300000},{"id":1},{"id":2},{"id":3}],
 "variables":[{"name":"a","encoding":$2,"sync":{"kind":"all_reduce","group":0}},
              {"name":"b","encoding":$2,"sync":{"kind":"all_reduce","group":0}},
              {"name":"c","encoding":$2,"sync":{"kind":"all_reduce","group":1}},
              {"name":"d","encoding":$3,"sync":{"kind":"all_reduce","group":2}},
              {"name":"e","partition":{"shards":3},"encoding":$2,"sync":{"kind":"all_reduce","group":3}}]}
END
}
odd int8 '{"kind":"int8","block_size":67}' '{"kind":"int8","block_size":8}'
odd topk '{"kind":"topk","part":0.003}' '{"kind":"topk","part":0.3}'
odd powersgd '{"kind":"powersgd","rank":3}' '{"kind":"powersgd","rank":1}'
sed -i 's/,"partition_bytes":300000//; s/"partition":{"shards":3},//' odd/powersgd.json
for name in int8 topk powersgd; do
    (cd odd && here $name --iterations 20 --warmup 0 && grep -q '"event":"done"' out)
    verdict sums_of_odd_gradients_by_${name}_are_right $? "$(head -c 300 odd/out)"
done
check blocks_on_a_server_are_refused 2 'int8-server.json: /variables/0: variable "a" is served and encoded as int8' \
    "$syncopate" simulate model.json cluster.json --strategy int8-server.json
sed 's/"rank":3/"rank":8/' odd/powersgd.json >odd/high.json
check a_rank_above_a_matrix_is_refused 2 'high.json: /variables/4: variable "e" is a matrix of 7 rows of 50, which has no rank 8: lower "rank"' \
    "$syncopate" simulate odd/model.json cluster.json --strategy odd/high.json

needs_lab encoded
for name in ring-none ring-f16 ring-bf16 server-none server-f16 int8 int8-parts topk powersgd; do
    check "${name//-/_}_runs_in_the_lab" 0 '"measured_us"' trial $name 3 1
    cp out $name.out
done
# Bounds are wide: a busy machine may delay a message, but not by as much as the links take.
python3 - <<'PY' 2>why
import json
t = {n: json.load(open(n + ".out")) for n in ("ring-none", "ring-f16", "ring-bf16", "server-none", "server-f16",
                                                 "int8", "int8-parts", "topk", "powersgd")}
for exact, lossy in (("ring-none", "ring-f16"), ("ring-none", "ring-bf16"), ("server-none", "server-f16")):
    measured = t[lossy]["measured_us"] / t[exact]["measured_us"]
    predicted = t[lossy]["predicted_us"] / t[exact]["predicted_us"]
    assert 0.35 < measured < 0.7, (lossy, "measured", measured)
    assert 0.45 < predicted < 0.55, (lossy, "predicted", predicted)
for name in ("int8", "int8-parts"):
    measured = t[name]["measured_us"] / t["ring-none"]["measured_us"]
    predicted = t[name]["predicted_us"] / t["ring-none"]["predicted_us"]
    assert 0.15 < measured < 0.4, (name, "measured", measured)
    assert 0.23 < predicted < 0.32, (name, "predicted", predicted)
measured, predicted = (t["topk"][us] / t["ring-none"][us] for us in ("measured_us", "predicted_us"))
assert measured < 0.15 and predicted < 0.06, ("topk", measured, predicted)
measured, predicted = (t["powersgd"][us] / t["ring-none"][us] for us in ("measured_us", "predicted_us"))
assert measured < 0.1 and predicted < 0.06, ("powersgd", measured, predicted)
PY
verdict halves_and_blocks_take_as_long_as_their_bytes $? "$(tail -n 1 why)"
near 0.6 1.4 ring-none ring-f16 ring-bf16 server-none server-f16 int8 int8-parts
