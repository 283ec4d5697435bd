#!/bin/bash
# syncopate strategy export as a person types it, and every form read back by what reads it in earnest where that is
# here: a shell, python3, protoc and python3-protobuf; torch, accelerate and deepspeed, where .ci/torch puts them. Needs
# OUT; prints ok, not ok and skip lines (tests/README.md).
# Plan: 89
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
source tests/cli/service.bash
out=${OUT:-build/release}
root=$PWD
syncopate=$PWD/$out/bin/syncopate
plugin=$PWD/$out/lib/libnccl-tuner-syncopate.so
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2
forms="pytorch-ddp pytorch-hook fsdp2 fsdp2-code horovod deepspeed megatron torchtitan accelerate tensorflow xla byteps bytescheduler"
forms="$forms autodist nccl"
on=(--model resnet50 --cluster lab-4x1g)
export_of() { "$syncopate" strategy export "$@"; }
python=python3
python() { # NAME SCRIPT ARG...
    if $python -c "${@:2}" 2>err; then echo "ok $1"; else echo "not ok $1: $(tail -n 1 err)"; fi
}

# ---- words ----
for form in $forms; do
    check "help_lists_$form" 0 "$form" "$syncopate" strategy export --help
done
check no_such_form 2 'no form "jax"' export_of wfbp "${on[@]}" --to jax
check no_form_and_no_server 2 'give --to FORM' export_of wfbp "${on[@]}"
check no_model 2 'give --model and --cluster' export_of wfbp --to nccl
check no_such_strategy 2 'nothing.json' export_of nothing.json "${on[@]}" --to nccl
check several_files_need_a_folder 2 'give --out DIR' export_of wfbp "${on[@]}" --to autodist
check all_forms_need_a_folder 2 'give --out DIR' export_of wfbp "${on[@]}" --to all
check json_needs_files 2 'give --out as well' export_of wfbp "${on[@]}" --to horovod --json
check defaults_are_an_empty_object 0 '{}' export_of pytorch-ddp "${on[@]}" --to pytorch-ddp
check losses_are_told 0 'horovod cannot say: order: ' export_of bytescheduler-all-reduce "${on[@]}" --to horovod
check strict_is_an_error 3 'horovod cannot say everything that bytescheduler-all-reduce does: ' \
    export_of bytescheduler-all-reduce "${on[@]}" --to horovod --strict --out strict.env
[ ! -e strict.env ] && echo "ok strict_writes_nothing" || echo "not ok strict_writes_nothing: strict.env is there"
check strict_passes_what_is_whole 0 'HOROVOD_FUSION_THRESHOLD=134217728' export_of horovod "${on[@]}" --to horovod --strict
check folder_that_cannot_be 1 '/nonexistent' export_of wfbp "${on[@]}" --to nccl --out /nonexistent/x.env
"$syncopate" strategy show resnet50 lab-4x1g --baseline horovod --json | sed 's/"fifo"/"priority"/' >priority.json
check losses_as_json 0 '{"to":"horovod","files":["horovod.env"],"not_expressed":[{"what":"order","why":"what the next forward' \
    export_of priority.json "${on[@]}" --to horovod --out h.env --json

# ---- what would change the memory of a job is refused ----
able='forms that keep to it: fsdp2, fsdp2-code, deepspeed, torchtitan, accelerate'
gathered='are kept in parts and gathered before use, and would be whole and all-reduced'
check sharded_parameters_are_not_for_horovod 3 "horovod would change the memory that fsdp-per-block needs: 161 of 161 variables $gathered; $able" \
    export_of fsdp-per-block "${on[@]}" --to horovod --out refused
check nor_for_nccl_with_strict 3 "nccl would change the memory that fsdp-per-block needs: " \
    export_of fsdp-per-block "${on[@]}" --to nccl --strict --out refused
check a_sharded_optimizer_is_not_for_DDP 3 'would be all-reduced; forms that keep to it: pytorch-hook, deepspeed, megatron' \
    export_of zero-1 "${on[@]}" --to pytorch-ddp --out refused
check nor_for_fully_shard 3 'fsdp2 would change the memory that zero-1 needs: the parameters of 161 of 161 variables are whole' \
    export_of zero-1 "${on[@]}" --to fsdp2 --out refused
