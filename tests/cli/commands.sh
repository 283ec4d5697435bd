#!/bin/bash
# The commands as a person types them: help, output formats, and what bad input gets for an answer.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Alone: real trials are timed.
# Plan: 159
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/help.bash
out=${OUT:-build/release}
syncopate=$PWD/$out/bin/syncopate
models=$PWD/examples/models
clusters=$PWD/examples/clusters
tiny=$PWD/tests/cli/mlp-tiny.json
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"

# ---- help ----
all_commands "" >commands
while IFS= read -r command; do
    check "help_of_${command// /_}" 0 "usage: syncopate $command" "$syncopate" $command --help
done < <(tail -n +2 commands)
[ "$(wc -l <commands)" -gt 45 ] && echo "ok commands_are_read_from_help" || echo "not ok commands_are_read_from_help: $(wc -l <commands)"
check unknown_command 2 'no command "tnue"' "$syncopate" tnue
check unknown_option 2 'unknown option --trails' "$syncopate" tune resnet50 lab-4x1g --trails 3
check option_without_value 2 '--trials needs a value' "$syncopate" tune resnet50 lab-4x1g --trials
check option_too_large 2 '18446744073709551615 is too large; the most is 9007199254740991' \
    "$syncopate" tune resnet50 lab-4x1g --seed 18446744073709551615
