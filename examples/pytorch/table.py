"""A table at the end of the demo: table.py FOLDER WHAT RATE...

Plain DDP and the strategy trained in turn, a block each; medians over the blocks. The interval of a median is that of
order statistics, at least 95% where there are 6 blocks or more. The speed-up is the median of the blocks' ratios, with
its interval. PROCESSORS: how busy those of this machine were.
"""

import json
import math
import sys


def interval(values):
    """The k-th smallest and largest between which the median lies with 95%, for the largest such k; all, if none."""
    n, k, outside = len(values), 0, 2.0 / 2 ** len(values)
    while outside <= 0.05:
        k += 1
        outside += 2 * math.comb(n, k) / 2**n
    ordered = sorted(values)
    return ordered[max(k - 1, 0)], ordered[n - max(k, 1)]


def median(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def milliseconds(values):
    low, high = interval(values)
    return f"{median(values) / 1e3:.0f} ms ({low / 1e3:.0f}..{high / 1e3:.0f})"


def what(hook):
    order = {"fifo": "in order of readiness", "priority": "by priority", "preemptive": "in a fixed order"}
    barrier = "into the next forward pass" if hook["cross_iteration"] else "behind a barrier"
    credit = f", {hook['credit_bytes'] / 2**20:.1f} MiB at once" if hook.get("credit_bytes") else ""
    credit = ", one at a time" if hook.get("credit_bytes") == 0 else credit
    return f"{len(hook['groups'])} groups, {order[hook['policy']]}{credit}, {barrier}"


def main(folder, title, rates):
    model = load(f"{folder}/model.json")
    row = "{:<10} {:<12} {:>9}   {:<24} {:>10}   {}"
    print(f"{model['name']}, {title}: plain DistributedDataParallel and the tuned strategy in turn;")
    print("median and 95% interval\n")
    print(row.format("RATE", "", "PREDICTED", "MEASURED", "PROCESSORS", "SPEED-UP"))
    notes = []
    for rate in rates:
        compared = load(f"{folder}/compare-{rate}.json")
        ddp, ours = compared["block_us"]["ddp"], compared["block_us"]["strategy"]
        ratios = [a / b for a, b in zip(ddp, ours)]
        low, high = interval(ratios)
        predicted = [load(f"{folder}/predicted-{n}-{rate}.json")["iteration_us"] for n in ("pytorch-ddp", "strategy")]
        busy = [f"{100 * median(compared['busy'][name]):.0f}%" for name in ("ddp", "strategy")]
        print(row.format(f"{rate} Gbit/s", "DDP", f"{predicted[0] / 1e3:.0f} ms", milliseconds(ddp), busy[0], "").rstrip())
        speedup = f"{median(ratios):.2f}x ({low:.2f}..{high:.2f})"
        print(row.format("", "strategy", f"{predicted[1] / 1e3:.0f} ms", milliseconds(ours), busy[1], speedup))
        losses = list(zip(compared["losses"]["ddp"], compared["losses"]["strategy"]))
        apart = max(abs(a - b) for a, b in losses)
        name, hook = load(f"{folder}/best-{rate}.json")["name"], load(f"{folder}/best-{rate}-hook.json")
        notes.append(
            f"{rate} Gbit/s: {name}: {what(hook)};\n"
            f"    losses of {len(losses)} iterations from {losses[0][0]:.4f} to {losses[-1][0]:.4f}, "
            f"at most {apart:.1e} apart; {len(ddp)} blocks each"
        )
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit("table.py: error: give the demo's folder, what it is and its rates: table.py FOLDER WHAT RATE...")
    try:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
    except OSError as problem:
        raise SystemExit(f"table.py: error: {problem.filename}: {problem.strerror}") from None