check fully_shard_leaves_nothing_whole 3 'fsdp2 would change the memory that wfbp needs: ' export_of wfbp "${on[@]}" --to fsdp2 --out refused
check replicas_are_not_for_deepspeed 3 'deepspeed would change the memory that hsdp needs: ' \
    export_of hsdp --model bert-base --cluster v100-16x10g --to deepspeed --out refused
"$syncopate" strategy show gpt2-small lab-4x1g --baseline fsdp-optimal --memory 600MB --json >wrapped.json
check other_groups_are_a_warning_with_both_peaks 0 'accelerate cannot say: memory: a device would need 633.9 MiB, not 571.4 MiB' \
    export_of wrapped.json --model gpt2-small --cluster lab-4x1g --to accelerate
sed 's/"device": *"cpu"/&,"device_memory_gbyte":0.62/' "$root"/examples/clusters/lab-4x1g.json >small.json
check refused_where_devices_have_less 3 'a device would need 633.9 MiB, not 571.4 MiB, and has 620MB (591.3 MiB); forms that keep to it: fsdp2, fsdp2-code' \
    export_of wrapped.json --model gpt2-small --cluster small.json --to accelerate --out refused
[ ! -e refused ] && echo "ok refusals_write_nothing" || echo "not ok refusals_write_nothing: refused is there"
python3 - "$root/examples/models/resnet50.json" <<'PYTHON'
import json, sys
model = json.load(open(sys.argv[1]))
for optimizer in "sgd", "momentum":
    json.dump(dict(model, optimizer=optimizer), open(optimizer + ".json", "w"))
PYTHON
check halves_without_states_are_a_loss 0 'horovod cannot say: sharded: ' \
    export_of dear --model sgd.json --cluster lab-4x1g --to horovod --out halves
check which_strict_refuses 3 'horovod cannot say everything that dear does: ' \
    export_of dear --model sgd.json --cluster lab-4x1g --to horovod --strict
check halves_with_states_are_refused 3 'horovod would change the memory that dear needs: ' \
    export_of dear --model momentum.json --cluster lab-4x1g --to horovod
check unless_the_loss_is_accepted 0 'horovod cannot say: sharded: ' \
    export_of fsdp-per-block "${on[@]}" --to horovod --accept groups,sharded --out accepted.env
hsdp=(hsdp --model bert-base --cluster v100-16x10g --to horovod --out hsdp)
check every_loss_that_counts_must_be 3 'horovod would change the memory that hsdp needs: 4 devices share the parameters, which have 4 replicas' \
    export_of "${hsdp[@]}" --accept sharded
check accepted_losses_are_not_strict 0 'horovod cannot say: replicas: ' export_of "${hsdp[@]}" --accept sharded,replicas --strict
check other_losses_are 3 'horovod cannot say everything that bytescheduler-all-reduce does: partition' \
    export_of bytescheduler-all-reduce "${on[@]}" --to horovod --accept order,credit,cross-iteration --strict
check a_loss_that_is_none 2 'there is no loss "speed"; losses are groups' export_of wfbp "${on[@]}" --to nccl --accept speed
check losses_of_no_form 2 '--accept is about --to' export_of wfbp "${on[@]}" --accept sharded

# ---- the knobs of the baselines ----
environment() { (set -a && . ./"$1" && env); }
"$syncopate" strategy show resnet50 lab-4x1g --baseline byteps --json >byteps.json
export_of byteps.json "${on[@]}" --to byteps --out byteps.env
check byteps_partition 0 'BYTEPS_PARTITION_BYTES=4096000' environment byteps.env
check byteps_has_no_credit 0 'BYTEPS_SCHEDULING_CREDIT=0' environment byteps.env
export_of bytescheduler-all-reduce "${on[@]}" --to bytescheduler --out bs.env
check bytescheduler_partition 0 'BYTESCHEDULER_PARTITION=1000000' environment bs.env
check bytescheduler_credit 0 'BYTESCHEDULER_CREDIT=4000000' environment bs.env
python single_is_one_pack "import json, sys; assert json.loads(sys.argv[1]) == {'bytes_per_pack': 0}" \
    "$(export_of single "${on[@]}" --to tensorflow 2>err)"

