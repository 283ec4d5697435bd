"""SIGKILL at KILLS (8) random moments, one in four soon after another: of one service on a file, or of SERVICES (3) on one
PostgreSQL, of PostgreSQL, and of the CLIENTS (8) that work on a session each 25 of them, one in five of them an agent; the
services run one more session themselves. What was acknowledged stays, nothing counts twice, no lease is given while
another has it, everybody finishes. Needs OUT and ROOT."""
import collections
import json
import os
import random
import shutil
import statistics
import time

import service
from postgres import Postgres, children
from service import Service, check_dataset, report, run
from workers import Agent, Client, notes_of

KILLS, CLIENTS = int(os.environ.get("KILLS", "8")), int(os.environ.get("CLIENTS", "8"))
SERVICES = int(os.environ.get("SERVICES", "1"))
FEW = CLIENTS <= 8
LEASE_S = 10 if FEW else 60  # where many wait for one service, a trial must not be taken away because of that
SEED = int(os.environ.get("SYNCOPATE_TEST_SEED", "20261121"))
MARK = "SYNCOPATE_FAULT_TEST=" + os.getcwd()


def recorded(dataset, sessions):
    """Complete trials of the sessions: {(session, number): times}, from the dataset alone."""
    found, known = {}, {href.rsplit("/", 1)[1]: href for href in sessions}
    for line in run("dataset", "export", "--dataset", dataset, "--iterations").stdout.splitlines():
        trial = json.loads(line)
        if trial["session"] in known and trial["state"] == "complete":
            key = known[trial["session"]], trial["number"]
            assert key not in found, key
            found[key] = trial["iterations_us"]
    return found


def check_kept(notes, kept, later=None):
    """How many results were acknowledged. Each is there, once, with its times; what is there was told by somebody. While
    workers work on, `notes` were read before `kept` and `later` after it."""
    acknowledged, told = {}, collections.defaultdict(list)
    for kind, *note in later or notes:
        if kind == "told":
            told[note[0], note[1]].append(note[2])
    for kind, *note in notes:
        if kind == "acknowledged":
            session, number, times = note
            assert (session, number) not in acknowledged, ("acknowledged twice", note)
            acknowledged[session, number] = times
            assert (session, number) in kept, ("lost", note)
            assert times is None or kept[session, number] == times, (note, kept[session, number])
    for key, times in kept.items():
        assert times in told[key] or times[0] == 9000, ("nobody told", key, times)
    return len(acknowledged)


def check_leases(notes):
    """How many leases clients had. None was given while another of the same trial ran."""
    leases = collections.defaultdict(dict)
    for kind, *note in notes:
        if kind == "lease":
            session, number, attempt, client, sent, got = note
            held = leases[session, number].setdefault(attempt, [client, sent, got])
            assert held[0] == client, ("given twice", note, held)
            held[1], held[2] = max(held[1], sent), min(held[2], got)
    for trial, attempts in leases.items():
        for attempt in attempts:
            for earlier in filter(lambda a, attempt=attempt: a < attempt, attempts):
                assert attempts[attempt][2] >= attempts[earlier][1] + LEASE_S, ("given too early", trial, attempts)
    return sum(map(len, leases.values()))


def check_events(events):
    """The numbers of the complete trials. Each was taken, and lost or ended, in turn."""
    holder, done = {}, []
    for kind, content in events:
        number = content.get("number")
        if kind == "trial-taken":
            assert number not in holder and number not in done, ("given twice", content, holder.get(number))
            holder[number] = content["attempt"]
        elif kind in ("trial-ended", "trial-returned", "trial-lost"):
            assert holder.pop(number, None) == content["attempt"], (kind, content)
            if kind == "trial-ended":
                assert content["state"] == "complete", content
                done.append(number)
    return done


def events_of(href, site):
    """[(kind, content)] of a session that has ended."""
    connection = site.connect(20)
    connection.request("GET", href + "/events")
    answer, events, kind = connection.getresponse(), [], None
    while True:
        line = answer.readline().decode().strip()
        if line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            events.append((kind, json.loads(line[5:])))
            if kind == "session" and events[-1][1]["state"] not in ("running", "paused"):
                connection.close()
                return events


