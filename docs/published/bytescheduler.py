#!/usr/bin/env python3
"""ByteScheduler's table 1 and figure 13 by simulation: the best partition and credit on parameter servers and on NCCL.

    bytescheduler.py table FILE.csv               best sizes at 100 Gbit/s; every grid point goes to FILE.csv
    bytescheduler.py figure FILE.csv FILE.svg     speed over bandwidth: tuned, tuned at 1 Gbit/s, baseline

Every point is a strategy, written to a file and predicted by `syncopate simulate` (in $OUT/bin, default build/release),
many in one call.
Partitions go from 500 kB to 128 MB, credits from one partition (stop-and-wait) to 256 MB. Each is the one before times
the square root of two (table) or two (figure).

table prints for each set-up the fastest point (smallest credit, then smallest partition among equals) and, because the
optimum is a plateau, the smallest credit (with any partition) and the smallest partition (with any credit) that come
within 1% of it.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from variants import horovod  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SYNCOPATE = os.path.join(ROOT, os.environ.get("OUT", "build/release"), "bin", "syncopate")
MODELS = ["vgg16", "resnet50", "transformer"]
KINDS = {"ps": "PS RDMA", "nccl": "NCCL RDMA"}
BANDWIDTHS = [1, 10, 25, 40, 100]
SERVERS = ["s1", "s2", "s3", "s4"]
BIG_ARRAY_ELEMENTS = 1000000  # MXNET_KVSTORE_BIGARRAY_BOUND
GPUS = 32
AT_ONCE = 24  # strategies in a call of syncopate
UNLIMITED = None


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def size(variable):
    count = 4
    for length in variable["shape"]:
        count *= length
    return count


def parts(variable, partition):
    """As few as the partition takes; without one as MXNet does: arrays above its bound over all servers."""
    if partition:
        return -(-size(variable) // partition)
    return len(SERVERS) if size(variable) > 4 * BIG_ARRAY_ELEMENTS else 1


def on_servers(model, partition):
    """Each variable in equal parts of whole rows, which take the servers in turn."""
    at, out = 0, []
    for variable in model["variables"]:
        shards = min(variable["shape"][0], parts(variable, partition))
        turn = [SERVERS[(at + i) % len(SERVERS)] for i in range(min(shards, len(SERVERS)))]
        at += shards
        entry = {"name": variable["name"], "sync": {"kind": "parameter_server", "servers": turn}}
        if shards > 1:
            entry["partition"] = {"axis": 0, "shards": shards}
        out.append(entry)
    return out


def strategy(model, kind, policy, partition, credit):
    """partition None: as MXNet cuts on its own; credit UNLIMITED: as many in flight as are ready."""
    schedule = {"policy": policy, "cross_iteration": True}
    if credit is not UNLIMITED:
        schedule["credit_bytes"] = credit
    out = {"schema": "syncopate.strategy/1", "name": f"{policy}-{partition}-{credit}", "schedule": schedule}
    if kind == "ps":
        if policy == "priority":
            schedule["pulls"] = "priority"
        out["variables"] = on_servers(model, partition)
        return out
    cut = {"partition_bytes": partition // 4 * 4} if partition else {}
    out["groups"] = [{"id": i, "algorithm": "ring", **cut} for i in range(len(model["variables"]))]
    out["variables"] = [
        {"name": v["name"], "sync": {"kind": "all_reduce", "group": i}} for i, v in enumerate(model["variables"])
    ]
    return out


class Setup:
    """One model on one kind of synchronization at one bandwidth."""

    def __init__(self, folder, model, kind, gbit_per_s):
        self.folder, self.name, self.kind = folder, model, kind
        self.model = read(os.path.join(ROOT, "examples", "models", model + ".json"))
        cluster = read(os.path.join(HERE, "clusters", f"bytescheduler-{kind}.json"))
        for node in cluster["nodes"]:
            node["nic_gbit_per_s"] = gbit_per_s
        self.cluster = os.path.join(folder, f"{kind}-{gbit_per_s}.json")
        with open(self.cluster, "w", encoding="utf-8") as file:
            json.dump(cluster, file)

    def predict(self, plans):
        """Iteration times in microseconds of strategies of different names."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            paths = [os.path.join(folder, f"{i}.json") for i in range(len(plans))]
            for path, plan in zip(paths, plans):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(json.dumps(plan))
            command = [SYNCOPATE, "simulate", self.name, self.cluster, "--strategy", ",".join(paths), "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        predicted = {line["strategy"]["name"]: line["iteration_us"] for line in map(json.loads, done.stdout.splitlines())}
        return [predicted[plan["name"]] for plan in plans]

    def baseline(self):
        """Vanilla MXNet, in the order of readiness and without a barrier: its own store, or Horovod 0.16."""
        if self.kind == "ps":
            return self.predict([strategy(self.model, "ps", "fifo", None, UNLIMITED)])[0]
        plan = horovod(self.name, 1, 5000, 64 << 20)
        plan["schedule"]["cross_iteration"] = True
        return self.predict([plan])[0]

    def points(self, points):
        return self.predict([strategy(self.model, self.kind, "priority", p, c) for c, p in points])

    def grid(self, factor):
        """(credit, partition) -> microseconds."""
        sizes = [round(125e3 * factor**i) for i in range(200) if 125e3 * factor**i < 257e6]
        points = [(c, p) for p in sizes if 450e3 < p < 129e6 for c in sizes if c >= p]
        parts = [points[i : i + AT_ONCE] for i in range(0, len(points), AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(points, (us for part in pool.map(self.points, parts) for us in part)))


def best(grid):
    """The fastest point; what differs by less than 0.01% counts as equal."""
    least = min(grid.values())
    return min(point for point, us in grid.items() if us <= least * 1.0001)


def table(path):
    print("SETUP      MODEL        BEST MS  AT CREDIT MB  PARTITION MB  WITHIN 1%: CREDIT MB  PARTITION MB")
    with tempfile.TemporaryDirectory() as folder, open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["setup", "model", "partition_bytes", "credit_bytes", "iteration_us"])
        for kind, title in KINDS.items():
            for model in MODELS:
                grid = Setup(folder, model, kind, 100).grid(2**0.5)
                out.writerows([kind, model, p, c, f"{us:.1f}"] for (c, p), us in sorted(grid.items()))
                credit, partition = best(grid)
                near = [point for point, us in grid.items() if us <= 1.01 * grid[credit, partition]]
                print(
                    f"{title:<10} {model:<12} {grid[credit, partition] / 1e3:7.2f}  {credit / 1e6:12.1f}"
                    f"  {partition / 1e6:12.1f}  {min(c for c, _ in near) / 1e6:20.1f}"
                    f"  {min(p for _, p in near) / 1e6:12.1f}"
                )


def figure_rows(folder):
    """Yield setup, model, Gbit/s, way, samples/s, credit, partition."""
    for kind in KINDS:
        for model in MODELS:
            at_1 = None
            for gbit_per_s in BANDWIDTHS:
                setup = Setup(folder, model, kind, gbit_per_s)
                speed = GPUS * setup.model["batch_per_device"] * 1e6
                grid = setup.grid(2)
                tuned = best(grid)
                at_1 = at_1 or tuned
                yield kind, model, gbit_per_s, "baseline", speed / setup.baseline(), "", ""
                yield kind, model, gbit_per_s, "fixed", speed / grid[at_1], *at_1
                yield kind, model, gbit_per_s, "tuned", speed / grid[tuned], *tuned


COLOURS = {"baseline": "#999999", "fixed": "#56b4e9", "tuned": "#0072b2"}
WIDTH, HEIGHT, PANEL = 900, 560, (235, 190)


def bars(x, y, rows):
    """One panel: three bars a bandwidth."""
    top = max(speed for *_, speed in rows)
    out = []
    for gbit_per_s, way, speed in rows:
        place = BANDWIDTHS.index(gbit_per_s) * PANEL[0] / len(BANDWIDTHS) + 3 + 14 * list(COLOURS).index(way)
        height = speed / top * PANEL[1]
        out.append(
            f'<rect x="{x + place:.1f}" y="{y + PANEL[1] - height:.1f}" width="13" height="{height:.1f}"'
            f' fill="{COLOURS[way]}"><title>{way}, {gbit_per_s} Gbit/s: {speed:.0f} samples/s</title></rect>'
        )
    for i, gbit_per_s in enumerate(BANDWIDTHS):
        centre = x + (i + 0.5) * PANEL[0] / len(BANDWIDTHS)
        out.append(f'<text x="{centre:.1f}" y="{y + PANEL[1] + 15}" text-anchor="middle">{gbit_per_s}</text>')
    out.append(f'<path d="M{x} {y}v{PANEL[1]}h{PANEL[0]}" stroke="#333" fill="none"/>')
    out.append(f'<text x="{x - 4}" y="{y + 4}" text-anchor="end">{top:.0f}</text>')
    out.append(f'<text x="{x - 4}" y="{y + PANEL[1]}" text-anchor="end">0</text>')
    return out


def draw(rows, path):
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        '<text x="50" y="22" font-size="15">ByteScheduler figure 13 by simulation: samples/s over Gbit/s,'
        " 4 machines of 8 V100s</text>",
    ]
    for i, (way, colour) in enumerate(COLOURS.items()):
        word = {"fixed": "partition and credit as best at 1 Gbit/s"}.get(way, way)
        x = [50, 140, 400][i]
        out.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{x + 15}" y="41">{word}</text>')
    for i, kind in enumerate(KINDS):
        for j, model in enumerate(MODELS):
            x, y = 50 + 290 * j, 75 + 245 * i
            out.append(f'<text x="{x + 8}" y="{y - 6}" font-weight="bold">{model}, {KINDS[kind]}</text>')
            out += bars(x, y, [r[2:5] for r in rows if r[0] == kind and r[1] == model])
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def figure(csv_path, svg_path):
    with tempfile.TemporaryDirectory() as folder:
        rows = list(figure_rows(folder))
    with open(csv_path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["setup", "model", "gbit_per_s", "way", "samples_per_s", "credit_bytes", "partition_bytes"])
        out.writerows([*row[:4], f"{row[4]:.2f}", *row[5:]] for row in rows)
    draw(rows, svg_path)


def main(arguments):
    if arguments[:1] == ["table"] and len(arguments) == 2:
        table(arguments[1])
    elif arguments[:1] == ["figure"] and len(arguments) == 3:
        figure(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