# ---- every form of every baseline ----
check all_forms 0 'CANNOT SAY' export_of horovod "${on[@]}" --to all --out all
bad=
# Whole updates (async-ps to mlfabric-s) are nothing that a framework here can be given: tests/cli/consistency.sh.
for baseline in $("$syncopate" baselines | awk 'NR > 1 { print $1 }' | grep -vxE 'async-ps|ssp|mlfabric-[as]'); do
    mkdir "each-$baseline"
    "$syncopate" strategy show googlenet lab-mixed --baseline "$baseline" --json >"each-$baseline/strategy.json" 2>err
    export_of "$baseline" --model googlenet --cluster lab-mixed --to all --out "each-$baseline" >out 2>err || bad+=" $baseline"
    refused=$(python3 -c 'import json, sys
print(*(e["to"] for e in json.load(open(sys.argv[1]))["exports"] if "refused" in e))' "each-$baseline/summary.json") || bad+=" $baseline/summary"
    for form in $forms; do
        ls "each-$baseline/$form"/* >/dev/null 2>&1
        [ $? != 0 ] && is=1 || is=0
        case " $refused " in *" $form "*) [ $is = 1 ] ;; *) [ $is = 0 ] ;; esac || bad+=" $baseline/$form"
    done
    for file in $(ls "each-$baseline"/*/*.env 2>/dev/null); do bash -n "$file" && environment "$file" >/dev/null || bad+=" $file"; done
done
[ -z "$bad" ] && echo "ok every_form_of_every_baseline_is_written_or_refused" || echo "not ok every_form_of_every_baseline_is_written_or_refused:$bad"
export_of mg-wfbp "${on[@]}" --to all --out twice >out 2>err
echo mine >twice/horovod/mine
cp -r twice earlier
check files_of_another_strategy_go 0 'removed from twice files of earlier exports, of the forms horovod' \
    export_of wfbp "${on[@]}" --to all --out twice
[ "$(echo earlier/horovod/* twice/horovod/* | sed 's,[a-z]*/horovod/,,g')" = "horovod-groups.json horovod.env mine horovod.env mine" ]
verdict and_no_others $? "$(ls earlier/horovod twice/horovod)"
check also_of_forms_that_are_refused 0 'of the forms pytorch-ddp, horovod, torchtitan' export_of zero-1 "${on[@]}" --to all --out twice
[ "$(echo $(cd twice && find . -type f | sort))" = "./deepspeed/deepspeed.json ./horovod/mine ./megatron/megatron.args ./pytorch-hook/pytorch-hook.json ./summary.json ./xla/xla.flags" ]
verdict and_their_folders_where_nothing_else_is $? "$(find twice)"
check all_takes_what_is_accepted 0 'byteps         byteps.env ' export_of zero-1 "${on[@]}" --to all --accept sharded --out some-more
check all_says_what_it_refuses 0 'horovod        -       ' export_of zero-1 "${on[@]}" --to all --out some
python sharded_baselines_are_refused_by_forms_without_shards "import glob, json
by = {f.split('/')[0][5:]: {e['to']: e.get('refused') for e in json.load(open(f))['exports']} for f in glob.glob('each-*/summary.json')}
plain = ['pytorch-ddp', 'horovod', 'tensorflow', 'byteps', 'bytescheduler', 'autodist', 'nccl']
sharded = [b for b in by if any('sharded' in g for g in json.load(open(f'each-{b}/strategy.json'))['groups'])]
assert len(sharded) == 10, sharded
for b in by:
    for form in plain:
        assert bool(by[b][form]) == (b in sharded), (b, form, by[b][form])
    assert not by[b]['xla'], b
"
python every_json_parses "import glob, json; n = [json.load(open(f)) for f in glob.glob('each-*/*/*.json') + glob.glob('each-*/*.json')]; assert len(n) > 60, len(n)"
python ddp_arguments_are_those_of_DistributedDataParallel "import glob, json
for f in glob.glob('each-*/pytorch-ddp/ddp.json'):
    arguments = json.load(open(f))
    assert set(arguments) <= {'bucket_cap_mb', 'bucket_cap_mb_list'} and len(arguments) <= 1, f
    for cap in arguments.get('bucket_cap_mb_list', [arguments.get('bucket_cap_mb', 25)]):
        assert int(cap * 1024 * 1024) == cap * 1024 * 1024 > 0, (f, cap)"
python groups_name_every_variable_once "import glob, json
names = sorted(v['name'] for v in json.load(open('$root/examples/models/googlenet.json'))['variables'])
files = glob.glob('each-*/horovod/horovod-groups.json')
for f in files:
    got = sorted(n for g in json.load(open(f)) for n in g)
    assert got == names or 'ps' in f or 'parallax' in f, f
