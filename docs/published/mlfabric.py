#!/usr/bin/env python3
"""MLfabric's table 2, §7.2, figure 9 and the study of the monitor's lag by simulation.

    mlfabric.py >FILE.txt

Predicted by `syncopate simulate` (in $OUT/bin, default build/release) on clusters/mlfabric.json, 15 machines of two
workers, a server and a replica at 10 Gbit/s, in the weather of §7: compute C1 to C3, network N1 to N3. Every figure is
the mean over the same seeds.
"""
import copy
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SYNCOPATE = os.path.join(ROOT, os.environ.get("OUT", "build/release"), "bin", "syncopate")
SEEDS = 4
COMPUTE = {"C1": (0.1, 2), "C2": (0.1, 4), "C3": (0.04, 2)}
NETWORK = {"N1": {5: 0.1, 10: 0.9}, "N2": {2.5: 0.1, 3.3: 0.1, 5: 0.1, 10: 0.7}, "N3": {1: 0.5, 10: 0.5}}
# Table 2: speed-up of MLfabric-A over RR-Sync in time to 74% accuracy.
PAPER = {"C1": (1.74, 1.23, 1.42), "C2": (2.96, 2.0, 2.32), "C3": (1.90, 1.33, 1.42)}
WORKERS = ["w%d" % i for i in range(1, 16)]

with open(os.path.join(HERE, "clusters", "mlfabric.json")) as f:
    QUIET = json.load(f)


