#!/usr/bin/python3
"""Optuna's samplers on the same pools as the search table: trials until within 2% of a pool's best.

    EVALUATE_POOLS=pools.json evaluate DATASET search    writes the pools
    optuna_peer.py pools.json [SECONDS]                  plays them

A sampler suggests a point of the unit cube of knobs; the nearest strategy that is not yet tried is its trial, as for the
other methods with points, and the sampler is told that strategy's time at the point it suggested. 20 seeds a domain, at
most 100 trials a play. Samplers after SECONDS (150) are left out, by name. Without optuna: a message, and exit 0.
"""
import json
import math
import statistics
import sys
import time

SEEDS, TRIALS, NEAR = 20, 100, 1.02


def nearest(rows, taken, x):
    return min((i for i in range(len(rows)) if i not in taken), key=lambda i: math.dist(rows[i], x))


def play(optuna, sampler, domain):
    rows, times = domain["rows"], domain["us"]
    goal = min(times) * NEAR
    study = optuna.create_study(sampler=sampler)
    taken = set()
    while len(taken) < min(TRIALS, len(rows)):
        trial = study.ask()
        x = [trial.suggest_float(f"x{k}", 0, 1) for k in range(len(rows[0]))]
        pick = nearest(rows, taken, x)
        taken.add(pick)
        if times[pick] <= goal:
            return len(taken)
        study.tell(trial, math.log(times[pick]))
    return math.inf


def samplers(optuna):
    s = optuna.samplers
    return [("random", lambda seed: s.RandomSampler(seed=seed)),
            ("QMC", lambda seed: s.QMCSampler(seed=seed, scramble=True)),
            ("TPE", lambda seed: s.TPESampler(seed=seed)),
            ("TPE, multivariate", lambda seed: s.TPESampler(seed=seed, multivariate=True)),
            ("NSGA-II", lambda seed: s.NSGAIISampler(seed=seed, population_size=10)),
            ("CMA-ES", lambda seed: s.CmaEsSampler(seed=seed))]


def words(trials):
    return f">{TRIALS}" if math.isinf(trials) else f"{trials:g}"


def print_row(name, by_domain, seconds):
    every = [t for domain in by_domain for t in domain]
    cells = [words(statistics.median_low(domain)) for domain in by_domain]
    print(f"{'Optuna ' + name:<24}{words(statistics.median_low(every)):>9}  "
          + "".join(f"{c:>18}" for c in cells) + f"{seconds:>9.0f} s", flush=True)


def main():
    try:
        import optuna
    except ImportError:
        print("Optuna is not installed (Debian: python3-optuna): its samplers are left out.")
        return
    import warnings
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with open(sys.argv[1], encoding="utf-8") as f:
        domains = json.load(f)["domains"]
    end = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 150)
    print(f"Optuna {optuna.__version__} on the same pools and knobs: median trials until within 2%, {SEEDS} seeds, "
          f"{len(domains)} domains.\n")
    print(f"{'sampler':<24}{'within 2%':>9}  " + "".join(f"{d['name']:>18}" for d in domains) + f"{'took':>11}")
    for name, make in samplers(optuna):
        start = time.monotonic()
        if start > end:
            print(f"Optuna {name}: left out, the time is up")
            continue
        try:
            by_domain = [[play(optuna, make(seed), d) for seed in range(1, SEEDS + 1)] for d in domains]
        except ImportError as missing:
            print(f"Optuna {name}: left out, {missing}")
            continue
        print_row(name, by_domain, time.monotonic() - start)


main()
