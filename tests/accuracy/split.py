#!/usr/bin/env python3
"""All-reduces in halves against whole ones: the best of each on three networks, measured in turn in the lab.

    split.py [MODEL,... [RATE,...]]    (OUT is build/release; needs root, and 12 minutes on a quiet machine)

Four nodes, NICs of RATE Gbit/s. Each network is benched first. Three plans are chosen by prediction alone, the best
- of BARRIER, after which the next forward pass waits for all sums, as frameworks do it;
- of NO_BARRIER and what a search finds, where it waits for each sum when it needs it;
- in halves: a reduce-scatter, then an all-gather that the next forward pass waits for (DeAR, ICDCS 2023). `dear`, and
  what the same search finds.
The search cuts the order of readiness into groups. It begins with buckets of equal sizes, by each of SCHEDULES. From
the best it goes on by steps, while these are predicted to be faster: a cut more, a cut less, or a cut one gradient
further on or back.

The plans then run in turn, a block of iterations each; every other turn goes backwards. Medians over blocks, and of the
ratios of blocks of one turn; in parentheses 95% intervals, which below 6 blocks are the whole range.

    BLOCKS=5    blocks of each plan    SECONDS=2.5    of each block, beside warming up
    BENCH=40s   for each network       KEEP=FILE      the table goes there as well (docs/split.txt)
"""
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "examples", "pytorch"))
from table import interval, median, milliseconds  # noqa: E402

OUT = os.environ.get("OUT", "build/release")
SYNCOPATE = os.path.join(ROOT, OUT, "bin", "syncopate")
MODELS, RATES = "cnn-small,transformer-small", "0.2,0.5,1"
BARRIER = ("wfbp,single,mg-wfbp,merge-optimal,pytorch-ddp,horovod,horovod-tuned,all-reduce,partitioned-all-reduce,"
           "random-axis-partition-all-reduce")
NO_BARRIER = "pace,pace-makespan,bytescheduler-all-reduce,tictac"
SCHEDULES = {"fifo": {"policy": "fifo", "credit_bytes": 0}, "priority": {"policy": "priority", "credit_bytes": 0},
             "fifo, all at once": {"policy": "fifo"}, "priority, all at once": {"policy": "priority"}}
