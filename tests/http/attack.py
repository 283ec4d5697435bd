"""The service under attack. Each row of ATTACKS is a service of its own with the same small dataset, which attackers.py
attacks from a process of its own, while a witness of another team looks at records, a session, a strategy and a page, and
puts records. In the middle of it SIGTERM. Then: did the service end, in time and well; did the witness wait; how much memory
was used; is everything there that was acknowledged; was any answer a 5xx that no description has?

SECONDS (600) are for all rows together. With SHORT=1 every row has SHORT_S seconds, several run at once, and limits of time
are wide, so that a slow day fails nothing; a crash, a lost record, a status and memory are judged as strictly.
ATTACKS="name name" runs these alone. SYNCOPATE_TEST_SEED gives other requests. Needs OUT and ROOT."""
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import attackers
import service
from service import GONE, Service, bearer, check_dataset, make_token, run

BUDGET_MIB = 1024  # what a service of any of these rows may have in memory
WAIT_S, DRAIN_S, EXIT_S = 1.0, 5, 2.0  # the witness's longest wait; --drain; what ending may take beyond it
SHORT = os.environ.get("SHORT", "0") != "0"
SECONDS, SHORT_S = float(os.environ.get("SECONDS", "600")), 0.8
WAIT_SHORT_S, DRAIN_SHORT_S, EXIT_SHORT_S = 8.0, 1, 15.0
TOO_MUCH_MIB = 3 * BUDGET_MIB  # then it is killed, for the machine's sake
SEED = int(os.environ.get("SYNCOPATE_TEST_SEED", "20261122"))


@dataclass
class Attack:
    name: str  # of a function of attackers.py
    limit: str  # what the attacker meets first
    role: str  # what it needs: none, read, submit, run
    clients: int = 4
    waits: bool = True  # whether the witness's wait is judged
    wait_s: float = WAIT_S  # the longest that it may be


ATTACKS = [
    Attack("malformed", "refusal of bad framing", "none"),
    Attack("endless", "16 KiB of target and headers", "none"),
    Attack("bodies", "what a route's body must be; its size", "run"),
    Attack("slow", "deadlines of headers and body", "none"),
    Attack("deaf", "connections of an address; what may wait to be sent", "read"),
    Attack("idle", "connections of an address", "none", 1),
    Attack("idle_everywhere", "connections of all; short deadlines when crowded", "none", 1),
    Attack("sign_in", "size of a body by route; budget of all bodies", "none", 2),
    Attack("predictions", "cost of a prediction; a team's share of workers", "read"),
    Attack("domains", "a team's share of workers; what is kept of models in place", "read"),
    Attack("timelines", "cost of a prediction; timelines in one", "read"),
    Attack("suggestions", "workers of one session", "run", 8, waits=False),
    Attack("sessions", "sessions of a team", "run", waits=False),
    Attack("pages", "a team's share of workers; what a page may simulate", "read"),
    Attack("filters", "time of a query", "read"),
    Attack("exports", "items of a page", "read"),
    Attack("repeats", "writes of a token", "run", waits=False),
]


# ---- the dataset that all rows begin with ----

def put_records(site, n, team):
    for batch in range(0, n, 500):
        rows = [{"uid": f"{team}-{batch + i}", "model": "toy", "cluster": "four", "strategy": site.strategy, "proposer": "wfbp", "runner": "lab",
                 "iterations_us": [9000 + i, 9100 + i]} for i in range(500)]
        assert site.ask("POST", "/api/v1/records:batchCreate", {"records": rows})[0] == 201


