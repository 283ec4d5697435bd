"""A training job as command.sh and session.sh run it: it reads the strategy that it is given, and sleeps as long as its
iterations would take, longer the further the number of messages is from three. The first two take five times as long.

    train.py print|seconds|json|file [LOG]     how it tells its times; LOG gets "NUMBER STRATEGY" a run
"""
import json
import os
import sys
import time

how = sys.argv[1]
with open(os.environ["SYNCOPATE_TRIAL_STRATEGY"]) as file:
    strategy = json.load(file)
kinds = [part["sync"] for v in strategy["variables"] for part in v.get("each_shard", [v])]
messages = len({s["group"] for s in kinds if s["kind"] == "all_reduce"}) + sum(s["kind"] != "all_reduce" for s in kinds)
if len(sys.argv) > 2:
    with open(sys.argv[2], "a") as log:
        print(os.environ["SYNCOPATE_TRIAL_NUMBER"], strategy["name"], file=log)
for i in range(int(os.environ["SYNCOPATE_TRIAL_WARMUP"]) + int(os.environ["SYNCOPATE_TRIAL_ITERATIONS"])):
    us = (1500 + 250 * abs(messages - 3)) * (5 if i < 2 else 1)
    time.sleep(us / 1e6)
    if how == "print":
        print(f"epoch 1 iteration {i}: {us / 1000:.3f} ms", file=sys.stderr)
    elif how == "seconds":
        print(f"step {i} took {us / 1e6:.6f}")
    elif how == "json":
        print(json.dumps({"iteration": i, "time_us": us}))
    else:
        with open(os.environ["SYNCOPATE_TRIAL_TIMES"], "a") as times:
            print(json.dumps({"iteration": i, "time_us": us}), file=times)
