#!/bin/bash
# syncopate import from outside: what it says, that nothing is half-written, every real file that it claims to read, and
# the PyTorch module where PyTorch is installed. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Computes: it waits for nothing and times nothing.
# Once: its importers have tests of their own under sanitizers, and fuzzers.
# Plan: 156
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
data=$PWD/../shared/data
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"

cat >m.graph.txt <<'END'
node1 -- Input0 -- forward_compute_time=20.0, backward_compute_time=0.0, activation_size=4.0, parameter_size=0.000
node2 -- Linear(in_features=6, out_features=3, bias=True) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=4.0, parameter_size=84.000
node3 -- Linear(in_features=3, out_features=2, bias=False) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=4.0, parameter_size=24.000
	node1 -- node2
	node2 -- node3
END
cat >all_reduce.log <<'END'
#  Rank  0 Group  0 Pid 43 on a device  0 [0x0f] NVIDIA A100
#  Rank  1 Group  0 Pid 44 on b device  0 [0x0f] NVIDIA A100
#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong
  1024    256 float sum -1 40.0 0.03 0.03 0 40.0 0.03 0.03 0
  1048576 262144 float sum -1 1000.0 1.05 1.05 0 1000.0 1.05 1.05 0
END

# ---- models ----
check a_profile_is_imported 0 '"node3.weight"' "$syncopate" import model m.graph.txt --batch 4
check what_is_left_out_is_said 0 '20 ms of waiting' "$syncopate" import model m.graph.txt --batch 4 --out m.json
check the_model_can_be_used 0 'wfbp' "$syncopate" simulate m.json lab-4x1g --baseline wfbp
check standard_input_is_a_file 0 '"node3.weight"' bash -c "'$syncopate' import model - --from pipedream --batch 4 <m.graph.txt"
check standard_input_is_told_its_name 0 'the description is called "imported"; --name gives another' bash -c "'$syncopate' import model - --batch 4 <m.graph.txt"
{ printf '\xef\xbb\xbf'; cat m.graph.txt; } >marked.graph.txt
check a_byte_order_mark_is_passed_over 0 '"node3.weight"' "$syncopate" import model marked.graph.txt --batch 4
check an_option_of_other_kinds_is_refused 2 'm.graph.txt: this kind of file takes no --tflops; it is for safetensors, onnx and graph-item' "$syncopate" import model m.graph.txt --batch 4 --tflops 1
check the_one_kind_that_takes_a_ratio_is_named 2 'takes no --forward-ratio; it is for espresso' "$syncopate" import model m.graph.txt --batch 4 --forward-ratio 0.4
check a_model_file_is_no_import 2 'm.json: a model file already' "$syncopate" import model m.json
check an_unknown_kind_is_refused 2 'known are pipedream' "$syncopate" import model m.graph.txt --from onyx
check a_forced_kind_is_read_as_such 2 'm.graph.txt:1:' "$syncopate" import model m.graph.txt --from espresso
check a_missing_file_is_said 2 'nowhere.csv' "$syncopate" import model nowhere.csv
check a_folder_is_no_file 1 '' "$syncopate" import model .
echo 'node2 -- x' >>m.graph.txt
cp m.json before.json
check a_bad_line_is_named 2 'm.graph.txt:6: a layer is' "$syncopate" import model m.graph.txt --out m.json
check a_refusal_writes_nothing 0 '' cmp m.json before.json
check a_missing_folder_is_said_first 1 'cannot write into' "$syncopate" import model m.graph.txt --out /nonexistent/m.json
check a_negative_number_is_refused 2 '--batch -3' "$syncopate" import model m.graph.txt --batch=-3
head -c 2000 /dev/urandom >noise
check noise_is_refused 2 'noise: byte ' "$syncopate" import model noise
printf 'PAR1\25\0\25\20' >table.parquet
check a_parquet_table_is_called_one 2 'table.parquet: byte 0: a Parquet table' "$syncopate" import model table.parquet
check a_parquet_table_is_no_cluster 2 'table.parquet: byte 0: a Parquet table' "$syncopate" import cluster table.parquet
head -n 3 m.graph.txt >cut.graph.txt
check a_profile_without_its_edges_is_refused 2 'cut.graph.txt:2: of 0 edges none leads to "node2"' "$syncopate" import model cut.graph.txt
python3 - <<'PY'
import json, struct
header = json.dumps({"w": {"dtype": "F32", "shape": [20, 30], "data_offsets": [0, 2400]}}).encode()
for name, n in (("whole", 2400), ("short", 2399)):
    with open(f"{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + bytes(n))
PY
check whole_weights_are_read 0 '"w"' "$syncopate" import model whole.safetensors --batch 4 --positions 3 --tflops 1
check weights_that_end_early_are_refused 2 'short.safetensors: /w: its data end at byte 2400, but the file has 2399' "$syncopate" import model short.safetensors --batch 4 --positions 3 --tflops 1

# ---- clusters ----
check a_log_is_imported 0 'is an estimate from the largest bus bandwidth' "$syncopate" import cluster all_reduce.log --out c.json
check the_cluster_can_be_used 0 'wfbp' "$syncopate" simulate m.json c.json --baseline wfbp
check a_stated_rate_is_no_estimate 0 '"nic_gbit_per_s": 25' "$syncopate" import cluster all_reduce.log --nic-gbit-per-s 25
if grep -q estimate err; then echo "not ok a_stated_rate_is_not_called_one: $(cat err)"; else echo "ok a_stated_rate_is_not_called_one"; fi
printf 'a\nb\nc\n' >hosts
check a_missing_rate_is_asked_for 2 '--nic-gbit-per-s' "$syncopate" import cluster hosts
check devices_of_no_measurement_are_refused 2 'hosts: this kind of file takes no --devices; it is for nccl-tests-json, nccl-tests and osu' "$syncopate" import cluster hosts --nic-gbit-per-s 1 --devices 3
check files_are_put_together 0 '"bytes": 1048576' "$syncopate" import cluster hosts all_reduce.log --nic-gbit-per-s 1
check a_log_is_added_to_a_cluster_file 0 '"lab-4x1g"' "$syncopate" import cluster "$root/examples/clusters/lab-4x1g.json" all_reduce.log
{ cat all_reduce.log; sed 's/ 1000.0 1.05 1.05/ 2000.0 0.52 0.52/g' all_reduce.log; } >twice.log
check runs_that_differ_are_not_averaged 2 'twice.log:10: 1048576 bytes took 2000 us, and 1000 us in the run before (line 5)' "$syncopate" import cluster twice.log
grep -v '^#' all_reduce.log >rows
check rows_without_hosts_say_what_is_missing 2 'rows: no node is named there; give a hostfile as well, a line "HOST slots=DEVICES"' "$syncopate" import cluster rows --devices 2
check rows_beside_hosts_are_read 0 '"bytes": 1048576' "$syncopate" import cluster hosts rows --devices 2
sed 's/ b device  0/ a device  1/' all_reduce.log >lone.log
printf 'nodes:\n  - address: 10.0.0.1\n    gpus: [0, 1]\n' >lone.yml
lone() { # FILE OPTION...: times of two runs, one with a NIC of 1 and one of 1000 Gbit/s
    for rate in 1 1000; do
        "$syncopate" import cluster "$@" --nic-gbit-per-s $rate --out lone-$rate.json 2>err &&
            "$syncopate" compare m.json lone-$rate.json 2>err >lone-$rate.txt
    done
    [ -s lone-1.txt ] && cmp lone-1.txt lone-1000.txt
}
check one_node_needs_no_nic 0 'one node: nothing crosses its NIC' "$syncopate" import cluster lone.log
check nor_does_it_matter 0 '' lone lone.log
check one_node_of_a_resource_spec_needs_none 0 'one node: nothing crosses its NIC' "$syncopate" import cluster lone.yml --device-link-gbyte-per-s 20
check nor_does_it_matter_there 0 '' lone lone.yml --device-link-gbyte-per-s 20
printf 'NodeName=a State=IDLE\n   CfgTRES=cpu=64,gres/gpu=4\n' >nodes.txt
check gpus_of_tres_are_devices 0 '"devices": 4' "$syncopate" import cluster nodes.txt --device-link-gbyte-per-s 20
sed 's/262144/262143/' all_reduce.log >bad.log
check a_bad_row_is_named 2 'bad.log:5: 1048576 bytes are not' "$syncopate" import cluster hosts bad.log --nic-gbit-per-s 1

# ---- strategies ----
on=(--model bert-base --cluster v100-16x10g)
for form in zero-1:deepspeed zero-2:deepspeed zero-3:deepspeed megatron-distributed-optimizer:megatron torchtitan:torchtitan torchtitan:accelerate wfbp:xla hsdp:fsdp2 fsdp-optimal:fsdp2; do
    name=${form%:*}_comes_back_from_${form#*:}
    "$syncopate" strategy export "${form%:*}" "${on[@]}" --to "${form#*:}" --out settings --strict 2>err &&
        "$syncopate" import strategy settings "${on[@]}" --out back.json 2>>err &&
        "$syncopate" strategy show bert-base v100-16x10g --strategy back.json --json 2>>err | grep -v '"name"' >back &&
        "$syncopate" strategy show bert-base v100-16x10g --baseline "${form%:*}" --json 2>>err | grep -v '"name"' >there
    cmp -s back there && echo "ok ${name//-/_}" || echo "not ok ${name//-/_}: $(tail -n 1 err)"
done
for kind in $("$syncopate" import strategy --help | sed -n '/Kinds:/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p'); do
    "$syncopate" import --help | grep '^  strategy ' | grep -qi "$kind"
    verdict "settings_of_${kind}_are_named_in_the_help" $? "no $kind behind strategy in import --help"
done
check a_model_is_needed_for_a_strategy 2 'give --model and --cluster' "$syncopate" import strategy settings
check what_settings_have_beside_is_said 0 '"offload_param" is passed over' bash -c "echo '{\"zero_optimization\":{\"stage\":3,\"offload_param\":{}}}' | '$syncopate' import strategy - ${on[*]} --out back.json"
check xlas_flags_do_not_say_what_is_sharded 0 'without a threshold of all-reduces parameters are sharded' bash -c "echo 'XLA_FLAGS=--xla_gpu_all_gather_combine_threshold_bytes=9000000' | '$syncopate' import strategy - ${on[*]} --out back.json"
check settings_that_are_none_are_refused 2 'm.graph.txt: byte 0: of no known kind' "$syncopate" import strategy m.graph.txt "${on[@]}"
for kind in $(for what in model cluster strategy; do "$syncopate" import $what --help | sed -n '/Kinds:/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p'; done); do
    [ -s "$root/interop/import/README.md" ] && grep -q -- "\`$kind\`" "$root/interop/import/README.md" &&
        echo "ok kind_${kind//-/_}_is_explained" || echo "not ok kind_${kind//-/_}_is_explained: no $kind in interop/import/README.md"
done

# ---- real files ----
real() { # FILE WHAT BASELINE: import it, and use what came out
    local file=$1 name
    name=$(basename "$(dirname "$file")")_$(basename "$file")
    name=real_$(tr -c 'a-zA-Z0-9\n' _ <<<"${name%%.*}")_$2
    "$syncopate" import "$2" "$file" --out real.json 2>err || { echo "not ok $name: $(tail -n 1 err)"; return; }
    case $2 in
    model) check "$name" 0 '' "$syncopate" simulate real.json lab-4x1g --baseline wfbp ;;
    cluster) check "$name" 0 '' "$syncopate" simulate mlp-small real.json --baseline wfbp ;;
    esac
}
# sums FILE FORWARD_US BACKWARD_US VARIABLES BYTES, as the profiles have them
sums() {
    "$syncopate" import model "$data/models/$1" --out sums.json 2>err
    if python3 - "$@" 2>err <<'PY'; then
import json, math, sys
m = json.load(open("sums.json"))
want = [float(x) for x in sys.argv[2:]]
if "layers" in m:
    got = [sum(l[k] for l in m["layers"]) for k in ("forward_us", "backward_us")]
else:
    got = [sum(o["time_us"] for o in m["operators"] if o["phase"] == k) for k in ("forward", "backward")]
got += [len(m["variables"]), sum(4 * math.prod(v["shape"]) for v in m["variables"])]
assert all(abs(a - b) <= 1e-6 * b for a, b in zip(got, want)), (got, want)
PY
        echo "ok sums_of_$(basename "$1" | tr -c 'a-zA-Z0-9\n' _)"
    else
        echo "not ok sums_of_$(basename "$1" | tr -c 'a-zA-Z0-9\n' _): $(tail -n 1 err)"
    fi
}
if [ -d "$data" ]; then
    for file in "$data"/models/*/*; do real "$file" model; done
    for file in "$data"/nccl-tests/*.log; do real "$file" cluster; done
    for file in "$data"/models/pipedream/*.graph.txt; do
        # The same figures by other means: sums over the lines, without those of inputs.
        sums "pipedream/$(basename "$file")" $(grep -v -- '-- Input' "$file" | tr ',' '\n' | awk '
            /forward_compute_time=/ { sub(/.*forward_compute_time=/, ""); f += $1 }
            /backward_compute_time=/ { sub(/.*=/, ""); b += $1 }
            /parameter_size=/ { sub(/.*=/, ""); p += $1 }
            END { printf "%.3f %.3f", f * 1000, b * 1000 }') \
            $("$syncopate" import model "$file" 2>err | grep -c '"shape"') \
            $(grep -o 'parameter_size=[0-9]*' "$file" | awk -F= '{ p += $2 } END { printf "%.0f", p }')
    done
    for file in "$data"/models/espresso/*.csv; do
        sums "espresso/$(basename "$file")" $(awk -F, 'NR > 1 { t += $5; n++; b += $4 } END { printf "%.3f %.3f %d %.0f", t / 2, t, n, b }' "$file")
    done
else
    echo "skip real_files: ../shared/data is not there"
fi

# ---- PyTorch ----
if python=$(python_with torch); then
    mkdir torch
    PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 PYTHONPATH=$root/interop/pytorch "$python" "$root/tests/cli/import_torch.py" torch 2>err ||
        echo "not ok torch_module: $(tail -n 1 err)"
    for file in torch/*.json; do
        check "torch_file_$(basename "$file" .json)_is_a_model" 0 wfbp "$syncopate" simulate "$file" lab-4x1g --baseline wfbp
    done

    mkdir traces
    PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/cli/import_trace.py" traces >out 2>err ||
        echo "not ok torch_traces_are_made: $(tail -n 1 err)"
    for form in now early; do
        check "torch_trace_of_${form}_is_imported" 0 'medians of 5 iterations;' "$syncopate" import model traces/$form.trace --batch 4 --out traces/$form.json
    done
    check torch_trace_can_be_used 0 wfbp "$syncopate" simulate traces/now.json lab-4x1g --baseline wfbp
    "$python" "$root/tests/cli/import_trace.py" traces check
    check torch_trace_without_shapes_is_refused 2 'record_shapes=True' "$syncopate" import model traces/plain.trace
    gzip -k traces/now.trace
    check torch_trace_is_unpacked_first 2 'gunzip' "$syncopate" import model traces/now.trace.gz
    check torch_trace_from_a_pipe 0 '"param0"' bash -c "gunzip -c traces/now.trace.gz | '$syncopate' import model - --batch 4"
else
    echo "skip torch_module: needs python3 with torch"
    echo "skip torch_trace: needs python3 with torch"
fi

# ---- ONNX ----
if python=$(python_with torch onnx); then
    mkdir onnx
    if ! PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore "$python" "$root/tests/cli/import_onnx.py" onnx >out 2>err; then
        echo "not ok onnx_files_are_made: $(tail -n 1 err)"
    fi
    for file in onnx/*.onnx; do
        name=$(basename "$file" .onnx)
        check "onnx_${name}_is_imported" 0 'an ONNX file has no times' "$syncopate" import model "$file" --tflops 0.001 --out "onnx/$name.json"
        check "onnx_${name}_can_be_used" 0 wfbp "$syncopate" simulate "onnx/$name.json" lab-4x1g --baseline wfbp
    done
    PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/cli/import_onnx.py" onnx check 2>err
    check onnx_needs_a_device 2 '--tflops' "$syncopate" import model onnx/tied.onnx
    check onnx_of_a_fixed_batch_takes_no_other_label 2 'which --batch cannot change' "$syncopate" import model onnx/convolutions.onnx --tflops 1 --batch 64
    head -c 1000 onnx/tied.onnx >cut.onnx
    check onnx_cut_short_is_refused 2 'cut.onnx: byte ' "$syncopate" import model cut.onnx --tflops 1
else
    echo "skip onnx: needs python3 with torch and onnx (Debian: python3-torch, python3-onnx)"
fi

# ---- AutoDist ----
cat >item.proto <<'END'
syntax = "proto3";
message Any { string type_url = 1; bytes value = 2; }
message Item { Any graph_def = 1; map<string, string> grad_target_pairs = 2; }
message Graph { repeated Node node = 1; }
message Node { string name = 1; string op = 2; map<string, Value> attr = 5; }
message Value { oneof value { bytes s = 2; int32 type = 6; Shape shape = 7; } }
message Shape { message Dim { int64 size = 1; } repeated Dim dim = 2; }
END
cat >graph.text <<'END'
node { name: "x" op: "Placeholder" }
node { name: "table" op: "VarHandleOp" attr { key: "dtype" value { type: 1 } }
       attr { key: "shape" value { shape { dim { size: 50 } dim { size: 8 } } } } }
node { name: "out/w" op: "VariableV2" attr { key: "shape" value { shape { dim { size: 8 } dim { size: 4 } } } }
       attr { key: "dtype" value { type: 19 } } attr { key: "shared_name" value { s: "w" } } }
node { name: "step" op: "VarHandleOp" attr { key: "dtype" value { type: 9 } } attr { key: "shape" value { shape { } } } }
END
if command -v protoc >out; then
    protoc --encode=Graph item.proto <graph.text >graph.pb
    {
        printf 'graph_def { type_url: "type.googleapis.com/tensorflow.GraphDef" value: "'
        od -An -v -to1 graph.pb | tr ' ' '\\' | tr -d '\n'
        printf '" } grad_target_pairs { key: "i:0;v:0;s:0" value: "table:0" } grad_target_pairs { key: "g:0" value: "out/w:0" }'
    } >item.text
    protoc --encode=Item item.proto <item.text >item.pb
    check graph_item_is_imported 0 '{"name": "out/w", "shape": [8, 4], "dtype": "f16"}' \
        "$syncopate" import model item.pb --batch 2 --positions 5 --tflops 1
    "$syncopate" import model item.pb --batch 2 --positions 5 --tflops 1 --out item.json 2>err
    check graph_item_leaves_out_what_is_not_trained 1 '' grep -F step item.json
    check graph_item_needs_a_device 2 'give --batch, --positions and --tflops' "$syncopate" import model item.pb
else
    echo "skip graph_item: needs protoc (Debian: protobuf-compiler)"
fi
