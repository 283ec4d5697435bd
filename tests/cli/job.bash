# Sourced first, in the project's root, by scripts about the user's own job: a folder of their own to stand in, which is
# removed at their end, $syncopate and $root, and $train, a job (train.py).
source tests/cli/check.bash
unset "${!SYNCOPATE_@}"
root=$PWD
syncopate=$root/${OUT:-build/release}/bin/syncopate
train="python3 $root/tests/cli/train.py"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