check option_of_wrong_kind 2 'not a whole number' "$syncopate" tune resnet50 lab-4x1g --trials many
check missing_argument 2 'usage: syncopate simulate' "$syncopate" simulate resnet50
check extra_argument 2 'one argument too many' "$syncopate" simulate a b c
check setting_from_environment 2 'SYNCOPATE_TRIALS' env SYNCOPATE_TRIALS=x "$syncopate" tune resnet50 lab-4x1g
echo '{"trials": "x"}' >syncopate.json
check setting_from_file 2 'syncopate.json: /trials' "$syncopate" tune resnet50 lab-4x1g
echo '{"trails": 3}' >syncopate.json
check unknown_setting 2 'syncopate.json: /trails' "$syncopate" tune resnet50 lab-4x1g
echo '[3]' >syncopate.json
check settings_are_an_object 2 'syncopate.json: ' "$syncopate" baselines
echo '{"log": "loud"}' >syncopate.json
check log_level_from_file 2 'none of quiet' "$syncopate" baselines
options_of() { "$syncopate" $1 --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'; }
while IFS= read -r command; do options_of "$command"; done <commands | grep -vxE 'help|version' | sort -u >options
python3 -c 'import json; json.dump({o.strip(): "" for o in open("options") if o.strip() != "log"}, open("syncopate.json", "w"))'
check every_option_of_any_command_may_be_a_setting 0 'wfbp' "$syncopate" baselines
[ "$(wc -l <options)" -gt 40 ] && echo "ok options_are_read_from_help" || echo "not ok options_are_read_from_help: $(wc -l <options)"
rm syncopate.json

# ---- formats ----
same_keys() {
    local name=$1 file=$2 want=$3
    if python3 - "$file" "$want" 2>err <<'PY'; then
import json, sys
for line in open(sys.argv[1]):
    keys = list(json.loads(line))
    assert keys == sys.argv[2].split(), keys
PY
        echo "ok $name"
    else
        echo "not ok $name: $(tail -n 1 err)"
    fi
}
"$syncopate" simulate resnet50 v100-16x10g --all-baselines --json >predictions 2>err
same_keys simulate_json_is_the_prediction_format predictions \
    "schema model cluster strategy iteration_us compute_us exposed_us lower_bound_us gap messages samples_per_s"
check simulate_predicts_sizes_of_buckets 0 'bucket_cap_mb 5' "$syncopate" simulate resnet50 v100-16x10g --bucket-mib 1,5,0.5
check and_nothing_else 0 "" test "$("$syncopate" simulate resnet50 v100-16x10g --bucket-mib 1,5,0.5 | grep -c "bucket_cap_mb .*%")" = 3
check one_size_of_buckets_has_a_timeline 0 'timeline written' "$syncopate" simulate resnet50 v100-16x10g --bucket-mib 5 --timeline bucket.json
check several_have_none 2 'is about one strategy' "$syncopate" simulate resnet50 v100-16x10g --bucket-mib 5 --baseline wfbp --timeline bucket.json
check a_bucket_of_no_size_is_refused 2 '"0" is no number from 0.001' "$syncopate" simulate resnet50 v100-16x10g --bucket-mib 1,0
check a_bucket_that_is_no_number_is_refused 2 '"5x" is no number' "$syncopate" simulate resnet50 v100-16x10g --bucket-mib 5x
check simulate_closed_form 0 ITERATION "$syncopate" simulate resnet50 v100-16x10g --model autosync
check simulate_writes_a_timeline 0 timeline "$syncopate" simulate resnet50 v100-16x10g --baseline wfbp --timeline t.json
if python3 -c 'import json; e = json.load(open("t.json"))["traceEvents"]; assert any(x["ph"] == "X" and x["dur"] > 0 for x in e)' 2>err; then
    echo "ok timeline_has_events_with_durations"
else
    echo "not ok timeline_has_events_with_durations: $(tail -n 1 err)"
fi
"$syncopate" strategy show resnet50 lab-4x1g --baseline pytorch-ddp --json >ddp.json 2>err
check shown_strategy_reads_back 0 "" "$syncopate" strategy check resnet50 lab-4x1g ddp.json
check strategy_equals_itself 0 "" "$syncopate" strategy diff resnet50 lab-4x1g ddp.json pytorch-ddp
check strategies_that_differ 1 "GROUP" bash -c "'$syncopate' strategy diff resnet50 lab-4x1g wfbp single | sed 's/groups/GROUP/'; exit \${PIPESTATUS[0]}"

if command -v mpirun >/dev/null; then
    "$syncopate" tune "$tiny" $clusters/lab-4x1g.json --runner local --trials 9 --trial-time 10ms \
        --dataset t.db --out best.json --json >tuning 2>tuning.err
    same_keys tune_json_is_the_tuning_format tuning \
        "schema session trials best baselines speedup lower_bound_us gap"
    [ "$(wc -l <tuning)" = 1 ] && [ "$(wc -l <tuning.err)" = 1 ] &&
        grep -q '^session .*: syncopate tune --resume .* --dataset t.db --out best.json$' tuning.err
    verdict tune_prints_one_line_and_off_a_terminal_only_how_to_resume_it $? "$(head -c 300 tuning.err)"
    check tuned_strategy_reads_back 0 "" "$syncopate" strategy check "$tiny" $clusters/lab-4x1g.json best.json
    check trials_are_in_the_dataset 0 complete "$syncopate" dataset query --dataset t.db --state complete
    "$syncopate" dataset export --dataset t.db --format csv --out t.csv 2>err
    [ "$(tr -d '\r' <t.csv | wc -l)" = 10 ] && echo "ok export_has_a_line_a_trial" ||
        echo "not ok export_has_a_line_a_trial: $(wc -l <t.csv)"
    check columns_stay_in_their_order 0 \
        'seed,state,predicted_us,mean_us,median_us,low_us,high_us,queued,started,ended,reason,environment,iterations_us,team,shared,attempt' \
        head -n 1 t.csv
    "$syncopate" dataset export --dataset t.db --references --iterations --out t.jsonl 2>err
    check export_is_imported 0 '9 trials added' "$syncopate" dataset import t.jsonl --dataset again.db
    "$syncopate" dataset export --dataset again.db --references --iterations --out again.jsonl 2>err
    check what_was_imported_is_exported_the_same 0 '' cmp t.jsonl again.jsonl
    check a_filter_narrows 0 '"schema"' "$syncopate" dataset query --dataset t.db --json --filter 'state = complete AND measured_us > 0'
    check a_bad_filter_says_where 2 "at 1: no such column 'speed'" "$syncopate" dataset query --dataset t.db --filter 'speed < 3'
    check backup_is_whole 0 "as they should be" bash -c \
        "'$syncopate' dataset backup copy.db --dataset t.db && '$syncopate' dataset check --dataset copy.db"
    check finished_session_answers_again 0 '"trials":9' "$syncopate" tune --resume \
        "$("$syncopate" dataset sessions --dataset t.db | awk 'NR == 2 { print $1 }')" --dataset t.db --json
    "$syncopate" dataset show model mlp-tiny --dataset t.db --out shown-model.json
    "$syncopate" dataset show cluster lab-4x1g --dataset t.db >shown-cluster.json
    "$syncopate" dataset show strategy pytorch-ddp --dataset t.db >shown-strategy.json
    check shown_descriptions_read_back 0 "$("$syncopate" dataset show strategy --dataset t.db | awk '$1 == "pytorch-ddp" { print $2 }')" \
        "$syncopate" strategy check shown-model.json shown-cluster.json shown-strategy.json
    check recorded_models_are_listed 0 "mlp-tiny" "$syncopate" dataset show model --dataset t.db
    check canonical_text_has_the_id 0 "$("$syncopate" dataset show model --dataset t.db | awk 'NR == 2 { print $2 }')" bash -c \
        "'$syncopate' dataset show model mlp-tiny --dataset t.db --canonical | tr -d '\n' | sha256sum"
    check nothing_of_that_name 2 'nobody' "$syncopate" dataset show strategy nobody --dataset t.db
    check nothing_of_that_kind 2 'none of model, cluster, strategy' "$syncopate" dataset show session x --dataset t.db
    check show_never_replaces_the_dataset 2 'is the dataset itself' "$syncopate" dataset show model mlp-tiny --dataset t.db --out t.db
    check unknown_session 2 'nothing-like-it' "$syncopate" tune --resume nothing-like-it --dataset t.db
else
    echo "skip tune_json: needs mpirun"
fi

"$syncopate" strategy show resnet50 lab-4x1g --baseline single --json >single.json 2>err
sed 's/"algorithm": *"auto"/&, "partition_bytes": 1048576/' single.json >parts.json
check a_difference_in_partition_shows 1 "partitions of 1048576" "$syncopate" strategy diff resnet50 lab-4x1g single parts.json
if [ -e t.db ]; then
    check export_never_replaces_the_dataset 2 'is the dataset itself' "$syncopate" dataset export --dataset t.db --out t.db
    check the_dataset_survives_it 0 'as they should be' "$syncopate" dataset check --dataset t.db
    check resume_takes_no_model 2 'give --resume alone' "$syncopate" tune resnet50 lab-4x1g --resume x --dataset t.db
    check resume_makes_no_dataset 2 'no such dataset' "$syncopate" tune --resume x --dataset new.db
    check bad_output_is_said_at_once 1 'cannot write into' "$syncopate" tune mlp-small lab-4x1g --out /nonexistent/x.json
    python3 -c "import json; m = json.load(open('$models/mlp-small.json')); [o.update(time_us=0) for o in m['operators']]; json.dump(m, open('idle.json', 'w'))"
    echo '{"schema":"syncopate.cluster/1","name":"one","nodes":[{"name":"a","nic_gbit_per_s":1}]}' >one.json
    check nothing_to_compute_on_one_node 0 'an iteration' "$syncopate" trial idle.json one.json --baseline single \
        --runner local --dataset t.db
    check a_typed_worker_beats_the_variable 0 'an iteration' env SYNCOPATE_WORKER=/nonexistent "$syncopate" trial idle.json one.json \
        --baseline single --runner local --worker mpi
    printf '# hosts\nlocalhost slots=1\nlocalhost\n' >hosts
    echo '{"schema":"syncopate.cluster/1","name":"two","nodes":[{"name":"a","count":2,"nic_gbit_per_s":1}]}' >two.json
    check mpirun_takes_hosts_from_a_file 0 'an iteration' "$syncopate" trial "$tiny" two.json --baseline ps \
        --runner mpirun --worker mpi --hosts hosts --iterations 3
    check a_trial_is_traced 0 'timelines written to trace.json' "$syncopate" trial "$tiny" two.json \
        --baseline wfbp --runner local --iterations 3 --trace trace.json
    if python3 -c 'import json
events = json.load(open("trace.json"))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert sorted(n.split()[1] for n in names.values()) == ["measured", "predicted"], names
for pid in names:
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == pid]
    assert {e["cat"] for e in spans} == {"compute", "all-reduce"} and min(e["ts"] for e in spans) == 0, pid' 2>err; then
        echo "ok a_trace_shows_what_was_predicted_and_what_was_measured"
    else
        echo "not ok a_trace_shows_what_was_predicted_and_what_was_measured: $(tail -n 1 err)"
    fi
    check host_file_of_another_size 2 'give one a line' "$syncopate" trial $models/mlp-small.json $clusters/lab-4x1g.json \
        --baseline ps --runner mpirun --hosts hosts
