#!/bin/bash
# train-ranker and rank as a person types them, on a dataset of a few short real trials.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Alone: real trials are timed.
# Plan: 35
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# say NAME PYTHON: an assertion over `out`, as lines of JSON in `rows`.
say() {
    if why=$(python3 -c "import json, sys
rows = [json.loads(line) for line in open('out')]
$2" 2>&1); then echo "ok $1"; else echo "not ok $1: $(echo "$why" | tail -n 1) in $(head -c 300 out)"; fi
}

check help_of_train_ranker 0 "usage: syncopate train-ranker" "$syncopate" train-ranker --help
check help_of_rank 0 "usage: syncopate rank" "$syncopate" rank --help
check no_dataset_says_how_to_make_one 2 'no such dataset; --dataset' "$syncopate" train-ranker --dataset none.db
[ -e none.db ] && echo "not ok training_makes_no_dataset: none.db was made" || echo "ok training_makes_no_dataset"
check unknown_kind 2 'none of linear, rnn, gat, trees' "$syncopate" train-ranker --kind forest
check a_ranker_trained_on_keeps_its_kind 2 'drop --kind and --no-residual' "$syncopate" train-ranker --from x --kind linear
check everything_held_out 2 'below 100%' "$syncopate" train-ranker --holdout 100%
check nothing_to_rank 2 'give --baselines' "$syncopate" rank mlp-small lab-4x1g --dataset none.db

if ! command -v mpirun >/dev/null; then
    echo "skip train_and_rank: needs mpirun"
    exit
fi
echo '{"schema":"syncopate.cluster/1","name":"two","nodes":[{"name":"n","count":2,"nic_gbit_per_s":1}]}' >two.json
try() { # CLUSTER BASELINE: a trial of two iterations
    "$syncopate" trial mlp-small "$1" --baseline "$2" --runner local --iterations 2 --warmup 0 --dataset t.db >out 2>err ||
        echo "not ok trial_of_$2: $(head -c 200 err)"
}
try two.json wfbp
check one_trial_is_too_few 2 'measure more there' "$syncopate" train-ranker --dataset t.db
check no_rankers_yet 0 'no rankers yet' "$syncopate" train-ranker --list --dataset t.db
check unknown_runner 2 '--runner: "cloud" is none of lab, local, mpirun' "$syncopate" train-ranker --dataset t.db --runner cloud
check a_runner_without_trials 2 'of that model, cluster and runner' "$syncopate" train-ranker --dataset t.db --runner lab
for baseline in single horovod ps ps-partitioned; do try two.json $baseline; done
check a_model_without_trials 2 'of that model' "$syncopate" train-ranker --dataset t.db --model resnet50
check no_ranker_says_how_to_train_one 2 '"syncopate train-ranker" makes one' "$syncopate" rank mlp-small two.json wfbp --dataset t.db
check training_is_told_in_words 0 'kept in t.db as linear-mlp-small-two' "$syncopate" train-ranker --dataset t.db --kind linear
check training_says_what_it_made 0 '' "$syncopate" train-ranker --dataset t.db --kind trees --name mine --holdout 34% --json
say trained_ranker_in_json "(r,) = rows
assert r['schema'] == 'syncopate.trained-ranker/1' and r['name'] == 'mine' and r['kind'] == 'trees' and r['usable'], r
assert r['trials'] == 3 and r['held_out'] == 2 and r['left_out'] == 0 and r['seconds'] > 0, r
assert r['domains'] == [{'model': 'mlp-small', 'cluster': 'two', 'runner': 'local', 'trials': 3, 'strategies': 3}], r"
check the_same_training_is_the_same_ranker 0 'keeps its name, mine; "other" is not used' "$syncopate" train-ranker --dataset t.db --kind trees --name other --holdout 34%
check training_on 0 '' "$syncopate" train-ranker --dataset t.db --from linear-mlp-small-two --name tuned --json
say a_ranker_trained_on_names_where_it_began "assert len(rows[0]['from']) == 64 and rows[0]['kind'] == 'linear', rows"
check rankers_are_listed 0 'mlp-small on two' "$syncopate" train-ranker --list --dataset t.db
check list_in_json 0 '' "$syncopate" train-ranker --list --dataset t.db --json
say the_list_has_every_ranker_once "assert [r['name'] for r in rows] == ['linear-mlp-small-two', 'mine', 'tuned'], rows"
check unknown_ranker 2 'train-ranker --list' "$syncopate" rank mlp-small two.json wfbp --ranker nobody --dataset t.db
check unknown_strategy 2 'nowhere' "$syncopate" rank mlp-small two.json nowhere --dataset t.db

check ranking_is_shown_with_what_was_measured 0 'MEASURED' "$syncopate" rank mlp-small two.json --baselines --dataset t.db
check ranking_in_json 0 '' "$syncopate" rank mlp-small two.json --baselines --ranker mine --dataset t.db --json
say ranking_is_in_order_of_the_score "scores = [r['score'] for r in rows]
assert scores == sorted(scores) and len(rows) > 10, scores
measured = [r['strategy']['name'] for r in rows if 'measured_us' in r]
assert {'wfbp', 'single', 'ps', 'ps-partitioned'} <= set(measured) and len(measured) == 5, measured  # horovod's is another's too
assert all(r['ranker']['name'] == 'mine' and r['predicted_us'] > 0 and r['timeline_us'] > 0 for r in rows)"
"$syncopate" strategy show mlp-small two.json --baseline ps --json >ps.json 2>err
check a_file_is_a_strategy_too 0 '' "$syncopate" rank mlp-small two.json ps.json ps --dataset t.db --json
say a_file_and_its_baseline_rank_alike "a, b = rows
assert a['score'] == b['score'] and a['strategy']['id'] == b['strategy']['id'] and a['ranker']['name'] == 'tuned', rows"
check a_ranker_ranks_another_domain 0 'the nearest at a distance of' "$syncopate" rank resnet50 v100-16x10g wfbp single --dataset t.db
check training_without_the_timeline 0 '' "$syncopate" train-ranker --dataset t.db --no-residual --name plain --json
check scores_without_times 0 '' "$syncopate" rank mlp-small two.json wfbp --ranker plain --dataset t.db --json
say a_score_is_no_time "assert 'predicted_us' not in rows[0] and 'score' in rows[0], rows"
check the_dataset_is_whole_after_all_that 0 'as they should be' "$syncopate" dataset check --dataset t.db