def put_all(site, secrets):
    """What exists, by the names that attackers.py and the witness use."""
    rng, things = random.Random(1), {"toy": service.MODEL}
    site.headers = bearer(secrets["runner"])
    things["session"] = site.open_session(budget={"trials": 1000}, ranker="none")
    things["page"] = things["session"].replace("/api/v1", "")
    things["number"] = 1
    large = {"model": attackers.large_model(rng, 100), "cluster": attackers.large_cluster(rng, 16)}
    things["large session"] = site.open_session(**large, budget={"trials": 100000}, ranker="none")
    things["large model"], things["large cluster"] = large["model"]["name"], large["cluster"]["name"]
    for name, kind, baseline in (("strategy", "", "wfbp"), ("large strategy", "large ", "horovod"), ("other strategy", "large ", "byteps")):
        wanted = {k: large[k]["name"] if kind else {"model": "toy", "cluster": "four"}[k] for k in large} | {"baseline": baseline}
        status, made = site.ask("POST", "/api/v1/strategies", wanted, timeout=120)
        assert status == 201, made
        things[name] = made["id"]
    site.strategy = things["strategy"]
    put_records(site, 1000 if SHORT else 20000, "mallory")
    for _ in range(3):
        trial = site.ask("POST", things["session"] + "/trials:suggest", {"client": "c1"})[1]["trials"][0]
        done = {"client": "c1", "attempt": 1, "iterations_us": [9000, 9001]}
        assert site.ask("POST", f"{things['session']}/trials/{trial['number']}:complete", done)[0] == 200
    things["model"], things["cluster"] = "toy", "four"
    site.headers = bearer(secrets["witness"])
    things["witness session"] = site.open_session(budget={"trials": 10}, ranker="none")
    status, made = site.ask("POST", "/api/v1/strategies", {"model": "toy", "cluster": "four", "baseline": "horovod"})
    assert status in (200, 201), made
    things["witness strategy"] = made["id"]
    things["uid"] = "mallory-1"
    return things


def make_dataset():
    """d.db with all that rows use: (secrets, things)."""
    secrets = {name: make_token(name, role, team, "d.db", "--requests-per-s", "0") for name, role, team in (
        ("reader", "read", "mallory"), ("runner", "run", "mallory"), ("witness", "run", "vision"))}
    site = Service(opened=False).start()
    things = put_all(site, secrets)
    assert site.stop() == 0, site.tail()
    return secrets, things


# ---- who looks on ----