class Storm:
    """Everybody who can be killed, and how often who was."""

    def __init__(self, database, sites, workers, rng):
        self.database, self.sites, self.workers, self.random = database, sites, workers, rng
        self.killed, self.deck = collections.Counter(), []

    def kill(self):
        """SIGKILL of somebody, who is returned."""
        if not self.deck:
            self.deck = ["service"] * 3 + ["client or agent"] * (3 if self.database else 1) + ["PostgreSQL"] * bool(self.database)
            self.random.shuffle(self.deck)
        kind = self.deck.pop()
        self.killed[kind] += 1
        if kind != "PostgreSQL":
            victim = self.random.choice(self.sites if kind == "service" else self.workers)
            victim.kill()
            return victim
        self.database.kill(self.random.choice((None, self.random.choice(self.database.parts() or [None]))))
        return self.database

    def round(self, check):
        """One or two are killed; `check` runs when the dataset can be read, before all are up again."""
        time.sleep(self.random.uniform(0.1, 2 if FEW else 1))
        killed = [self.kill()]
        if self.random.random() < 0.25:
            if isinstance(killed[0], Service):
                killed[0].start(wait=False)
            time.sleep(self.random.uniform(0, 0.2))
            killed.append(self.kill())
        if self.database:
            self.database.wait_until_up()
        check()
        for victim in dict.fromkeys(killed):
            if isinstance(victim, Service):
                bring_up(victim)
            elif victim is not self.database:
                victim.start()

    def run(self, kills, check):
        rounds = 0
        while self.killed.total() < kills:
            self.round(check if FEW or rounds % 20 == 0 else lambda: None)
            rounds += 1


def bring_up(site):
    """A service that was killed, or that may have met its database's end as it started: then it has ended, with a line."""
    if site.alive() and site.process.stdout.readline():
        return
    assert site.process.wait(20) in (-9, 1), (site.process.returncode, site.tail())
    site.start()


def let_end(site, href, more):
    """Cut the budget to what was handed out and a few more."""
    for _ in range(100):
        trials = site.insist("GET", href)[1]["trials"]
        status, answer = site.insist("PATCH", href, {"budget": {"trials": trials + more}})
        if status == 200:
            return
        assert status in (409, 422), (status, answer)
    raise AssertionError("its budget cannot be cut")