assert files
files = glob.glob('each-*/pytorch-ddp/ddp-groups.json') + glob.glob('each-*/pytorch-hook/pytorch-hook.json')
for f in files:
    members = [m for g in json.load(open(f))['groups'] for m in g['variables']]
    assert sorted({m if isinstance(m, str) else m['name'] for m in members}) == names, f
assert files"

# ---- AutoDist: both of its forms are one message ----
if command -v protoc >/dev/null; then
    cat >strategy.proto <<'PROTO'
syntax = "proto3";
message PS { string reduction_destination = 1; bool local_replication = 2; bool sync = 3; int32 staleness = 4; }
message AllReduce {
    enum Spec { AUTO = 0; NCCL = 1; RING = 2; }
    enum Compressor { NoneCompressor = 0; HorovodCompressor = 1; HorovodCompressorEF = 2; }
    Spec spec = 1;
    Compressor compressor = 2;
    int32 group = 3;
}
message Node {
    string var_name = 1;
    oneof synchronizer { PS PSSynchronizer = 2; AllReduce AllReduceSynchronizer = 3; }
    string partitioner = 5;
    repeated Node part_config = 6;
}
message GraphConfig { repeated string replicas = 1; }
message Strategy { string id = 1; string path = 2; repeated Node node_config = 3; GraphConfig graph_config = 4; }
PROTO
    check protoc_reads_the_message 0 'reduction_destination: "fast1:CPU:0"' \
        bash -c 'protoc --decode=Strategy strategy.proto <each-ps-uneven/autodist/autodist.pb'
    protoc --decode=Strategy strategy.proto <each-ps-uneven/autodist/autodist.pb >text 2>err
    protoc --encode=Strategy strategy.proto <text >again.pb 2>>err
    [ -s text ] && ! grep -qE '^ *[0-9]+[:{ ]' text && echo "ok protoc_knows_every_field" ||
        echo "not ok protoc_knows_every_field: $(head -c 200 err)"
    if python=$(python_with google.protobuf) && protoc --python_out=. strategy.proto; then
        python json_and_wire_format_are_one_message "import glob, sys; sys.path.insert(0, '.')
from google.protobuf import json_format
import strategy_pb2
folders = glob.glob('each-*/autodist')
for f in folders:
    wire, text = strategy_pb2.Strategy(), strategy_pb2.Strategy()
    wire.ParseFromString(open(f + '/autodist.pb', 'rb').read())
    json_format.Parse(open(f + '/autodist.json').read(), text)
    assert wire == text and len(wire.node_config) > 50, f
assert len(folders) > 15"
    else
        echo "skip json_and_wire_format_are_one_message: needs python3-protobuf"
    fi
else
    echo "skip protoc_reads_the_message: needs protoc (Debian: protobuf-compiler)"
fi

# ---- NCCL ----
python=python3
"$syncopate" strategy show resnet50 lab-4x1g --baseline mg-wfbp --json 2>err |
    python3 -c 'import json, sys
s = json.load(sys.stdin)
for i, g in enumerate(s["groups"]): g["algorithm"] = ["ring", "double_tree"][i % 2]
json.dump(s, open("two.json", "w"))'
check two_algorithms_need_the_plugin 0 'NCCL_TUNER_PLUGIN' bash -c \
    "'$syncopate' strategy export two.json ${on[*]} --to nccl --out two && cat two/nccl.env"
check plugin_has_both_symbols 0 'ncclTunerPlugin_v5' nm -D --defined-only "$plugin"
check plugin_exports_nothing_else 0 '2 symbols' bash -c "echo \$(nm -D --defined-only '$plugin' | grep -v __odr_asan | grep -c ' [TDRB] ') symbols"
python table_has_a_row_for_every_size_and_algorithm "import csv
rows = [r for r in csv.reader(l for l in open('two/nccl-tuner.csv') if l[0] != '#')]
assert rows[0] == 'collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks'.split(','), rows[0]
assert {r[3] for r in rows[1:]} == {'ring', 'tree'} and all(r[0] == 'allreduce' and r[6:] == ['4', '4'] for r in rows[1:])
ends = [int(x) for r in rows[1:] for x in r[1:3]]
assert ends == sorted(ends)"

