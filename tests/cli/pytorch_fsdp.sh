#!/bin/bash
# Training by fully_shard as a strategy says (syncopate_torch.fsdp) against plain training, with gloo on the loopback.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Plan: 45
set -u
cd "$(dirname "$0")/../.." || exit 2
source tests/cli/check.bash
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/interop/pytorch:$root/tests/cli PYTHONWARNINGS=ignore

# ---- an older PyTorch says so in a line ----
cat >old.py <<'PY'
import sys, torch
from syncopate_torch.fsdp import apply
try:
    apply(torch.nn.Linear(2, 2), {"groups": [{"variables": ["weight", "bias"]}]})
except RuntimeError as error:
    sys.exit(f"{error}")
PY
old=$(for python in /usr/bin/python3; do $python -c 'import torch; assert torch.__version__ < "2"' 2>/dev/null && echo $python; done)
if [ -n "$old" ]; then
    check torch_1_13_is_told_that_it_has_no_fully_shard 1 \
        "sharded parameters need fully_shard of PyTorch 2.13, and this is PyTorch 1.13" timeout 100 "$old" old.py
else
    echo "skip torch_1_13_is_told_that_it_has_no_fully_shard: needs Debian's python3-torch"
fi

# ---- the strategies of the tests, and random ones ----
python=$root/build/venv/bin/python3
if ! "$python" -c 'import torch; assert torch.__version__ >= "2.13"' 2>/dev/null; then
    echo "skip pytorch_fsdp: needs PyTorch 2.13 in build/venv (.ci/torch)"
    exit 0
fi
timeout 600 "$python" "$root/tests/cli/pytorch_fsdp.py" 2>err || echo "not ok training_ends_well: $(tail -n 1 err)"
