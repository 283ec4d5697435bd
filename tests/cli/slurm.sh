#!/bin/bash
# The runner slurm on a real Slurm of this machine: two slurmd, one slurmctld, munge, in a folder of their own. Trials
# within an allocation and without, what goes wrong and how it is told, GPUs and variables, an end by hand; and a session
# that is killed and resumed: no step stays behind, no trial is lost or repeated.
# Alone: real trials run, and the daemons want the processors.
# Plan: 30
set -u
cd "$(dirname "$0")/../.."
. tests/cli/check.bash
. tests/cli/slurm.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate unit=$PWD/${OUT:-build/release}/tests/unit/trial-runner/test_slurm
model=small.json
missing=$(slurm_missing)
if [ -n "$missing" ] || [ "$(id -u)" != 0 ] || ! [ -x "${syncopate%/*}/syncopate-worker-mpi" ]; then
    echo "skip slurm: needs root, the worker program, and${missing:+ here} ${missing:-Slurm}"
    exit 0
fi
dir=$(mktemp -d)
trap 'slurm_down "$dir/slurm"; rm -rf "$dir"' EXIT
mkdir "$dir/slurm" "$dir/ours" "$dir/work"
RANDOM=${SYNCOPATE_TEST_SEED:-$(date +%s)}
if ! slurm_up "$dir/slurm" >"$dir/why"; then
    echo "not ok slurm_starts: $(tr '\n' ' ' <"$dir/why" | head -c 300)"
    exit 0
fi
cd "$dir/work"
# Two nodes that are one host cannot meet in its shared memory; traffic stays on the loopback.
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo

cat >$model <<'E2'
{"schema":"syncopate.model/1","name":"small","batch_per_device":1,
 "variables":[{"name":"a","shape":[64,1024],"dtype":"f32"},{"name":"b","shape":[70],"dtype":"f32"},
              {"name":"c","shape":[40000],"dtype":"f32"}],
 "layers":[{"name":"1","forward_us":2000,"backward_us":4000,"variables":["a","b"]},
           {"name":"2","forward_us":2000,"backward_us":4000,"variables":["c"]}]}
E2
cluster() { # cluster NODE DEVICES DEVICE
    echo '{"schema":"syncopate.cluster/1","name":"two","nodes":[{"name":"'"$1"'","count":2,"devices":'"$2"',"device":"'"$3"'",
        "nic_gbit_per_s":10,"nic_latency_us":50,"device_link_gbyte_per_s":10}]}'
}
cluster n 1 cpu >two.json
cluster n 2 cpu >four.json
cluster other 1 cpu >other.json
cluster n 2 v100 >gpus.json
printf 'n2\nn1 # the second\n' >hosts
printf 'n1\n' >short
cat >fault <<E2
#!/bin/bash
exec "${syncopate%/*}/syncopate-worker-mpi" "\${@/none/kill}"
E2
cat >tell <<'E2'
#!/bin/bash
# In the worker's place: says what the first rank got.
[ "$SLURM_PROCID" = 0 ] && echo '{"event":"error","reason":"gpus '"$CUDA_VISIBLE_DEVICES share ${SYNCOPATE_SHARE_GPU:-no} mine ${MINE:-no} other ${OTHER:-no} tmp ${TMPDIR##*/}"'"}'
sleep 5
E2
chmod +x fault tell
ln -s tell tell-nccl

quiet() { # no step, no job and no worker is left, within ten seconds; a job that is $1 may be
    for _ in {1..50}; do
        left=$(squeue -h -s -o %i | grep -v -F extern; squeue -h -o %i | grep -v -x -F "${1:-none}"; pgrep -f "$dir/work/syncopate-")
        [ -z "$left" ] && return 0
        sleep 0.2
    done
    return 1
}
trial() { # trial CLUSTER ARGUMENT...
    local cluster=$1
    shift
    "$syncopate" trial "$model" "$cluster" --runner slurm --iterations 3 "$@"
}

check a_trial_runs_with_an_allocation_of_its_own 0 'wfbp: ' trial two.json --baseline wfbp --logs logs
grep -q -- '--nodelist=n1,n2 ' logs/0001-wfbp.log
verdict its_log_has_the_command_line $? "$(head -c 300 logs/*)"
check servers_get_ranks_beside_the_devices 0 'ps: ' trial four.json --baseline ps
check hosts_come_from_a_file_in_the_order_of_the_nodes 0 'wfbp: ' trial other.json --baseline wfbp --hosts hosts --logs order
grep -q -- '--nodelist=n2,n1 ' order/0001-wfbp.log
verdict that_order_is_kept $? "$(head -c 300 order/*)"
check a_host_file_of_another_length_is_refused 2 'short names 1 hosts; the cluster has 2 nodes' trial two.json --baseline wfbp --hosts short
check a_wrong_host_is_said 1 'Invalid node name' trial other.json --baseline wfbp
check a_wrong_partition_is_said 1 'Invalid partition name' trial two.json --baseline wfbp --partition nowhere
check a_wrong_word_for_srun_is_said 1 "unrecognized option '--nonsense'" trial two.json --baseline wfbp --launch-options --nonsense
check options_of_slurm_are_refused_elsewhere 2 '--partition is for --runner slurm' \
    "$syncopate" trial "$model" two.json --baseline wfbp --runner local --partition main
check doctor_knows_srun 0 'ok       srun             slurm-wlm' "$syncopate" doctor

job() { # an allocation of both nodes that stays; prints its number
    salloc --no-shell --exclusive -N2 2>&1 | sed -n 's/.*Granted job allocation //p'
}
id=$(job)
check a_trial_runs_within_an_allocation 0 'slurm, in this allocation' env SLURM_JOB_ID="$id" SLURM_JOB_NUM_NODES=2 \
    "$syncopate" trial "$model" two.json --baseline ps --runner slurm --iterations 3