class Witness(threading.Thread):
    """Another team's: looks several times a second, on new connections and on one that stays."""

    def __init__(self, site, secret, things):
        super().__init__(daemon=True)
        self.site, self.headers = site, bearer(secret)
        self.paths = ["/api/v1/records?page_size=10", things["witness session"], "/api/v1/strategies/" + things["witness strategy"], "/models",
                      "/sessions/" + things["witness session"].rsplit("/", 1)[1]]
        self.waits, self.asking, self.refused, self.over = {}, None, [], threading.Event()

    def look(self, connection, path):
        self.asking = (path, time.monotonic())
        connection.request("GET", path, headers=self.headers)
        answer = connection.getresponse()
        answer.read()
        if not self.over.is_set():
            self.waits[path] = max(self.waits.get(path, 0), time.monotonic() - self.asking[1])
            self.refused += [f"{path}: {answer.status}"] if answer.status != 200 else []
        self.asking = None

    def run(self):
        kept, turn = self.site.connect(60), 0
        while not self.over.is_set():
            fresh = self.site.connect(60) if turn % 2 else kept
            try:
                self.look(fresh, self.paths[turn // 2 % len(self.paths)])
            except GONE as error:
                if not self.over.is_set():
                    self.refused.append(f"{self.asking[0]}: {error!r}")
                self.asking = None
                kept.close()
                time.sleep(0.2)
            if turn % 2:
                fresh.close()
            turn += 1
            time.sleep(0.05)

    def end(self):
        """The longest wait until now, of what is still waited for, too: (seconds, of what)."""
        self.over.set()
        waits, asking = dict(self.waits), self.asking
        if asking:
            waits[asking[0]] = max(waits.get(asking[0], 0), time.monotonic() - asking[1])
        worst = max(waits, key=waits.get, default="nothing")
        return waits.get(worst, 0), worst


class Writer(threading.Thread):
    """Puts a record at a time and remembers which were acknowledged."""

    def __init__(self, site, secret, things):
        super().__init__(daemon=True)
        self.site, self.headers, self.strategy = site, bearer(secret), things["witness strategy"]
        self.acknowledged, self.over = [], threading.Event()

    def run(self):
        while not self.over.is_set():
            uid = f"kept-{len(self.acknowledged)}-{random.getrandbits(32)}"
            record = {"uid": uid, "model": "toy", "cluster": "four", "strategy": self.strategy, "proposer": "wfbp", "runner": "lab", "iterations_us": [9]}
            try:
                if self.site.ask("POST", "/api/v1/records:batchCreate", {"records": [record]}, self.headers, timeout=60)[0] == 201:
                    self.acknowledged.append(uid)
            except GONE:
                pass
            self.over.wait(0.1)


def peak_mib(pid):
    """The most that it ever had in memory; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


# ---- a row ----

@dataclass
class Seen:
    peak_mib: float = 0
    wait_s: float = 0
    waited_for: str = ""
    exit_s: float = 0
    status: object = None
    book: dict = field(default_factory=dict)
    refused: list = field(default_factory=list)
    lost: list = field(default_factory=list)
    kept: int = 0
    faults: list = field(default_factory=list)


def watch(site, seconds, seen):
    until = time.monotonic() + seconds
    while time.monotonic() < until and site.alive():
        seen.peak_mib = max(seen.peak_mib, peak_mib(site.process.pid))
        if seen.peak_mib > TOO_MUCH_MIB:
            return
        time.sleep(0.05)


def end(site, seen):
    """SIGTERM while the attack goes on."""
    began, patience = time.monotonic(), 20 if SHORT else 60
    site.process.send_signal(signal.SIGTERM)
    while site.alive() and time.monotonic() - began < patience:
        seen.peak_mib = max(seen.peak_mib, peak_mib(site.process.pid))
        if seen.peak_mib > TOO_MUCH_MIB:
            break
        time.sleep(0.01)
    seen.exit_s = time.monotonic() - began
    if site.alive():
        seen.faults.append(f"not ended {patience} s after SIGTERM" if seen.peak_mib <= TOO_MUCH_MIB else f"killed at {seen.peak_mib:.0f} MiB")
        site.kill()
    seen.status = site.process.returncode


def attack_and_watch(site, attack, seconds, secrets, things, seen):
    aim = {"port": site.port, "tokens": secrets, "things": things, "seed": f"{SEED} {attack.name}"}
    witness, writer = Witness(site, secrets["witness"], things), Writer(site, secrets["witness"], things)
    attacker = subprocess.Popen([sys.executable, attackers.__file__, attack.name, str(attack.clients)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
    try:
        attacker.stdin.write(json.dumps(aim) + "\n")
        attacker.stdin.flush()
        assert attacker.stdout.readline() == "ready\n"
        witness.start()
        writer.start()
        watch(site, seconds, seen)
        died = not site.alive()
        seen.wait_s, seen.waited_for = witness.end()
        writer.over.set()
        end(site, seen)
        seen.faults += [f"it died: {seen.status}"] if died else []
        seen.book = json.loads(attacker.communicate(timeout=30)[0])
    finally:
        attacker.kill()
        attacker.wait()
    writer.join(70)
    seen.refused, seen.kept = witness.refused, len(writer.acknowledged)
    return writer.acknowledged


def recorded(dataset):
    return {json.loads(line)["uid"] for line in run("dataset", "export", "--dataset", dataset).stdout.splitlines()}


def row(attack, seconds, secrets, things):
    """What came of one attack."""
    dataset, seen = attack.name + ".db", Seen()
    for tail in ("", ".tokens"):
        shutil.copy("d.db" + tail, dataset + tail)
    site = Service("--drain", f"{DRAIN_SHORT_S if SHORT else DRAIN_S}s", dataset=dataset, log=attack.name + ".err", opened=False)
    acknowledged = attack_and_watch(site.start(), attack, seconds, secrets, things, seen)
    seen.lost = sorted(set(acknowledged) - recorded(dataset))
    try:
        check_dataset(dataset)
    except AssertionError as error:
        seen.faults.append(f"dataset: {error}")
    with open(site.log, encoding="utf-8", errors="replace") as log:
        text = log.read()
    seen.faults += ["a sanitizer's report"] if "Sanitizer" in text or "runtime error:" in text else []
    seen.faults += ["control characters in the log"] if any(ord(c) < 32 and c not in "\n\t" or 0x7f <= ord(c) < 0xa0 for c in text) else []
    return seen


def verdicts(attack, seen):
    """What is wrong with it; nothing is well."""
    drain, beyond = (DRAIN_SHORT_S, EXIT_SHORT_S) if SHORT else (DRAIN_S, EXIT_S)
    wait = max(attack.wait_s, WAIT_SHORT_S) if SHORT else attack.wait_s
    wrong = list(seen.faults)
    wrong += [f"it ended with {seen.status}"] if seen.status != 0 and not seen.faults else []
    wrong += [f"{len(seen.lost)} acknowledged records are lost, {seen.lost[0]}"] if seen.lost else []
    wrong += [f"answers: {seen.book['bad']}"] if seen.book.get("bad") else []
    wrong += [f"{seen.peak_mib:.0f} MiB"] if seen.peak_mib > BUDGET_MIB else []
    wrong += [f"ending took {seen.exit_s:.1f} s"] if seen.exit_s > drain + beyond else []
    wrong += [f"the witness waited {seen.wait_s:.1f} s for {seen.waited_for}"] if attack.waits and seen.wait_s > wait else []
    wrong += [f"the witness was refused: {seen.refused[0]} ({len(seen.refused)} times)"] if attack.waits and seen.refused else []
    wrong += ["the attacker came to nothing"] if not seen.book.get("statuses") and not seen.faults and attack.name not in HOLDERS else []
    wrong += ["the witness came to nothing"] if not seen.kept and attack.waits and not SHORT else []
    return wrong


HOLDERS = ("slow", "deaf", "idle", "idle_everywhere", "sign_in")  # nothing need come back while connections are held


def line_of(attack, seen, wrong):
    statuses = ", ".join(f"{k}: {v}" for k, v in sorted(seen.book.get("statuses", {}).items()))
    return (f"# {attack.name:16} {attack.role:6} {attack.limit:58} {seen.wait_s:6.2f} {seen.peak_mib:6.0f} {seen.exit_s:6.2f}  "
            f"{'; '.join(wrong)[:160] or 'withstood'}  [{statuses}]")


def say(name, wrong):
    """One line at once, since several threads say theirs: print() writes a line's end by itself."""
    sys.stdout.write(f"not ok withstands {name}: {wrong}\n" if wrong else f"ok withstands {name}\n")
    sys.stdout.flush()


def one(attack, seconds, secrets, things):
    try:
        seen = row(attack, seconds, secrets, things)
        wrong = verdicts(attack, seen)
    except Exception as error:  # pylint: disable=broad-except
        seen, wrong = Seen(), [repr(error)]
    say(attack.name, "; ".join(wrong).replace("\n", " ")[:900])
    return line_of(attack, seen, wrong)


# ---- rows that are something of their own ----

def names():
    """Hostile names; in a folder of its own, since it looks whether anything is written elsewhere."""
    program = "import hostile, json, sys; print(json.dumps(hostile.faults(bool(int(sys.argv[1])))))"
    os.makedirs("names", exist_ok=True)
    done = subprocess.run([sys.executable, "-c", program, str(int(SHORT))], capture_output=True, text=True, check=False, cwd="names")
    wrong = json.loads(done.stdout) if done.returncode == 0 else [done.stderr[-500:]]
    said = "; ".join(wrong).replace("\n", " ")
    say("names", f"{len(wrong)} of {said[:900]}" if wrong else "")
    return f"# {'names':16} {'any':6} {'rules of names; what is printed is made safe':58} {'':20}  {said[:160] or 'withstood'}"


def scripts():
    """SIGKILL among mixed writes; full disks and clocks that jump. `make test` has them anyway."""
    lines = []
    for name, program, limit in (("kills", "kill.py", "nothing: what is acknowledged is synced"), ("faults", "faults.py", "the disk, the clock")):
        os.makedirs(name, exist_ok=True)
        done = subprocess.run([sys.executable, f"{service.ROOT}/tests/http/{program}"], capture_output=True, text=True, check=False, cwd=name)
        said = [line for line in done.stdout.splitlines() if line.startswith(("not ok ", "ok ", "skip "))]
        wrong = [line for line in said if line.startswith("not ok ")] or ([] if done.returncode == 0 and said else [done.stderr[-300:]])
        say(name, repr(wrong[0][:500]) if wrong else "")
        lines.append(f"# {name:16} {'-':6} {limit:58} {'':20}  {wrong[0][:100] if wrong else 'withstood'}")
    return lines


def main():
    wanted = os.environ.get("ATTACKS", "").split()
    rows = [a for a in ATTACKS if not wanted or a.name in wanted]
    more, named = not SHORT and not wanted, not wanted or "names" in wanted
    print(f"1..{len(rows) + named + 2 * more}\n# seed {SEED}", flush=True)
    secrets, things = make_dataset()
    seconds = SHORT_S if SHORT else max(3.0, SECONDS * (0.65 if more else 1) / len(rows) - DRAIN_S)
    with concurrent.futures.ThreadPoolExecutor(4 if SHORT else 1) as pool:
        first = pool.submit(names) if named else None
        lines = list(pool.map(lambda attack: one(attack, seconds, secrets, things), rows))
        lines += [first.result()] if named else []
    lines += scripts() if more else []
    print(f"# {'attack':16} {'role':6} {'what it meets':58} {'wait s':>6} {'MiB':>6} {'exit s':>6}  verdict")
    print("\n".join(lines), flush=True)


main()