fi

# ---- bad input: one clear line, exit 2 or 1, nothing written ----
lab=$clusters/lab-4x1g.json model=$models/mlp-small.json
check missing_file 2 'nowhere.json' "$syncopate" simulate nowhere.json $lab
check missing_name 2 'no description of that name' "$syncopate" simulate resnet5 $lab
bad() { # NAME PART PYTHON: change the model's description `m` and read it
    python3 -c "import json; m = json.load(open('$model')); $3; json.dump(m, open('bad.json', 'w'))"
    check "$1" 2 "$2" "$syncopate" simulate bad.json $lab
}
bad_cluster() {
    python3 -c "import json; c = json.load(open('$lab')); $3; json.dump(c, open('badc.json', 'w'))"
    check "$1" 2 "$2" "$syncopate" simulate $model badc.json
}
bad_strategy() {
    "$syncopate" strategy show $model $lab --baseline ps --json >s.json
    python3 -c "import json; s = json.load(open('s.json')); v = s['variables'][0]; $3; json.dump(s, open('bads.json', 'w'))"
    check "$1" 2 "$2" "$syncopate" simulate $model $lab --strategy bads.json
}
echo 'not json' >text.json
check not_json 2 'text.json' "$syncopate" simulate text.json $lab
bad wrong_schema 'schema' "m['schema'] = 'something/1'"
bad newer_schema 'syncopate.model/2' "m['schema'] = 'syncopate.model/2'"
bad unknown_field '/variables/0' "m['variables'][0]['shap'] = 1"
bad unknown_dtype 'f33' "m['variables'][0]['dtype'] = 'f33'"
bad negative_time '/operators/0' "m['operators'][0]['time_us'] = -1"
bad huge_number '/operators/0' "m['operators'][0]['time_us'] = 1e300"
bad not_a_number 'bad.json' "m['operators'][0]['time_us'] = float('nan')"
bad duplicate_variable 'twice' "m['variables'].append(m['variables'][0])"
bad cycle 'cycle' "b = [o for o in m['operators'] if o['phase'] == 'backward']; b[0]['after'] = [b[-1]['name']]"
bad produced_by_nothing 'no backward operator' "[o.update(produces=[]) for o in m['operators'] if o['phase'] == 'backward']"
bad_cluster zero_nodes 'at least one node' "c['nodes'] = []"
bad_cluster zero_count '/nodes/0' "c['nodes'][0]['count'] = 0"
bad_cluster zero_bandwidth '/nodes/0' "c['nodes'][0]['nic_gbit_per_s'] = 0"
bad_strategy other_model 'another model' "v['name'] = 'layer9.weight'"
bad_strategy too_many_shards 'shards' "v['partition'] = {'axis': 0, 'shards': 60000}"
bad_strategy unknown_server 'no node' "v['sync']['servers'] = ['n9']"
truncate -s 200M large.json
check description_of_200_megabytes 2 'large.json' "$syncopate" simulate large.json $lab
check a_directory 2 '' "$syncopate" simulate . $lab