sed 's/"n","count":2/"n1","count":1/' two.json >one.json
check it_may_have_more_nodes_than_the_cluster 0 'wfbp: ' env SLURM_JOB_ID="$id" SLURM_JOB_NUM_NODES=2 \
    "$syncopate" trial "$model" one.json --baseline wfbp --runner slurm --iterations 3
check a_host_outside_of_it_is_said 1 'Unable to create step' env SLURM_JOB_ID="$id" SLURM_JOB_NUM_NODES=2 \
    "$syncopate" trial "$model" other.json --baseline wfbp --runner slurm --iterations 3
scancel "$id"

check a_rank_that_dies_is_named_with_its_log 1 'the trial failed: srun: error: n2: task 1: Killed (log: crash/0001-wfbp.log)' \
    env SYNCOPATE_WORKER="$PWD/fault" "$syncopate" trial "$model" two.json --baseline wfbp --runner slurm --logs crash
quiet
verdict nothing_stays_behind_a_crash $? "$left"
check ranks_get_gpus_by_the_node 1 'gpus 0,1 share no mine no' env MINE=1 "$syncopate" trial "$model" \
    gpus.json --baseline wfbp --runner slurm --worker "$PWD/tell-nccl"
check ranks_share_a_gpu_and_get_what_is_passed 1 'gpus 0 share 1 mine 1 other no tmp tmp' env MINE=1 OTHER=1 \
    SYNCOPATE_WORKER="$PWD/tell" TMPDIR="$dir/ours" \
    "$syncopate" trial "$model" gpus.json --baseline wfbp --runner slurm --share-gpu --pass MINE
check gpus_can_be_asked_for_in_other_words 1 'gpus 0 share no' env SYNCOPATE_WORKER="$PWD/tell-nccl" \
    "$syncopate" trial "$model" gpus.json --baseline wfbp --runner slurm --launch-options '--gres=gpu:1'

"$syncopate" trial "$model" two.json --baseline wfbp --runner slurm --iterations 10000 >out 2>err &
pid=$!
for _ in {1..50}; do
    pgrep -f "$dir/work/syncopate-" >/dev/null && break
    sleep 0.1
done
sleep 1
kill -INT $pid
wait $pid
status=$?
[ $status = 130 ] && quiet
verdict an_interrupt_ends_the_step $? "exit status $status, left: ${left:-}; $(head -c 300 err)"

[ -x "$unit" ] && SYNCOPATE_TEST_SLURM=1 CMOCKA_MESSAGE_OUTPUT=TAP "$unit" 2>&1 | grep -v '^1\.\.' | sed -E 's/ok [0-9]+ - /ok /'

# A session, killed three times: twice with allocations of its own, once within one.
db=$dir/work/d.db
complete() { # uid strategy number round of every completed trial
    "$syncopate" dataset export --dataset "$db" --state complete 2>/dev/null |
        python3 -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(r["uid"], r["strategy"]["id"] if isinstance(r["strategy"], dict) else r["strategy"], r["number"], r["round"])'
}
tune() {
    local id
    id=$([ -e "$db" ] && "$syncopate" dataset sessions --dataset "$db" 2>/dev/null | awk 'NR == 2 { print $1 }')
    if [ -n "$id" ]; then
        set -- --resume "$id"
    else
        set -- "$model" two.json --runner slurm --partition main --logs session --trials 9 --rounds 1 --trial-time 200ms
    fi
    exec "$syncopate" tune "$@" --dataset "$db" --out best.json >out 2>err
}
: >kept
lost=0 left=
for round in 1 2 3; do
    unset SLURM_JOB_ID SLURM_JOB_NUM_NODES
    [ $round = 3 ] && id=$(job) && export SLURM_JOB_ID=$id SLURM_JOB_NUM_NODES=2
    (tune) &
    pid=$!
    sleep "$((1 + RANDOM % 2)).$((RANDOM % 10))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    quiet "${SLURM_JOB_ID:-}" || break
    complete >now
    lost=$((lost + $(grep -vxFf now kept | grep -c .)))
    cp now kept
done
verdict no_step_stays_behind_a_session_that_is_killed "$([ -z "$left" ]; echo $?)" "$left"
for _ in {1..50}; do # what removes it learns of the death a moment later
    stray=$(find "$dir/work" -maxdepth 1 -name 'syncopate-*')
    [ -z "$stray" ] && break
    sleep 0.2
done
verdict no_folder_either "$([ -z "$stray" ]; echo $?)" "$stray"
unset SLURM_JOB_ID SLURM_JOB_NUM_NODES
scancel "$id"
(tune)
verdict the_session_goes_on_to_its_end $? "$(head -c 300 err)"
newest=$(ls -t session | head -1)
grep -q -- '--partition=main' "session/$newest"
verdict it_goes_on_as_it_began $? "$newest: $(head -c 300 "session/$newest")"
complete >now
lost=$((lost + $(grep -vxFf now kept | grep -c .)))
verdict no_completed_trial_is_lost "$lost" "$lost"
twice=$(awk '{ print $2, $4 }' now | sort | uniq -d)
verdict no_trial_is_repeated "$([ -z "$twice" ]; echo $?)" "$twice"
[ "$(wc -l <now)" -ge 5 ] && [ -s best.json ] && [ "$(ls session | wc -l)" -ge "$(wc -l <now)" ]
verdict it_has_its_trials_its_logs_and_its_answer $? "$(wc -l <now) trials, $(ls session 2>&1 | wc -l) logs, $(tail -3 out)"
