#!/usr/bin/env python3
"""What encoders lose of real gradients, and what they take: two networks of tests/encoders/gradients.py, in the lab.

    encoders.py [RATE,...]    (OUT is build/release; needs root, PyTorch, and ten minutes on a quiet machine)

Four nodes, NICs of RATE Gbit/s, benched first. PyTorch trains each network, which gives its profile and gradients. Of
each encoding tests/encoders/errors.c finds what of these gradients it loses. Then MPI workers replay the profile: all
gradients by all-reduce without a barrier, in buckets of the size that is predicted to be the fastest, as they are and by
each encoding in turn. What an encoding cannot take travels as it is: with powersgd what does not become a quarter.

    BLOCKS=3    blocks of each    SECONDS=2    of each block    BENCH=40s    for each network    KEEP=FILE    the table too
"""
import glob
import json
import math
import os
import subprocess
import sys
import tempfile

import split
from split import OUT, ROOT, say
from table import interval, median, milliseconds

RATES = "0.1,1"
PYTHON = os.environ.get("PYTHON") or next(
    (p for p in (f"{ROOT}/build/venv/bin/python3", "/usr/bin/python3") if os.path.exists(p)), sys.executable)
BUCKETS = (64 << 10, 256 << 10, 1 << 20, 1 << 30)  # bytes as they are
# As the rows of errors.c, and what a strategy says.
ENCODINGS = {
    "f16": "f16", "bf16": "bf16",
    **{f"int8 in blocks of {n}": {"kind": "int8", "block_size": n} for n in (64, 256, 65536)},
    **{f"topk of {100 * part:g}%": {"kind": "topk", "part": part} for part in (0.1, 0.01, 0.001)},
    **{f"powersgd of rank {r}": {"kind": "powersgd", "rank": r} for r in (1, 2, 4)},
}
ROW = "%-12s %-10s %-24s %6s %8s  %9s  %-22s %s"


class Network(split.Cell):
    """A network whose gradients are encoded in one way."""

    def __init__(self, model, cluster, folder):
        super().__init__(model, cluster, folder)
        with open(model, encoding="utf-8") as file:
            self.shapes = {v["name"]: v["shape"] for v in json.load(file)["variables"]}

    def takes(self, name, encoding):
        """Whether a session would propose it for the variable (strategy/encoder.h)."""
        rank = encoding.get("rank") if isinstance(encoding, dict) else None
        shape = self.shapes[name]
        if rank is None or len(shape) < 2:
            return rank is None
        rows, columns = shape[0], math.prod(shape[1:])
        return 4 * rank * (rows + columns) <= rows * columns

    def encoded(self, size, encoding):
        """One group a bucket, and one more for what travels as it is."""
        ends = self.buckets(size)
        bucket_of = {self.ready[i]: g for g, end in enumerate(ends) for i in range(ends[g - 1] if g else 0, end)}
        variables = []
        for name in self.ready:
            encodes = encoding is not None and self.takes(name, encoding)
            variables.append({"name": name, **({"encoding": encoding} if encodes else {}),
                              "sync": {"kind": "all_reduce", "group": 2 * bucket_of[name] + encodes}})
        return {"schema": "syncopate.strategy/1", "name": str(size), "variables": variables,
                "schedule": {"policy": "fifo", "credit_bytes": 0, "cross_iteration": True},
                "groups": [{"id": g} for g in sorted({v["sync"]["group"] for v in variables})]}

    def best(self, name, encoding):
        """Predicted microseconds, name, and how a command is told the strategy."""
        prefix = name.replace(" ", "-").replace("%", "")
        files = {str(size): self.write(f"{prefix}-{size}", self.encoded(size, encoding)) for size in BUCKETS}
        found = split.objects("simulate", self.model, self.cluster, "--strategy", ",".join(files.values()))
        fastest = min(found, key=lambda p: p["iteration_us"])
        return fastest["iteration_us"], name, ("--strategy", files[fastest["strategy"]["name"]])


def lost(folder, network):
    """By encoding: the part of the bytes that travels, and the relative error; powersgd's with the Q of the steps before."""
    files = sorted(glob.glob(f"{folder}/{network}.*.f32"))
    text = subprocess.run([os.path.join(ROOT, OUT, "tests", "encoders", "errors"), *files], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    found = {}
    for line in text.splitlines()[1:]:
        fields = line.replace(", Q of the steps before", "").split()
        found[" ".join(fields[:-4])] = fields[-4], fields[-3]
    return found


def rows(rate, network, plans, blocks, losses):
    for (us, name, _), times in zip(plans, blocks):
        ratios = split.ratios(blocks[0], times)
        faster = "" if times is blocks[0] else "%.2f (%.2f..%.2f)" % (median(ratios), *interval(ratios))
        yield (ROW % (network, f"{rate} Gbit/s", name, *(losses[name] if times is not blocks[0] else ("100%", "0")), "%.1f ms" % (us / 1e3),
                      milliseconds(times), faster)).rstrip()


def main():
    rates = (sys.argv[1] if len(sys.argv) > 1 else RATES).split(",")
    table, errors = [], []
    with tempfile.TemporaryDirectory() as folder:
        say("training for gradients")
        subprocess.run([PYTHON, os.path.join(ROOT, "tests", "encoders", "gradients.py"), folder], check=True,
                       stderr=subprocess.DEVNULL)
        for rate in rates:
            say(f"benching {rate} Gbit/s")
            cluster = split.bench(rate, folder)
            for network in ("characters", "templates"):
                cell = Network(f"{folder}/{network}.json", cluster, folder)
                plans = [cell.best(name, encoding) for name, encoding in (("f32", None), *ENCODINGS.items())]
                say("%s at %s Gbit/s: %s" % (network, rate, "; ".join("%s %.1f ms" % (p[1], p[0] / 1e3) for p in plans)))
                blocks = split.measure(cell, plans)
                table += rows(rate, network, plans, blocks, lost(folder, network))
                errors += [abs(p[0] / median(b) - 1) for p, b in zip(plans, blocks)]
    text = [ROW % ("NETWORK", "NICS", "ENCODING", "BYTES", "ERROR", "PREDICTED", "MEASURED", "AS FAST AS F32"), *table, "",
            "%d plans predicted %.1f%% off in the median, 90%% of them below %.1f%%." % (
                len(errors), 100 * median(errors), 100 * sorted(errors)[math.ceil(0.9 * len(errors)) - 1])]
    if os.environ.get("KEEP"):
        with open(os.environ["KEEP"], "w", encoding="utf-8") as file:
            file.write("$ make accuracy-encoders\n" + "\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