def run(*arguments):
    return subprocess.run([SYNCOPATE, *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


def weather(compute, rates, lag_us=200000):
    cluster = dict(QUIET, variability={
        "compute": dict(zip(("share", "factor"), compute)),
        "network": {"every_us": 5000000, "monitor_lag_us": lag_us,
                    "rates": [{"gbit_per_s": rate, "share": share} for rate, share in rates.items()]}})
    return cluster


def strategy(model, baseline):
    return json.loads(run("strategy", "show", model, os.path.join(HERE, "clusters", "mlfabric.json"), "--baseline", baseline,
                          "--json"))


def ring(model):
    result = strategy(model, "single")
    result["name"] = "ring"
    for group in result["groups"]:
        group["algorithm"] = "ring"
    return result


def with_bound(base, name, bound):
    result = copy.deepcopy(base)
    result["name"] = name
    result["consistency"]["delay_bound"] = bound
    return result


def with_scheduler(base, name, **members):
    result = copy.deepcopy(base)
    result["name"] = name
    result["consistency"]["scheduler"].update(members)
    return result


def with_replica(base, divergence, copies):
    result = copy.deepcopy(base)
    result["consistency"]["replica"] = {"node": "replica", "divergence": divergence, "copies": copies,
                                        "aggregators": WORKERS}
    return result


def predict(model, cluster, strategies):
    """The answers of simulate, by the strategy's name."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, each in enumerate(strategies):
            paths.append(os.path.join(folder, "%d.json" % i))
            with open(paths[-1], "w") as f:
                json.dump(each, f)
        where = os.path.join(folder, "cluster.json")
        with open(where, "w") as f:
            json.dump(cluster, f)
        seeds = ["--seeds", str(SEEDS)] if "variability" in cluster else []
        lines = run("simulate", "--log", "warn", model, where, "--strategy", ",".join(paths), "--json", *seeds)
    return {row["strategy"]["name"]: row for row in map(json.loads, lines.splitlines())}


def seconds(row):
    return row["iteration_us"] / 1e6 if "in_weather" not in row else row["in_weather"]["mean_us"] / 1e6


def share_dropped(row):
    u = row["updates"]
    return (u["dropped"] + u["late"]) / (u["applied"] + u["dropped"] + u["late"])


def table_2():
    base = strategy("resnet50", "mlfabric-a")
    field = [ring("resnet50"), strategy("resnet50", "tree-reduce"), strategy("resnet50", "mlfabric-s"), base,
             with_scheduler(base, "slots", order="slots"), with_scheduler(base, "200 ms", batch_us=200000),
             with_bound(base, "bound-60", 60), strategy("resnet50", "ssp"),
             strategy("resnet50", "async-ps")]
    print("Table 2: ResNet-50, 30 workers. Time in which 30 updates are applied, in seconds; mean over %d seeds" % SEEDS)
    quiet = predict("resnet50", QUIET, [ring("resnet50"), base])
    print("        ring  tree  mlfabric-s  mlfabric-a  dropped  delay  slots  dropped  200 ms  bound-60    ssp  async-ps"
          "  ring/mlfabric-a  paper")
    for c, compute in COMPUTE.items():
        for k, (n, rates) in enumerate(NETWORK.items()):
            rows = predict("resnet50", weather(compute, rates), field)
            a, slots = rows["mlfabric-a"], rows["slots"]
            print("%s-%s %6.2f %5.2f %11.2f %11.2f %7.0f%% %6.1f %6.2f %7.0f%% %7.2f %9.2f %6.2f %9.2f %16.2f %6.2f" % (
                c, n, seconds(rows["ring"]), seconds(rows["tree-reduce"]), seconds(rows["mlfabric-s"]), seconds(a),
                100 * share_dropped(a), a["updates"]["delay_mean"], seconds(slots), 100 * share_dropped(slots),
                seconds(rows["200 ms"]), seconds(rows["bound-60"]), seconds(rows["ssp"]), seconds(rows["async-ps"]),
                seconds(rows["ring"]) / seconds(a), PAPER[c][k]))
            if (c, n) == ("C2", "N3"):
                worst = rows
    print("Without weather, and from there to C2-N3: " + ", ".join(
        "%s %.2f, %.1f times as long" % (name, seconds(quiet[name]), seconds(worst[name]) / seconds(quiet[name]))
        for name in ("ring", "mlfabric-a")))


def section_7_2():
    print("\n§7.2: C2-N2. Iteration in seconds, and sums and models sent between workers into a NIC below half its rate")
    for model in ("resnet50", "resnet152"):
        rows = predict(model, weather(COMPUTE["C2"], NETWORK["N2"]),
                       [ring(model), strategy(model, "tree-reduce"), strategy(model, "mlfabric-s")])
        u = rows["mlfabric-s"]["updates"]
        print("%-9s  ring %.2f, tree-reduce %.2f, mlfabric-s %.2f; %.1f%% of %d, with %.0f%% of NICs so slow" % (
            model, seconds(rows["ring"]), seconds(rows["tree-reduce"]), seconds(rows["mlfabric-s"]),
            100 * u["slow_transfers_between"] / u["transfers_between"], u["transfers_between"],
            100 * sum(share for rate, share in NETWORK["N2"].items() if rate < 5)))


def figure_9():
    base = strategy("resnet50", "mlfabric-a")
    print("\nFigure 9: models sent into the replica for each update applied, C1-N1; chain replication: 1")
    print("divergence      1     5    30   150   600")
    for copies in ("early", "due"):
        sent = []
        for divergence in (1, 5, 30, 150, 600):
            row = predict("resnet50", weather(COMPUTE["C1"], NETWORK["N1"]), [with_replica(base, divergence, copies)])
            u = row["mlfabric-a"]["updates"]
            sent.append(u["replica_bytes"] / u["applied"] / 102228128)
        print("%-10s" % copies + "".join("%6.2f" % s for s in sent))


def lag():
    print("\nThe monitor's lag (§7.1): time in which 30 updates are applied, C1, mlfabric-a, in seconds")
    skewed = {1: 0.2, 10: 0.8}
    for name, rates in (("N2", NETWORK["N2"]), ("1 Gbit/s 20%", skewed)):
        times = [seconds(predict("resnet50", weather(COMPUTE["C1"], rates, us), [strategy("resnet50", "mlfabric-a")])["mlfabric-a"])
                 for us in (200000, 2000000)]
        print("%-12s  0.2 s %.2f, 2 s %.2f (%+.1f%%)" % (
            name, *times, 100 * (times[1] / times[0] - 1)))


table_2()
section_7_2()
figure_9()
lag()
