#!/usr/bin/env python3
"""What `make failover` prints: the server of updates is killed at a random moment, and its replica goes on.

Each of KILLS (20) runs is a trial of ROUNDS (320) rounds in which workers learn softmax with momentum 0.5 (RUNNER, the lab:
needs root). Strategies take turns. SEED draws after which round, and how many milliseconds later, SIGKILL comes. A line
that does not hold is printed with WRONG, and ends the program with 1.
"""
import json
import os
import random
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, os.environ.get("OUT", "build/release"), "bin")
SYNCOPATE = os.path.join(BIN, "syncopate")
WORKER = os.path.join(BIN, "syncopate-worker-mpi")
MODEL = os.path.join(ROOT, "tests/cli/mlp-tiny.json")
CLUSTER, SERVER_RANK, WORKERS = "lab-4x1g", 1, 4
SCHEDULER = {"batch_us": 10000}
REPLICA = {"node": "n2", "divergence": 6, "momentum": 0.5}
STRATEGIES = {
    "early": {"kind": "asynchronous", "delay_bound": 8, "scheduler": SCHEDULER, "replica": REPLICA},
    "due": {"kind": "asynchronous", "delay_bound": 8, "scheduler": SCHEDULER, "replica": REPLICA | {"copies": "due"}},
    "sums": {"kind": "asynchronous", "delay_bound": 8, "scheduler": SCHEDULER | {"aggregators": ["n3", "n4"]},
             "replica": REPLICA},
    "stale": {"kind": "stale_synchronous", "staleness": 2, "scheduler": SCHEDULER, "replica": REPLICA},
    "synchronous": {"kind": "synchronous", "scheduler": SCHEDULER, "replica": REPLICA},
}


def strategy(name, folder):
    """The file of a strategy with this consistency, made in the folder."""
    shown = subprocess.run([SYNCOPATE, "strategy", "show", MODEL, CLUSTER, "--baseline", "async-ps", "--json"],
                           capture_output=True, text=True, check=True)
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as file:
        json.dump(json.loads(shown.stdout) | {"name": name, "consistency": STRATEGIES[name]}, file)
    return path


def run(path, runner, rounds, after=0, ms=0.0, stop_ms=None, victim=SERVER_RANK, fails=False):
    """A trial whose server or another victim dies, or stops for stop_ms, so many ms after so many rounds (0: never); or why
    it failed, where it must."""
    flag = f"{path}.{os.getpid()}.flag"
    env = dict(os.environ, KILL_WORKER=WORKER, SERVER_RANK=str(SERVER_RANK), KILL_RANK=str(victim), KILL_FLAG=flag,
               KILL_ROUNDS=str(after or -1), KILL_MS=str(ms))
    if os.path.exists(flag):
        os.remove(flag)
    if stop_ms is not None:
        env["STOP_MS"] = str(stop_ms)
    worker = os.path.join(ROOT, "tests/failover/worker.py")
    words = [SYNCOPATE, "trial", MODEL, CLUSTER, "--strategy", path, "--runner", runner, "--iterations", str(rounds),
             "--warmup", "2", "--worker", worker, "--train", "softmax", "--momentum", "0.5", "--log", "error", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as trial:
        try:
            out, why = trial.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            trial.terminate()
            trial.communicate()
            raise SystemExit(f"WRONG {path}: the trial hangs after {after} rounds and {ms:.2f} ms")
    if fails:
        return why.strip() if trial.returncode == 1 else f"exit {trial.returncode}"
    if trial.returncode:
        raise SystemExit(f"WRONG {path}: exit {trial.returncode} after {after} rounds and {ms:.2f} ms: {why.strip()}")
    return json.loads(out)


def wrong(trial, rounds, died=True):
    """Why the trial is not as it must be; "" when it is."""
    updates, takeover = trial["updates"], trial.get("takeover")
    if updates["useful"] != rounds * WORKERS or updates["late"] or len(trial["iterations_us"]) != rounds:
        return f"{updates['useful']} useful updates, {updates['late']} late, {len(trial['iterations_us'])} rounds"
    if not died:
        bound = REPLICA["divergence"] * (1 + 1e-9)
        right = takeover is None and 0 < updates["copies"] and updates["divergence_most"] <= bound
        return "" if right else f"takeover {takeover}, {updates['copies']} copies, {updates['divergence_most']}"
    if not takeover:
        return "nobody took over"
    losses = trial["training"]["losses"]
    if losses[-1]["update"] < 0.9 * rounds * WORKERS or losses != sorted(losses, key=lambda loss: loss["update"]):
        return f"losses of {losses[0]['update']} to {losses[-1]['update']} updates, or twice"
    if takeover["divergence"] > takeover["bound"] or takeover["distance"] > takeover["divergence"] + 1e-9:
        return f"distance {takeover['distance']}, divergence {takeover['divergence']}, bound {takeover['bound']}"
    ahead = takeover["replica_updates"] > takeover["server_updates"]
    if not ahead and takeover["compared"] == 0:
        return "no model was compared"
    return "" if trial["training"]["last"] < trial["training"]["first"] else "nothing was learned"


def main():
    import tempfile
    kills, rounds = int(os.environ.get("KILLS", 20)), int(os.environ.get("ROUNDS", 320))
    seed, runner = int(os.environ.get("SEED", 1)), os.environ.get("RUNNER", "lab")
    random.seed(seed)
    bad = 0
    print(f"{'STRATEGY':13}{'KILLED IN':11}{'SERVER':8}{'REPLICA':9}{'DISTANCE':10}{'AT MOST':9}{'BOUND':7}"
          f"{'RECOVERED':11}{'EQUAL':7}{'SERVES AFTER':14}{'LOSS':8}")
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: strategy(name, folder) for name in STRATEGIES}
        for i in range(kills):
            name = list(STRATEGIES)[i % len(STRATEGIES)]
            after, ms = random.randint(1, rounds - 20), random.uniform(0, 8)
            trial = run(paths[name], runner, rounds, after, ms)
            t, why = trial.get("takeover"), wrong(trial, rounds)
            if t:
                serves = f"{(t['silent_us'] + t['took_us']) / 1e3:.0f} ms"
                print(f"{name:13}{after:<11}{t['server_updates']:<8}{t['replica_updates']:<9}{t['distance']:<10.2f}"
                      f"{t['divergence']:<9.2f}{t['bound']:<7}{t['recovered']:<11}{t['compared']:<7}{serves:14}"
                      f"{trial['training']['last']:<8.4f}", "WRONG: " + why if why else "", flush=True)
            else:
                print(name, after, "WRONG:", why, flush=True)
            bad += bool(why)
    print(f"{kills - bad} of {kills} kills as they must be (seed {seed})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