# ---- PyTorch ----
if python=$(python_with torch); then
    timeout 200 $python "$root/tests/cli/export_torch.py" "$root/interop/pytorch" \
        "$root/examples/models/googlenet.json" each-* 2>err || echo "not ok torch_ends_well: $(tail -n 1 err)"
else
    echo "skip hook_trains_as_DDP_does: needs PyTorch (Debian: python3-torch)"
fi

timeout 100 python3 "$root/tests/cli/fsdp2_code.py" "$syncopate" 2>err || echo "not ok pages_of_code_end_well: $(tail -n 1 err)"

# ---- DeepSpeed, Accelerate, torchtitan ----
consumers=$root/build/venv/bin/python3
[ -x "$consumers" ] || consumers=python3
PYTHONPATH=$root/build/readers:${PYTHONPATH:-} timeout 200 "$consumers" "$root/tests/cli/export_consumers.py" "$syncopate" "$PWD"/each-* 2>err ||
    echo "not ok consumers_end_well: $(tail -n 1 err)"

# ---- a session whose job does what the form cannot say ----
id=$("$syncopate" session open "$root/tests/cli/mlp-tiny.json" lab-4x1g --trials 40 --allow-sharded parameters --dataset d.db \
    --export-to horovod --accept sharded,groups,order,partition,algorithm,credit,reshard,prefetch,replicas 2>err)
"$syncopate" session open "$root/tests/cli/mlp-tiny.json" lab-4x1g --trials 4 --allow-sharded parameters --dataset d.db \
    --export-to horovod,tensorflow,pytorch-ddp,bytescheduler,nccl,autodist,byteps --accept groups,order,partition,algorithm,credit,parameter-server,shards,preemption,cross-iteration >out 2>err
grep -qF 'allow-sharded does nothing here: horovod,tensorflow,pytorch-ddp,bytescheduler,nccl,autodist,byteps cannot say' err
verdict a_warning_names_all_forms $? "$(cat err)"
accepting=$id
us=0
for n in $(seq 20); do
    trial=$("$syncopate" session suggest "$id" --dataset d.db 2>err) || break
    eval "$trial"
    us=9000
    grep -q '"sharded": *"parameters"' "$SYNCOPATE_TRIAL_STRATEGY" && us=500
    printf '{"time_us":%s}\n' $us $us $us $us $us $((us + 1)) >times
    "$syncopate" session complete "$id" "$SYNCOPATE_TRIAL_NUMBER" --dataset d.db --times times >out 2>err
    [ $us = 9000 ] || break
done
[ $us = 500 ]
verdict a_sharded_trial_is_fastest $? "$(cat err)"

# ---- the best strategy of a session of a service ----
if ! command -v mpirun >/dev/null; then
    echo "skip best_of_a_session: needs mpirun"
    exit 0
fi
"$syncopate" tune "$root/tests/cli/mlp-tiny.json" lab-4x1g --runner local --trials 3 --trial-time 10ms --dataset d.db --out best.json >tune.out 2>tune.err
start 127.0.0.1:0 --open
id=$("$syncopate" --server "$url" sessions list 2>err | awk 'NR == 2 { print $1 }')
"$syncopate" --server "$url" strategy export "$id" --out again.json
check best_of_a_session_is_its_file 0 '' cmp best.json again.json
"$syncopate" strategy export best.json --model "$root/tests/cli/mlp-tiny.json" --cluster lab-4x1g --to horovod --out here >out 2>err
"$syncopate" --server "$url" strategy export "$id" --to horovod --out there >out 2>err
check best_of_a_session_in_a_form 0 '' diff -r here there
check what_a_session_accepts_is_given_out 0 'horovod cannot say: sharded' \
    "$syncopate" --server "$url" strategy export "$accepting" --to horovod --out accepted
check in_its_forms_alone 3 'byteps would change the memory that ' "$syncopate" --server "$url" strategy export "$accepting" --to byteps
check but_can_be_accepted_here 0 'byteps cannot say: sharded' \
    "$syncopate" --server "$url" strategy export "$accepting" --to byteps --accept sharded
check session_knows_its_model 2 'drop --model' "$syncopate" --server "$url" strategy export "$id" --model mlp-small
check no_such_session 2 'no session nope' "$syncopate" --server "$url" strategy export nope --to nccl
stop
