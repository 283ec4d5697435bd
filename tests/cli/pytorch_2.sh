#!/bin/bash
# cli/pytorch.sh once more, with the PyTorch 2.13 of build/venv, where .ci/torch puts it.
# Once: it is torch's time; what it calls of ours has tests of its own.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 95
set -u
cd "$(dirname "$0")/../.." || exit 2
if ! [ -x build/venv/bin/python3 ]; then
    echo "skip pytorch_2: needs PyTorch 2.13 in build/venv (.ci/torch)"
    exit 0
fi
GOOD_INPUT_ONLY=1 PATH=$PWD/build/venv/bin:$PATH exec bash tests/cli/pytorch.sh
