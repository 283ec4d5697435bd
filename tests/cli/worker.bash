# Sourced by the tests of worker programs: a folder $dir with a small job for two nodes, ranks of a program on it, and
# verdicts.
source tests/cli/check.bash
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# describe_job US DEVICE: model.json, whose four operators take US each, and cluster.json, two nodes of one DEVICE.
describe_job() {
    cat >"$dir/model.json" <<END
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[1000],"dtype":"f32"},{"name":"b","shape":[70],"dtype":"u8"},
              {"name":"c","shape":[40000],"dtype":"f16"},{"name":"d","shape":[9],"dtype":"f64"}],
 "layers":[{"name":"1","forward_us":$1,"backward_us":$1,"variables":["a","b"]},
           {"name":"2","forward_us":$1,"backward_us":$1,"variables":["c","d"]}]}
END
    cat >"$dir/cluster.json" <<END
{"schema":"syncopate.cluster/1","name":"c",
 "nodes":[{"name":"n","count":2,"devices":1,"device":"$2","nic_gbit_per_s":1,"nic_latency_us":50}]}
END
}

# describe_strategy ALGORITHM ALGORITHM: those of a and d; b and c, in three parts, go to a server on the second node.
describe_strategy() {
    cat <<END
{"schema":"syncopate.strategy/1","name":"s","schedule":{"policy":"priority","credit_bytes":1000,"cross_iteration":true},
 "groups":[{"id":0,"algorithm":"$1"},{"id":1,"algorithm":"$2"}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":0}},
  {"name":"b","sync":{"kind":"parameter_server","servers":["n2"]}},
  {"name":"c","sync":{"kind":"parameter_server","servers":["n2"],"partition_bytes":30000}},
  {"name":"d","sync":{"kind":"all_reduce","group":1}}]}
END
}

# run N PROGRAM STRATEGY ARGUMENT...: that strategy of $dir on N ranks.
run() {
    local n=$1 program=$2 file=$3
    shift 3
    ranks "$n" "$program" run --model "$dir/model.json" --cluster "$dir/cluster.json" --strategy "$dir/$file" "$@"
}

# ranks N PROGRAM ARGUMENT...
ranks() {
    local n=$1 root=
    shift
    [ "$(id -u)" = 0 ] && root=--allow-run-as-root
    timeout 60 mpirun $root --oversubscribe --bind-to none --mca btl self,vader --mca mpi_yield_when_idle 1 -np "$n" \
        "$@" 2>"$dir/stderr"
}

# lines_are STATUS: standard input, Python's assertions, holds of the run that ended with STATUS and left its lines in
# $dir/lines: `lines` are all, `events` their kinds, `messages` and `steps` what was traced. Samples: 16 of a, of b and
# of each of c's three parts, 9 of d; on two devices in five iterations, of which one warms up.
lines_are() {
    cat >"$dir/lines.py" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
events = [line["event"] for line in lines]
assert sys.argv[2] == "0", "exit status " + sys.argv[2]
assert events[0] == "ready" and events[-1] == "done", events
assert [line["index"] for line in lines if line["event"] == "iteration"] == [0, 1, 2, 3], events
done = lines[-1]
assert done["iterations"] == 4 and done["checked"] == 5 * 2 * (16 * 5 + 9), done
messages = sorted((t for t in lines if t["event"] == "message"), key=lambda t: (t["iteration"], t["message"]))
steps = [line for line in lines if line["event"] == "step"]
assert [(t["iteration"], t["message"]) for t in messages] == [(i, m) for i in range(4) for m in range(6)], messages
assert all(t["ready_us"] <= t["start_us"] <= t["end_us"] for t in messages), messages
END
    cat >>"$dir/lines.py"
    python3 "$dir/lines.py" "$dir/lines" "$1" 2>&1
}

# What both programs say alike. $dir/strategy.json needs 3 ranks.
refuses_a_wrong_number_of_ranks() { # PROGRAM
    local said
    said=$(run 2 "$1" strategy.json --iterations 4)
    [[ $said == *'"event":"error"'*"needs 3 ranks"* ]]
    verdict a_wrong_number_of_ranks_is_said $? "$said"
}
tells_curves_and_costs() { # PROGRAM ALGORITHM
    local said
    said=$(ranks 2 "$1" bench --cluster "$dir/cluster.json" --max-bytes 4096 --time-limit 50)
    [[ $said == *'"operation":"all_reduce","algorithm":"'"$2"'","devices":2,"bytes":4096'* &&
        $said == *'"operation":"push"'* && $said == *'"event":"runtime"'*'"coordination_us"'*'"event":"done"'* ]]
    verdict a_bench_tells_curves_and_runtime_costs $? "$said"
}
tells_complete_rounds() { # PROGRAM; there are none on a machine so slow that they do not fit into the time
    local why
    ranks 2 "$1" bench --cluster "$dir/cluster.json" --max-bytes 1048576 --time-limit 12 >"$dir/lines"
    why=$(python3 - "$dir/lines" 2>&1 <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
rounds = [line for line in lines if line["event"] == "interference"]
rings = {line["bytes"]: line["time_us"] for line in lines if line["event"] == "measurement" and line.get("algorithm") == "ring"}
assert rounds or rings.get(1024, 1e6) > 500, rings
parts = [line["part"] for line in rounds]
assert parts in (["startup"] * len(parts), ["startup", "transfer"] * (len(parts) // 2)), parts
for line in rounds:
    assert line["operation"] == "all_reduce" and line["algorithm"] == "ring" and line["devices"] == 2, line
    assert line["bytes"] in rings and (line["bytes"] == 1024) == (line["part"] == "startup"), line
    assert line["messages"] >= 3 and 0 < line["messages_us"] and 0 < line["beside_us"], line
    assert 0 < line["compute_us"] and 0 < line["both_us"], line
    assert abs(line["time_us"] - line["beside_us"] / line["messages"]) < 1, line
for part in set(parts):
    assert len({line["messages"] for line in rounds if line["part"] == part}) == 1, rounds
PYTHON
    )
    verdict a_bench_tells_complete_rounds_of_computing_beside_messages $? "$why"
}