# ---- the environment: exit 1 ----
echo 'this is no dataset at all, only text' >text.db
check dataset_that_is_none 2 'text.db' "$syncopate" dataset query --dataset text.db
check dataset_that_is_not_there 2 'nothing.db' "$syncopate" dataset query --dataset nothing.db
[ -e nothing.db ] && echo "not ok query_makes_no_file: nothing.db was made" || echo "ok query_makes_no_file"
check no_mpirun 2 'mpirun' env PATH=/nonexistent "$syncopate" trial $model $lab --baseline wfbp --runner local
check no_worker 2 'worker' env SYNCOPATE_WORKER=/nonexistent "$syncopate" trial $model $lab --baseline wfbp --runner local
if [ "$(id -u)" = 0 ]; then
    mkdir readonly full
    if mount -t tmpfs -o size=256k tmpfs full 2>/dev/null; then
        dd if=/dev/zero of=full/fill bs=1k count=300 2>/dev/null
        check full_disk 1 '' "$syncopate" tune $model $lab --trials 5 --dataset full/d.db
        [ -e full/d.db ] && echo "not ok full_disk_leaves_nothing: d.db is there" || echo "ok full_disk_leaves_nothing"
        cat >worker <<'END'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || printf '%s\n' '{"event":"measurement","operation":"push","devices":2,"bytes":1024,"time_us":100,"low_us":99,"high_us":101}' \
    '{"event":"runtime","message_us":5}' '{"event":"done"}'
END
        chmod +x worker
        check full_disk_for_a_file 1 'best' "$syncopate" bench $lab --runner local --worker ./worker --out full/best.json
        umount full
    else
        echo "skip full_disk: cannot mount a tmpfs here"
    fi
    chmod 755 "$dir"
    check no_root_for_the_lab 1 'root' setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$syncopate" trial $model $lab --baseline wfbp
    "$syncopate" tune "$tiny" $lab --runner local --trials 1 --rounds 0 --trial-time 10ms --dataset ro.db >out 2>err
    chmod 444 ro.db
    check read_only_dataset 1 'ro.db' setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$syncopate" tune $model $lab --runner local --trials 1 --dataset "$dir/ro.db"
else
    echo "skip full_disk: needs root"
fi