BLOCKS, SECONDS = int(os.environ.get("BLOCKS", "5")), float(os.environ.get("SECONDS", "2.5"))
LEAST, MOST = 4, 20  # iterations of a block
SMALLEST_BUCKET = 64 << 10
AT_ONCE = 48  # strategies that one command takes


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(*arguments):
    """The objects that the command prints, one a line."""
    done = subprocess.run([SYNCOPATE, *arguments, "--json", "--log", "error"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or "%s ended with %d" % (arguments[0], done.returncode))
    return done.stdout


def objects(*arguments):
    return [json.loads(line) for line in run(*arguments).splitlines()]


def bench(rate, folder):
    described, path = (os.path.join(folder, name) for name in ("lab.json", "lab-4x%sg.json" % rate))
    with open(os.path.join(ROOT, "examples", "clusters", "lab-4x1g.json"), encoding="utf-8") as file:
        cluster = json.load(file)
    cluster["name"] = "lab-4x%sg" % rate
    cluster["nodes"][0]["nic_gbit_per_s"] = float(rate)
    with open(described, "w", encoding="utf-8") as file:
        json.dump(cluster, file)
    subprocess.run([SYNCOPATE, "bench", described, "--max-bytes", "32M", "--time", os.environ.get("BENCH", "40s"),
                    "--log", "warn", "--out", path], check=True)
    return path


class Cell:
    """A model on a network: strategies for them, and what is predicted of these."""

    def __init__(self, model, cluster, folder):
        self.model, self.cluster, self.folder = model, cluster, folder
        with open(model if os.path.exists(model) else os.path.join(ROOT, "examples", "models", model + ".json"),
                  encoding="utf-8") as file:
            self.bytes = {v["name"]: 4 * math.prod(v["shape"]) for v in json.load(file)["variables"]}  # all are f32
        alone = json.loads(run("strategy", "show", model, cluster, "--baseline", "wfbp"))
        group_of = {v["name"]: v["sync"]["group"] for v in alone["variables"]}
        self.ready = sorted(group_of, key=group_of.get)  # wfbp's groups are gradients in the order of readiness

    def buckets(self, size):
        """Ends of groups, each of which is the first to have so many bytes."""
        ends, held = [], 0
        for i, name in enumerate(self.ready):
            held += self.bytes[name]
            if held >= size:
                ends.append(i + 1)
                held = 0
        return tuple(ends) if ends and ends[-1] == len(self.ready) else (*ends, len(self.ready))

    def strategy(self, name, ends, schedule, split):
        group = {"algorithm": "auto", **({"sharded": "optimizer"} if split else {})}
        variables = [{"name": self.ready[i], "sync": {"kind": "all_reduce", "group": g}}
                     for g, end in enumerate(ends) for i in range(ends[g - 1] if g else 0, end)]
        return {"schema": "syncopate.strategy/1", "name": name,
                "schedule": {"cross_iteration": True, **SCHEDULES[schedule]},
                "groups": [{"id": g, **group} for g in range(len(ends))], "variables": variables}

    def write(self, name, strategy):
        path = os.path.join(self.folder, name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(strategy, file)
        return path

    def predict(self, tried, split):
        """Predicted microseconds of each (ends, schedule), in their order."""
        files = [self.write(str(i), self.strategy(str(i), *t, split)) for i, t in enumerate(tried)]
        times = {p["strategy"]["name"]: p["iteration_us"] for i in range(0, len(files), AT_ONCE)
                 for p in objects("simulate", self.model, self.cluster, "--strategy", ",".join(files[i:i + AT_ONCE]))}
        return [times[str(i)] for i in range(len(tried))]

    def search(self, split):
        """The fastest (microseconds, ends, schedule) that the steps lead to."""
        sizes = [SMALLEST_BUCKET << k for k in range(20) if SMALLEST_BUCKET << k < 2 * sum(self.bytes.values())]
        tried = sorted({(self.buckets(size), schedule) for size in sizes for schedule in SCHEDULES})
        best = min(zip(self.predict(tried, split), tried))
        while True:
            near = [(ends, best[1][1]) for ends in sorted(steps(best[1][0]))]
            found = min(zip(self.predict(near, split), near))
            if found[0] >= best[0]:
                return best[0], *best[1]
            best = found

    def searched(self, split):
        us, ends, schedule = self.search(split)
        name = "%s, %d groups, %s" % ("halves" if split else "all-reduces", len(ends), schedule)
        path = self.write("halves" if split else "whole", self.strategy(name, ends, schedule, split))
        return us, name, ("--strategy", path)

    def baselines(self, names):
        return [(p["iteration_us"], p["strategy"]["name"], ("--baseline", p["strategy"]["name"]))
                for p in objects("simulate", self.model, self.cluster, "--baseline", names)]

    def plans(self):
        """Of each: predicted microseconds, name, and how a command is told the strategy. The one in halves is last."""
        return (min(self.baselines(BARRIER)), min([self.searched(False), *self.baselines(NO_BARRIER)]),
                min([self.searched(True), *self.baselines("dear")]))


def steps(ends):
    """Cuts that differ from this one in one place."""
    inner, n = set(ends[:-1]), ends[-1]
    near = {frozenset(inner ^ {i}) for i in range(1, n)}
    near |= {frozenset(inner - {i} | {j}) for i in inner for j in (i - 1, i + 1) if 0 < j < n}
    return {(*sorted(cut), n) for cut in near if cut != inner}


def measure(cell, plans):
    """Medians of blocks in microseconds, of each plan."""
    blocks = [[] for _ in plans]
    for block in range(BLOCKS):
        for which in range(len(plans))[:: 1 if block % 2 == 0 else -1]:
            us, _, how = plans[which]
            iterations = round(min(max(SECONDS * 1e6 / us, LEAST), MOST))
            trial = json.loads(run("trial", cell.model, cell.cluster, *how, "--iterations", str(iterations)))
            blocks[which].append(median(trial["iterations_us"]))
    return blocks


ROW = "%-11s %-18s %-44s %9s  %-24s %s"


def ratios(whole, halves):
    return [a / b for a, b in zip(whole, halves)]


def lines(rate, model, plans, blocks):
    for (us, name, _), times in zip(plans, blocks):
        last = times is blocks[-1]
        ratio = "" if last else "%.3f (%.3f..%.3f), predicted %.3f" % (
            median(ratios(times, blocks[-1])), *interval(ratios(times, blocks[-1])), us / plans[-1][0])
        yield (ROW % (rate + " Gbit/s", model, name, "%.0f ms" % (us / 1e3), milliseconds(times), ratio)).rstrip()


def compare(models, rates, folder):
    """The table's lines; of each cell the blocks of its plans; what failed."""
    table, cells, failed = [], [], []
    for rate in rates:
        say("benching %s Gbit/s" % rate)
        cluster = bench(rate, folder)
        for model in models:
            try:
                cell = Cell(model, cluster, folder)
                plans = cell.plans()
                say("%s at %s Gbit/s: %s" % (model, rate, "; ".join("%s %.1f ms" % (p[1], p[0] / 1e3) for p in plans)))
                cells.append(measure(cell, plans))
            except RuntimeError as why:
                failed.append("%s at %s Gbit/s failed: %s" % (model, rate, why))
                say(failed[-1])
                continue
            table += lines(rate, model, plans, cells[-1])
    return table, cells, failed


def verdict(cells, which, what):
    """In how many cells halves are faster or slower than plan `which`, and by how much."""
    all_ratios = [ratios(blocks[which], blocks[-1]) for blocks in cells]
    faster, slower = sum(interval(r)[0] > 1 for r in all_ratios), sum(interval(r)[1] < 1 for r in all_ratios)
    medians = [median(r) for r in all_ratios]
    return "Halves against %s: of %d faster in %d, slower in %d, within the interval in %d; ratios %.3f to %.3f." % (
        what, len(cells), faster, slower, len(cells) - faster - slower, min(medians), max(medians))


def main():
    given = sys.argv[1:] + [""] * 2
    models, rates = (given[0] or MODELS).split(","), (given[1] or RATES).split(",")
    with tempfile.TemporaryDirectory() as folder:
        table, cells, failed = compare(models, rates, folder)
    text = ["Four nodes. Of each cell: the best all-reduces with a barrier, the best without, and the best halves; "
            "%d blocks each." % BLOCKS, "",
            ROW % ("NETWORK", "MODEL", "BEST BY PREDICTION", "PREDICTED", "MEASURED", "TIME OVER THAT OF HALVES"),
            *table, ""]
    if cells:
        text += [verdict(cells, 0, "the best with a barrier"), verdict(cells, 1, "the best without")]
    text += failed
    if os.environ.get("KEEP"):
        with open(os.environ["KEEP"], "w", encoding="utf-8") as file:
            file.write("$ make accuracy-split\n" + "\n".join(text) + "\n")
    print("\n".join(text))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
