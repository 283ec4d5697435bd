#!/bin/bash
# The emulated device of examples/pytorch: gradients are those of the plain module, and none is handed on before the device
# has computed it. Times are held from below alone, so a slow machine fails nothing.
# Once: it is torch's time.
# Apart: gloo's threads wait in loops, and beside others of the kind take several times as long.
# Plan: 24
set -u
cd "$(dirname "$0")/../.." || exit 2
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore PYTHONPATH=$PWD/examples/pytorch:$PWD/interop/pytorch
for python in python3 /usr/bin/python3 none; do $python -c 'import torch' 2>/dev/null && break; done
if [ $python = none ]; then
    echo "skip pytorch_device: needs PyTorch (Debian: python3-torch)"
    exit 0
fi
timeout 300 $python - <<'END'
import copy
import json
import os
import tempfile
import time

import torch

from device import BACKWARD, FORWARD, Device, layers_of, shares
from networks import NETWORKS, cross_entropy
from syncopate_torch.profile import Profile

MS = 60
torch.set_num_threads(1)


def verdict(name, good, why=""):
    print(f"ok {name}" if good else f"not ok {name}: {why}")


def trained(model, batch, on_ready=lambda name: None):
    """Gradients of an iteration, and when each was ready, from the start of the forward pass."""
    start, ready = time.perf_counter(), {}
    for name, p in model.named_parameters():
        p.register_hook(lambda g, name=name: ready.__setitem__(name, time.perf_counter() - start))
    inputs, wanted = batch
    cross_entropy(model(inputs), wanted).backward()
    return {n: p.grad.to_dense() if p.grad.is_sparse else p.grad for n, p in model.named_parameters()}, ready


for kind, (make, draw) in NETWORKS.items():
    torch.manual_seed(1)
    plain, generator = make(), torch.Generator().manual_seed(2)
    batch = draw(generator)
    emulated = copy.deepcopy(plain)
    part = shares(emulated, (batch[0],))
    verdict(f"{kind}_shares_are_all_of_the_time", abs(sum(part.values()) - 1) < 1e-9 and min(part.values()) > 0, part)
    Device(emulated, MS, batch[0])
    wanted, _ = trained(plain, batch)
    got, ready = trained(emulated, batch)
    verdict(f"{kind}_gradients_are_those_of_the_module", all(torch.equal(wanted[n], got[n]) for n in wanted))

    # A layer's gradients come after the forward pass and the backward pass of the layers from the last one to it.
    due, passed = {}, FORWARD * MS / 1e3
    for name, layer in reversed(layers_of(emulated).items()):
        passed += BACKWARD * MS / 1e3 * part[name]
        due.update((f"{name}.{own}", passed) for own, _ in layer.named_parameters(recurse=False))
    if kind == "tied":  # layers are not declared in the order of their calls; the embedding has the first and the last
        due = {"words.weight": passed}
    if kind in ("plain", "recurrent", "tied"):
        early = [(n, ready[n], due[n]) for n in due if n in ready and ready[n] < due[n] - 1e-4]
        verdict(f"{kind}_no_gradient_is_early", not early, early)
    verdict(f"{kind}_takes_its_time", max(ready.values()) >= MS / 1e3 - 1e-4, max(ready.values()))

# ---- with a host that computes by itself ----
torch.manual_seed(1)
make, draw = NETWORKS["transformer"]
plain, batch = make(), draw(torch.Generator().manual_seed(2))
emulated = copy.deepcopy(plain)
Device(emulated, MS, batch[0], ahead=False)
wanted, got, began = trained(plain, batch)[0], trained(emulated, batch)[0], time.perf_counter()
with torch.no_grad():
    emulated(batch[0])
passed = time.perf_counter() - began
alike = all(torch.equal(wanted[n], got[n]) for n in wanted)
verdict("a_host_that_waits_sees_the_forward_time_pass", alike and passed >= FORWARD * MS / 1e3, (alike, passed))

# ---- the profile sees the device's time ----
torch.manual_seed(1)
make, draw = NETWORKS["plain"]
model, generator = make(), torch.Generator().manual_seed(2)
device = Device(model, MS, draw(generator)[0])
part = shares(model, (draw(generator)[0],))
with tempfile.TemporaryDirectory() as folder:
    profile = Profile(model, os.path.join(folder, "model.json"), warmup=1, iterations=3)
    profile.clock = device
    for _ in range(4):
        inputs, wanted = draw(generator)
        cross_entropy(model(inputs), wanted).backward()
    with open(os.path.join(folder, "model.json"), encoding="utf-8") as file:
        operators = json.load(file)["operators"]
forward = {o["name"].split()[0]: o["time_us"] / 1e3 for o in operators if o["phase"] == "forward"}
short = [n for n in part if forward[n] < FORWARD * MS * part[n] - 0.1]
verdict("the_profile_has_the_devices_times", not short, [(n, forward[n], FORWARD * MS * part[n]) for n in short])
total = sum(o["time_us"] for o in operators) / 1e3
verdict("and_all_of_them", total >= MS - 0.1, total)
END
