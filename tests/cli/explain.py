"""Traces of several ranks for explain.sh, as PyTorch 2.13 writes them, and what must be said of them.

    explain.py write FOLDER gloo|nccl [MEGABYTES]   FOLDER/rank0.json to rank3.json; the first of about so many megabytes
                                                    (RANKS=N: so many ranks)
    explain.py check FILE                           of `explain --json`: ok and not ok lines
    explain.py peak COMMAND...                      run it, print its peak memory in MiB
    explain.py real FOLDER                          train under torchrun, each rank with a profile in FOLDER
"""

import json
import os
import random
import resource
import subprocess
import sys

STEPS, LATE, LATE_US, STEP_US = 12, 2, 5000, 30000
RANKS = int(os.environ.get("RANKS", 4))
FLOATS = (1 << 14, 1 << 18, 1 << 20)
CLOCKS = (0, 70000.5, -3e6, 12)  # us: how far the ranks' clocks are off


def cost_us(floats):
    return 120 + floats * 4 / 1000  # 1 GB/s


def event(category, name, thread, start, end, args):
    return json.dumps({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, "ts": round(start, 3),
                       "dur": round(end - start, 3), "args": args}, indent=1)


def collective(form, number, floats, start, end):
    if form == "gloo":
        return event("user_annotation", "gloo:all_reduce", 9, start, end,
                     {"External id": number, "Concrete Inputs": [""], "Input type": ["float"],
                      "Input Strides": [[1]], "Input Dims": [[floats]]})
    return event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, start, end,
                 {"device": 0, "stream": 20, "correlation": number, "Collective name": "allreduce",
                  "In msg nelems": floats, "Out msg nelems": floats, "Group size": RANKS, "dtype": "Float",
                  "Process Group Name": "0", "Process Group Description": "default_pg",
                  "Process Group Ranks": str(list(range(RANKS))), "Seq": 100 + number})


def steps(form, draw):
    """For each step and rank: its events, by the true clock."""
    for s in range(STEPS):
        at, out = s * STEP_US, [[] for _ in range(RANKS)]
        ready = [at + 8000 + draw.uniform(0, 100) + LATE_US * (r == LATE) for r in range(RANKS)]
        for r in range(RANKS):
            out[r].append(("user_annotation", f"ProfilerStep#{s + 3}", 7, at, at + STEP_US, {}))
            if form == "nccl":
                out[r].append(("gpu_user_annotation", f"ProfilerStep#{s + 3}", 7, at, at + STEP_US, {}))
            work = ("kernel", "gemm") if form == "nccl" else ("cpu_op", "aten::mm")
            out[r].append((*work, 7, ready[r] - 8000, ready[r], {"Input Dims": [[64, 64], [64, 64]]}))
        for k, floats in enumerate(FLOATS):
            end = max(ready) + cost_us(floats) * draw.uniform(0.98, 1.02)
            for r in range(RANKS):
                out[r].append((form, s * len(FLOATS) + k, floats, ready[r], end + draw.uniform(-3, 3)))
                ready[r] = out[r][-1][-1]
        yield out


def write(folder, form, megabytes):
    draw = random.Random(7)
    files = [open(f"{folder}/rank{r}.json", "w") for r in range(RANKS)]
    for r, file in enumerate(files):
        file.write(f'{{"schemaVersion": 1, "distributedInfo": {{"backend": "{form}", "rank": {r}, "world_size": {RANKS}}},'
                   f'"traceEvents": [\n{{"ph": "M", "name": "process_name", "pid": 7, "args": {{"name": "python3"}}}}')
    for s, of_ranks in enumerate(steps(form, draw)):
        for r, events in enumerate(of_ranks):
            clock = 4812580000000 + CLOCKS[r % len(CLOCKS)]
            draw.shuffle(events)
            for e in events:
                words = collective(*e[:3], e[3] + clock, e[4] + clock) if e[0] == form else event(
                    *e[:3], e[3] + clock, e[4] + clock, e[5])
                files[r].write(",\n" + words)
            if r == 0:
                fill(files[0], form, s * STEP_US + clock, (s + 1) / STEPS * megabytes * 1e6)
    for r, file in enumerate(files):
        file.write(f'], "traceName": "rank{r}.json" }}\n')
        file.close()


def fill(file, form, start, size):
    """Small operators within the first 8 ms of a step, until the file is so large."""
    category = "kernel" if form == "nccl" else "cpu_op"
    words = event(category, "aten::add_", 7, 0, 0, {"External id": 0, "Input type": ["float", "float", "Scalar"],
                                                     "Input Dims": [[512, 512], [512, 512], []], "Ev Idx": 0})
    before, after = words.split('"ts": 0,\n "dur": 0,')
    number = 0
    while file.tell() < size:
        file.write("".join(f',\n{before}"ts": {start + (number + i) * 0.3 % 7000:.3f},\n "dur": 0.200,{after}'
                           for i in range(1000)))
        number += 1000


def verdict(name, holds, why=""):
    print(f"ok {name}" if holds else f"not ok {name}: {why}")


def check(path):
    said = json.load(open(path))
    name = path.rsplit("/", 1)[-1].removesuffix(".json")
    verdict(f"{name}_names_the_late_rank", said["late_rank"] == LATE, said["late_rank"])
    late = said["ranks"][LATE]
    verdict(f"{name}_tells_by_how_much_and_how_often",
            abs(late["last_by_us"] - LATE_US) < 400 and STEPS <= late["last"] <= 3 * STEPS and abs(late["held_up_us"] - LATE_US) < 300,
            late)
    costs = {c["bytes"]: c for c in said["costs"]}
    true = {4 * floats: cost_us(floats) for floats in FLOATS}
    verdict(f"{name}_has_costs_within_5_percent",
            costs.keys() == true.keys() and all(abs(costs[b]["time_us"] / t - 1) < 0.05 and costs[b]["alone"]
                                                and costs[b]["devices"] == RANKS for b, t in true.items()), costs)
    parts = ("compute_us", "exposed_us", "waiting_us", "idle_us")
    verdict(f"{name}_adds_up", all(abs(sum(r[p] for p in parts) - r["iteration_us"]) < 1 for r in said["ranks"])
            and abs(said["iteration_us"] - STEP_US) < 1, said["ranks"])
    verdict(f"{name}_says_what_can_be_won",
            abs(said["most_won_us"] - sum(true.values())) < 0.05 * sum(true.values()) + LATE_US * 0.05, said["most_won_us"])


def peak(command):
    status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024 if status == 0 else f"failed: {status}")


def real(folder):
    import time

    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile, schedule

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)

    class Late(torch.nn.Module):
        def forward(self, x):
            time.sleep(0.15 * (rank == LATE))
            return x

    layers = [torch.nn.Linear(128, 512), Late(), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.Linear(512, 64)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(16, 128)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 schedule=schedule(wait=2, warmup=1, active=8)) as profiler:
        for _ in range(11):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            profiler.step()
    profiler.export_chrome_trace(f"{folder}/rank{rank}.json")
    dist.barrier()
    dist.destroy_process_group()


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3], float(sys.argv[4]) if len(sys.argv) > 4 else 0)
elif sys.argv[1] == "check":
    check(sys.argv[2])
elif sys.argv[1] == "peak":
    peak(sys.argv[2:])
else:
    real(sys.argv[2])
