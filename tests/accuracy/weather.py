#!/usr/bin/env python3
"""Predicted against measured in weather: MLfabric's settings C1 to C3 and N1 to N3 (§7), scaled to the lab.

    weather.py [STRATEGY,... [SETTING,...]]     (OUT is build/release; needs root, and a quarter of an hour on a quiet machine)

The lab has 4 nodes of one worker with NICs of 1 Gbit/s, a tenth of the paper's. Rates are a tenth too, and change every
second in place of every five. MLfabric's batches are 20 ms in place of 100. The model is mlp-small: 3.8 MB and 73 ms of
compute, which two processors can carry for four workers. B1 to B3 are flows of other jobs in place of drawn rates: one or
two at a time, of one second each, and many short ones. In every cell each strategy meets the same seed. A trial has as many
iterations as fit 12 s, from 10 to 60. What is predicted are the same iterations of the same seed; nothing was measured on
the cluster before.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SYNCOPATE = os.path.join(ROOT, os.environ.get("OUT", "build/release"), "bin", "syncopate")
STRATEGIES = "wfbp,ps-load-balanced,ssp,async-ps,mlfabric-a,mlfabric-s"
BATCH_US = 20000
COMPUTE = {"C1": (0.1, 2), "C2": (0.1, 4), "C3": (0.04, 2)}
NETWORK = {"N1": {0.5: 0.1, 1: 0.9}, "N2": {0.25: 0.1, 0.33: 0.1, 0.5: 0.1, 1: 0.7}, "N3": {0.1: 0.5, 1: 0.5}}
BACKGROUND = {"B1": {"flows_per_s": 1, "mbytes": 62.5, "gbit_per_s": 0.5},
              "B2": {"flows_per_s": 2, "mbytes": 125, "gbit_per_s": 1},
              "B3": {"flows_per_s": 8, "mbytes": 25, "gbit_per_s": 1}}
SETTINGS = [c + "-" + n for c in COMPUTE for n in NETWORK] + ["C1-" + b for b in BACKGROUND]
SECONDS, LEAST, MOST = 12, 10, 60


def network(name):
    if name in BACKGROUND:
        return {"background": BACKGROUND[name]}
    return {"network": {"every_us": 1000000, "monitor_lag_us": 40000,
                        "rates": [{"gbit_per_s": rate, "share": share} for rate, share in NETWORK[name].items()]}}


def cluster(name):
    with open(os.path.join(ROOT, "examples", "clusters", "lab-4x1g-weather.json")) as f:
        result = json.load(f)
    result["name"] = name
    c, n = name.split("-")
    result["variability"] = dict(network(n), compute=dict(zip(("share", "factor"), COMPUTE[c])))
    return result


def run(*arguments):
    return json.loads(subprocess.run([SYNCOPATE, *arguments, "--json", "--log", "error"], stdout=subprocess.PIPE,
                                     check=True, text=True).stdout)


def delays(updates):
    return "%.1f / %.1f / %d / %.0f%%" % (updates["delay_mean"], updates["delay_variance"], updates["delay_largest"],
                                      100 * updates["dropped_share"])


def option(path, strategy):
    """How a command is told the strategy: as a baseline, or with other batches as a file beside the cluster's."""
    if not strategy.startswith("mlfabric"):
        return "--baseline", strategy
    described = run("strategy", "show", "mlp-small", path, "--baseline", strategy)
    described["consistency"]["scheduler"]["batch_us"] = BATCH_US
    file = os.path.join(os.path.dirname(path), strategy + ".json")
    with open(file, "w") as f:
        json.dump(described, f)
    return "--strategy", file


def trial(path, strategy, seed):
    which = option(path, strategy)
    expected = run("simulate", "mlp-small", path, *which, "--seed", str(seed), "--seeds", "1")
    iterations = round(SECONDS * 1e6 / expected["in_weather"]["mean_us"])
    return run("trial", "mlp-small", path, *which, "--seed", str(seed), "--iterations",
               str(min(max(iterations, LEAST), MOST)))


def main():
    strategies = (sys.argv[1] if len(sys.argv) > 1 else STRATEGIES).split(",")
    settings = sys.argv[2].split(",") if len(sys.argv) > 2 else SETTINGS
    errors = {strategy: [] for strategy in strategies}
    print("SETTING  STRATEGY            PREDICTED     MEASURED    ERROR  DELAYS PREDICTED       MEASURED (mean / variance / most / dropped)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cluster.json")
        for setting in settings:
            seed = 1 + SETTINGS.index(setting)
            with open(path, "w") as f:
                json.dump(cluster(setting), f)
            for strategy in strategies:
                result = trial(path, strategy, seed)
                predicted, measured = result["predicted_us"], result["mean_us"]
                errors[strategy].append(abs(predicted / measured - 1))
                both = ("%-22s %s" % (delays(result["predicted_updates"]), delays(result["updates"]))
                        if "updates" in result else "")
                print(("%s    %-18s %7.0f ms   %7.0f ms  %+6.1f%%  %s" % (
                    setting, strategy, predicted / 1e3, measured / 1e3, 100 * (predicted / measured - 1), both)).rstrip(), flush=True)
    print()
    for strategy in strategies:
        print("%-18s median error %4.1f%%, largest %4.1f%%, of %d" % (
            strategy, 100 * statistics.median(errors[strategy]), 100 * max(errors[strategy]), len(errors[strategy])))
    every = sorted(sum(errors.values(), []))
    print("all                median error %4.1f%%, 90%% below %4.1f%%, of %d" % (
        100 * statistics.median(every), 100 * every[int(0.9 * len(every))], len(every)))


if __name__ == "__main__":
    main()