def wait_for(href, site, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        session = site.insist("GET", href)[1]
        if session["state"] not in ("running", "paused"):
            return session
        time.sleep(0.2)
    raise AssertionError(("it does not end", session))


def stray():
    """Processes that carry our mark in their environment, but for this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if MARK.encode() in file.read() and "syncopate" in os.readlink(f"/proc/{pid}/exe"):
                    found.append(pid)
        except OSError:
            pass
    return found


def own_runner():
    """How the service runs trials here: "lab", "local", or None."""
    if not shutil.which("mpirun"):
        return None
    return "lab" if os.geteuid() == 0 and SERVICES == 1 else "local"


def open_own(site, trials):
    return site.open_session(service.example("models", "mlp-small"), service.example("clusters", "lab-4x1g"), mode="own",
                             budget={"trials": trials}, final_rounds=0, trial_us=300000)


def who_runs(sites, seconds):
    """The service that runs a trial now, and when that was seen."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for site in sites:
            if children(site.process.pid):
                return site, time.monotonic()
    raise AssertionError("nobody runs the session's trials")


def take_over(sites, times):
    """Kill `times` times the service that runs a session: how long until another does, each time."""
    session, took = open_own(sites[0], 1000), []
    for _ in range(times):
        runs, _ = who_runs(sites, 60)
        runs.kill()
        killed = time.monotonic()
        took.append(who_runs([s for s in sites if s is not runs], 60)[1] - killed)
        runs.start()
    status, answer = sites[0].insist("POST", session + ":cancel")
    assert status in (200, 409), answer  # the second try of what was done meets a session that has ended
    return took


def launch(runner):
    """(dataset, PostgreSQL or None, services), or why not."""
    options, database, dataset = [], None, os.path.abspath("d.db")
    if runner:
        with open("launchers.json", "w", encoding="utf-8") as file:
            json.dump({"launchers": [{"cluster": f"{service.ROOT}/examples/clusters/lab-4x1g.json", "runner": runner}]}, file)
        options = ["--launchers", os.path.abspath("launchers.json")]
    if SERVICES > 1:
        os.chmod(".", 0o711)  # the server is another user's
        database = Postgres("server").start()
        if not database.url:
            return database.why
        dataset = database.url + "&options=-csearch_path%3Dteam"
    sites = []
    for i in range(SERVICES):
        os.mkdir(f"service{i}")
        sites.append(Service(*options, dataset=dataset, environment=dict([MARK.split("=", 1)]), folder=f"service{i}").start())
    return dataset, database, sites


def begin_workers(sites, sessions):
    """Those of one session ask one service first, because that is cheaper (docs/operations.md)."""
    workers = []
    for i in range(CLIENTS):
        of, kind = i % len(sessions), Agent if i % 5 == 4 else Client
        workers.append(kind(f"w{i}", sites[of % SERVICES:] + sites[:of % SERVICES], sessions[of], LEASE_S))
        workers[-1].start()
    return workers


def check_end(dataset, notes, kept, events):
    """What all of it came to, in a line."""
    ended = [(href, number) for href, of_it in events.items() for number in check_events(of_it)]
    assert sorted(ended) == sorted(kept), "ends that were told are not those of the dataset"
    acknowledged, leases = check_kept(notes, kept), check_leases(notes)
    check_dataset(dataset)
    assert acknowledged > 0
    waits = sorted(note[1] for note in notes if note[0] == "answered")
    print(f"# {acknowledged} results acknowledged, 0 lost, {len(kept)} kept; {leases} leases, 0 given twice; "
          f"{sum(note[0] == 'stale' for note in notes)} stale; answers after {statistics.median(waits):.2f} s, "
          f"{waits[-1]:.1f} s at most", flush=True)


def nothing_acknowledged_is_lost_when_anything_is_killed():
    rng, runner = random.Random(SEED), own_runner()
    print(f"# seed {SEED}, {KILLS} kills, {CLIENTS} clients, {SERVICES} services, own session: {runner}", flush=True)
    launched = launch(runner)
    if isinstance(launched, str):
        return launched
    dataset, database, sites = launched
    sessions = [sites[0].open_session(budget={"trials": 100000}, seed=(SEED + i) % 1000) for i in range((CLIENTS + 24) // 25)]
    own = runner and open_own(sites[0], 3)
    workers = begin_workers(sites, sessions)
    storm = Storm(database, sites, workers, rng)
    try:
        began = time.monotonic()
        storm.run(KILLS, lambda: (check_dataset(dataset), check_kept(notes_of(workers), recorded(dataset, sessions), notes_of(workers))))
        print(f"# SIGKILL of {dict(storm.killed)} in {time.monotonic() - began:.0f} s", flush=True)
        for href in sessions:
            let_end(sites[0], href, 8)
        troubles = [w.trouble(60 if FEW else 300) for w in workers]
        assert not any(troubles), [t for t in troubles if t][:5]
        for href in sessions + ([own] if own else []):
            ended = wait_for(href, sites[-1], 120)
            assert ended["state"] == "done" and (href != own or ended["complete"] == 3), ended
        events = {href: events_of(href, sites[-1]) for href in sessions}
        if database and own and not FEW:
            took = sorted(take_over(sites, 10))
            print(f"# taken over after {statistics.median(took):.1f} s, {took[-1]:.1f} s at most", flush=True)
    finally:
        for worker in workers:
            worker.kill()
        stopped = [site.stop() for site in sites if site.alive()]
    assert stopped == [0] * SERVICES, stopped
    check_end(dataset, notes_of(workers), recorded(dataset, sessions), events)
    until = time.monotonic() + 10
    while stray() and time.monotonic() < until:
        time.sleep(0.2)
    assert not stray(), stray()
    return None


nothing_acknowledged_is_lost_when_anything_is_killed.__name__ += f"_of_{SERVICES}"
report([nothing_acknowledged_is_lost_when_anything_is_killed])
