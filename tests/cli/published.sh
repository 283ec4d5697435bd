#!/bin/bash
# What of a job's command others get to read: its program's name, and no key that stands in its text. By an agent on a
# service, by a dataset that is merged into one, and by who asks that service for everything. Needs OUT and curl; prints ok,
# not ok and skip lines (tests/README.md).
# Plan: 16
set -u
cd "$(dirname "$0")/../.." || exit 1
source tests/cli/check.bash
source tests/cli/service.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2

cat >train.sh <<'END'
#!/bin/sh
i=0
while [ $i -lt $((SYNCOPATE_TRIAL_WARMUP + SYNCOPATE_TRIAL_ITERATIONS)) ]; do
    i=$((i + 1))
    echo "{\"iteration\": $i, \"time_us\": ${i}00}"
done
END
chmod +x train.sh
job='WANDB_API_KEY=k0123secret exec ./train.sh --token=k0123secret'

# session NAME: a session for agents, of three trials; its id.
session() {
    curl -s --json '{"model":"mlp-small","cluster":"lab-4x1g","ranker":"none","budget":{"trials":1}}' "$url/api/v1/sessions" |
        sed 's/.*"id":"\([0-9]*-[^"]*\)".*/\1/'
}
agent() {
    local id=$1
    shift
    timeout 60 "$syncopate" agent --server "$url" --session "$id" --idle 5s "$@" 2>>agent.err
}
# told ID: what the service tells of the session's trials.
told() { curl -s "$url/api/v1/sessions/$1/trials"; curl -s -H 'Accept: application/jsonl' "$url/api/v1/records?filter=state='complete'"; }

start 127.0.0.1:0 --open --dataset there.db
curl -so models.txt --json @"$OLDPWD/examples/models/mlp-small.json" "$url/api/v1/models"
curl -so clusters.txt --json @"$OLDPWD/examples/clusters/lab-4x1g.json" "$url/api/v1/clusters"
id=$(session)
agent "$id" --command "$job"
curl -s "$url/api/v1/sessions/$id/trials" >trials.json
grep -q '"state":"complete"' trials.json
verdict an_agent_runs_the_command $? "$(head -c 600 trials.json; cat agent.err)"
curl -s "$url/api/v1/sessions/$id/trials/1" >trial.json
grep -q '"label":"train.sh"' trial.json && ! grep -q secret trials.json trial.json
verdict its_program_is_told_and_its_text_is_not $? "$(cat trial.json)"
grep -qa k0123secret there.db*
[ $? = 1 ]
verdict nor_is_it_in_the_dataset $? "$(ls)"

id=$(session)
agent "$id" --command "$job" --label nightly
curl -s "$url/api/v1/sessions/$id/trials/1" >trial.json
grep -q '"label":"nightly"' trial.json && ! grep -q secret trial.json
verdict one_may_call_it_something_else $? "$(cat trial.json)"
id=$(session)
agent "$id" --command "./train.sh published" --publish-command
curl -s "$url/api/v1/sessions/$id/trials/1" >trial.json
grep -q '"command":"./train.sh published"' trial.json
verdict one_may_publish_it $? "$(cat trial.json)"
check a_label_is_a_line 2 'label' "$syncopate" agent --server "$url" --session "$id" --command true --label "$(printf 'a\nb')"
check nor_turns_it_words_around 2 'label' "$syncopate" agent --server "$url" --session "$id" --command true --label $'a\xe2\x80\xaeb'
check a_label_needs_a_command 2 'is about the job of --command' "$syncopate" tune mlp-small lab-4x1g --label x

# ---- a dataset of one's own, merged into the service ----
"$syncopate" tune mlp-small lab-4x1g --command "$job" --trials 2 --rounds 0 --dataset here.db >here.out 2>here.err
verdict a_session_here $? "$(cat here.err)"
own=$(sed -n 's/^session \([^;]*\);.*/\1/p' here.err)
"$syncopate" dataset merge here.db --server "$url" >merge.out 2>&1
verdict it_is_merged $? "$(cat merge.out)"
curl -s "$url/api/v1/sessions" | grep -q "$own"
verdict the_session_is_there $? "$own"
[ -n "$own" ] && "$syncopate" dataset merge "$url" --dataset other.db >merge.out 2>&1 && ! grep -qa k0123secret there.db* other.db*
verdict nobody_gets_its_command $? "$(grep -a k0123secret there.db* other.db* | head -c 300)"
"$syncopate" tune --resume "$own" --dataset here.db >resumed.out 2>&1
verdict it_is_known_here $? "$(cat resumed.out)"
stop

# ---- what these tools keep, they take ----
"$syncopate" tune mlp-small lab-4x1g --command $'export A=1\n\tif true; then exec ./train.sh; fi' --publish-command --trials 2 --rounds 0 \
    --dataset lines.db >lines.out 2>lines.err
verdict a_command_of_lines_runs $? "$(cat lines.err)"
check and_its_dataset_passes_the_check 0 '' "$syncopate" dataset check --dataset lines.db
check and_is_merged 0 '' "$syncopate" dataset merge lines.db --dataset of_lines.db
