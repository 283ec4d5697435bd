"""For demo-fsdp: table_sharded.py FOLDER pick MEMORY...     the strategies of the ways, from the advice and the baseline
                   table_sharded.py FOLDER table MEMORY...    the table at the end

Medians over blocks of iterations, with the interval of table.py; ratios are those of blocks that followed each other.
"""

import json
import os
import sys

from table import interval, load, median, milliseconds

AS_IT_COMES = "as it comes"  # the way without a strategy
LOSSES_APART = 1e-4  # more is no rounding


def store(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def pick(folder, memories):
    """MEMORY.json of each, and per-block.json: the groups of as-it-comes.json, which on a CPU gathers nothing ahead, with
    the next one on its way."""
    advice = load(f"{folder}/advice.json")
    ways = {c["id"]: c["way"] for c in advice["candidates"]}
    for memory, answer in zip(memories, advice["answers"]):
        way = ways.get(answer.get("id"))
        if way != "FSDP":
            least = advice["smallest_memory_bytes"] / 1e6
            raise SystemExit(f"demo-fsdp: with {memory} it is {way or 'nothing'}, and not FSDP, which needs {least:.1f} MB")
        os.replace(f"{folder}/advice/{answer['id'][:12]}.json", f"{folder}/{memory}.json")
    block = load(f"{folder}/as-it-comes.json")
    block.pop("id", None)
    block["schedule"].update(forward_prefetch=1, backward_prefetch=1)
    store(f"{folder}/per-block.json", block)


def predicted_us(folder, name):
    """Of fully_shard as it comes on a CPU: it waits for each message before it computes on, and gloo's reduce-scatter
    moves what an all-reduce does, twice the bytes of ours (docs/fsdp.md)."""
    whole = load(f"{folder}/{name}-predicted.json")
    if name != "as-it-comes":
        return whole["iteration_us"]
    sent = {"all-gather": 0.0, "reduce-scatter": 0.0}
    timeline = load(f"{folder}/{name}-timeline.json")
    iterations = sum(1 for e in timeline["traceEvents"] if e.get("name") == "forward 0" and e["pid"] == 0)
    for event in timeline["traceEvents"]:
        if event.get("cat") in sent and event["pid"] == 0:
            sent[event["cat"]] += event["dur"] / iterations
    return whole["iteration_us"] - whole["exposed_us"] + sent["all-gather"] + 2 * sent["reduce-scatter"]


def ratio(theirs, ours):
    ratios = [a / b for a, b in zip(theirs, ours)]
    low, high = interval(ratios)
    return f"{median(ratios):.2f}x ({low:.2f}..{high:.2f})"


def megabytes(size, predicted):
    return f"{size / 1e6:.1f} MB ({100 * (predicted / size - 1):+.1f}%)"


def what(strategy):
    groups = strategy["groups"]
    kept = sum(1 for group in groups if group.get("reshard_after_forward") is False)
    return f"{len(groups)} groups, {kept} of which stay gathered"


def table(folder, memories):
    compared, model = load(f"{folder}/compare.json"), load(f"{folder}/model.json")
    on_gloo, alone = load(f"{folder}/memory.json"), load(f"{folder}/memory-alone.json")
    rate = load(f"{folder}/lab.json")["nodes"][0]["nic_gbit_per_s"]
    blocks, losses = compared["block_us"], compared["losses"]
    print(f"{model['name']} by FSDP2 on 4 nodes at {rate} Gbit/s, computing on emulated devices: all ways in turn,")
    print(f"{len(blocks[AS_IT_COMES])} blocks of iterations each; median and 95% interval\n")
    row = "{:<12} {:>9}   {:<24} {:>6} {:>11}   {:<20} {}"
    print(row.format("", "PREDICTED", "MEASURED", "ERROR", "PROCESSORS", "TO AS IT COMES", "TO PER BLOCK"))
    names = {AS_IT_COMES: "as-it-comes", "per-block": "per-block", **{m: m for m in memories}}
    for way, name in names.items():
        us, ours = predicted_us(folder, name), blocks[way]
        print(row.format(
            way, f"{us / 1e3:.0f} ms", milliseconds(ours), f"{100 * (us / median(ours) - 1):+.1f}%",
            f"{100 * median(compared['busy'][way]):.0f}%", "" if way == AS_IT_COMES else ratio(blocks[AS_IT_COMES], ours),
            "" if way in (AS_IT_COMES, "per-block") else ratio(blocks["per-block"], ours)).rstrip())  # fmt: skip
    print("\nthe most memory of a rank in an iteration, and how far the prediction is off:\n")
    row = "{:<12} {:>9}   {:<20} {:<20} {}"
    print(row.format("", "PREDICTED", "ON GLOO", "WITHOUT GLOO", "").rstrip())
    for way, name in names.items():
        memory = load(f"{folder}/{name}-predicted.json")["memory"]["peak_bytes"]
        print(row.format(way, f"{memory / 1e6:.1f} MB", megabytes(on_gloo[way]["peak_bytes"], memory),
                         megabytes(alone[way]["peak_bytes"], memory), what(load(f"{folder}/{name}.json"))))  # fmt: skip
    apart = max(abs(a - b) for way in names for a, b in zip(losses[way], losses[AS_IT_COMES]))
    first, last = losses[AS_IT_COMES][0], losses[AS_IT_COMES][-1]
    print(f"\nlosses of {len(losses[AS_IT_COMES])} iterations from {first:.4f} to {last:.4f}, at most {apart:.1e} apart")
    if not apart < LOSSES_APART:
        raise SystemExit("demo-fsdp: the ways do not train alike")


if __name__ == "__main__":
    {"pick": pick, "table": table}[sys.argv[2]](sys.argv[1], sys.argv[3:])
