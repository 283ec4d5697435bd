#!/bin/bash
# docs/bucket-size.md and docs/pytorch.md: what they tell people to type is typed, as it stands, in an empty folder
# (tests/http/guide.py), with gloo and two ranks on the loopback. The environment has what the pages ask for: syncopate,
# torchrun, the Python package, and the script train.py of someone else.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Plan: 8
set -u
cd "$(dirname "$0")/../.." || exit 2
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
gloo='import torch.distributed as d; assert d.is_available() and d.is_gloo_available()'
for python in python3 /usr/bin/python3 none; do $python -c "$gloo" 2>/dev/null && break; done
if [ $python = none ]; then
    echo "skip pytorch_pages: needs PyTorch with gloo (Debian: python3-torch)"
    exit 0
fi
# Debian's torchrun, 1.13 under Python 3.11, knows no Std.NONE and ends before it starts a rank; here it knows it.
mkdir "$dir/programs"
cat >"$dir/programs/torchrun" <<END
#!$(command -v $python)
from torch.distributed.elastic.multiprocessing.api import Std
from torch.distributed.run import main
Std.from_str = staticmethod(lambda text: Std(int(text)))
main()
END
chmod +x "$dir/programs/torchrun"
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
