#!/usr/bin/env python3
"""What `syncopate advise` answers for llamas, as a table: advice.py SYNCOPATE [MODEL,...] (docs/generate calls it)."""
import json
import subprocess
import sys

PAIRS = (("h100-64x8-bf16", "", (24, 80)), ("v100-16x10g", "-v100", (16, 32)))  # budgets in GB
MODELS = "llama-135m,llama-1b,llama-8b,llama-8b-checkpointing"
ROW = "%-27s %-14s %-12s %-11s %-26s %9s  %9s"


def advise(syncopate, model, cluster, budgets):
    done = subprocess.run([syncopate, "advise", model, cluster, "--memory", ",".join(f"{b}GB" for b in budgets), "--json",
                           "--log", "error"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):  # 3: nothing fits into some budget
        raise SystemExit(f"advice.py: advise {model} {cluster} ended with {done.returncode}")
    return json.loads(done.stdout)


def time_of(us):
    return f"{us / 1e6:.3f} s" if us >= 1e6 else f"{us / 1e3:.0f} ms"


def lines(syncopate, model, cluster, budgets):
    found = advise(syncopate, model, cluster, budgets)
    ways = found["candidates"]
    by_id = {way["id"]: way for way in ways}
    smallest = min(ways, key=lambda way: (way["memory"]["peak_bytes"], way["iteration_us"]))
    asked = [(f"with {b} GB", by_id.get(answer["id"])) for b, answer in zip(budgets, found["answers"])]
    plain = next(way for way in ways if way["strategy"] == "pytorch-ddp")
    for what, way in (*asked, ("the smallest", smallest), ("plain", plain)):
        if way is None:
            yield (ROW % (model, cluster, what, "nothing fits", "", "", "")).rstrip()
            continue
        groups = f", {way['groups']} groups" if way["groups"] else ""
        yield ROW % (model, cluster, what, way["way"], way["strategy"] + groups, time_of(way["iteration_us"]),
                     f"{way['memory']['peak_bytes'] / 2**30:.1f} GiB")


def main():
    syncopate, models = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else MODELS).split(",")
    print((ROW % ("MODEL", "CLUSTER", "MEMORY", "WAY", "STRATEGY", "ITERATION", "A DEVICE")).rstrip())
    for cluster, suffix, budgets in PAIRS:
        for model in models:
            for line in lines(syncopate, model + suffix, cluster, budgets):
                print(line)


if __name__ == "__main__":
    main()
