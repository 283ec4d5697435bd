#!/bin/bash
# docs/bucket-size.md and docs/pytorch.md: what they tell people to type is typed, as it stands, in an empty folder
# (tests/http/guide.py), with gloo and two ranks on the loopback. The environment has what the pages ask for: syncopate,
# torchrun, the Python package, and the script train.py of someone else. And what the two commands of the package say.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 18
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
source tests/cli/torchrun.bash
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
dir=$(mktemp -d)
trap 'forks_end; rm -rf "$dir"' EXIT
gloo='import torch.distributed as d; assert d.is_available() and d.is_gloo_available()'
for python in python3 /usr/bin/python3 none; do $python -c "$gloo" 2>/dev/null && break; done
if [ $python = none ]; then
    echo "skip pytorch_pages: needs PyTorch with gloo (Debian: python3-torch)"
    exit 0
fi
torchrun_of "$(command -v $python)" "$dir/programs"
export PATH=$dir/programs:$PATH PYTHONPATH=$ROOT/interop/pytorch:$ROOT/tests/http
cd "$dir" || exit 2
cat >train.py <<'END'
import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(1000):
    optimizer.zero_grad()
    model(torch.randn(16, 256)).square().mean().backward()
    optimizer.step()
END
python3 -c 'import guide
guide.BLOCK_SECONDS = 300
guide.main(["docs/bucket-size.md", "docs/pytorch.md"], ["train.py"])'

# ---- what the commands say ----
profile="timeout 100 $dir/programs/forked -m syncopate_torch.profile"
check profile_help_says_how_it_is_started 0 "torchrun --nproc_per_node 8 -m syncopate_torch.profile" $profile --help
check and_what_comes_next 0 "syncopate simulate model.json measured.json" $profile --help
check bench_help_says_how_it_is_started 0 "torchrun --nproc_per_node 8 -m syncopate_torch.bench" \
    timeout 100 "$dir/programs/forked" -m syncopate_torch.bench --help
check profile_of_a_missing_script_says_one_line 2 "error: none.py: No such file or directory" $profile --out m.json none.py
check profile_into_a_missing_folder_says_one_line 2 "none/m.json: cannot write into none" $profile --out none/m.json train.py
echo 'print("nothing")' >nothing.py
check a_script_that_trains_nothing_is_told 1 "nothing.py ended and trained no module" $profile --out m.json nothing.py
cat >short.py <<'END'
import sys, torch
assert __name__ == "__main__" and sys.argv == ["short.py", "--rate", "0.1"], sys.argv
model = torch.nn.Linear(4, 2)
model(torch.ones(3, 4))
for _ in range(9):
    model(torch.ones(3, 4)).sum().backward()
END
check an_optimizer_that_is_unknown_is_told 2 "--optimizer adaam: none of sgd, momentum" $profile --out m.json --optimizer adaam short.py
check a_script_that_ends_early_is_told 1 "short.py ended after 9 iterations; give fewer by --iterations" \
    $profile --out m.json short.py --rate 0.1
check and_with_fewer_iterations_it_has_the_model 0 "" $profile --out m.json --warmup 1 --iterations 5 --optimizer 12 short.py --rate 0.1
check which_is_that_of_the_script 0 "" python3 -c '
import json
model = json.load(open("m.json"))
assert [v["shape"] for v in model["variables"]] == [[2, 4], [2]] and model["batch_per_device"] == 3, model
assert model["optimizer"] == {"bytes_per_element": 12} and "activation_bytes" in model["operators"][0], model'
