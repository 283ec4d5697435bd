"""SIGKILL of the service at KILLS (8) random moments, one in four while it starts, while CLIENTS (8) clients work on a session
each 25 of them and the service runs another: what was acknowledged stays, nothing counts twice, everybody finishes.
Needs OUT and ROOT."""
import json
import os
import random
import threading
import time

import service
from service import Service, check_dataset, report, run

KILLS, CLIENTS = int(os.environ.get("KILLS", "8")), int(os.environ.get("CLIENTS", "8"))
FEW = CLIENTS <= 8
LEASE_S = 5 if FEW else 60  # where many wait for one service, a trial must not be taken away because of that
SEED = int(os.environ.get("SYNCOPATE_TEST_SEED", "20261121"))
MARK = "SYNCOPATE_FAULT_TEST=" + os.getcwd()


class Client(threading.Thread):
    """Takes trials until its session is over. A request that was not answered is sent again under its key."""

    def __init__(self, site, session, index):
        super().__init__(daemon=True)
        self.site, self.session, self.name, self.count = site, session, f"c{index}", 0
        self.random = random.Random(SEED * 100 + index)
        self.acknowledged, self.stale, self.over, self.trouble = [], 0, False, None
        self.give_up = threading.Event()

    def post(self, verb, body):
        self.count += 1
        return self.site.insist("POST", f"{self.session}/trials{verb}", {"client": self.name, **body},
                                {"Idempotency-Key": f"{self.name}-{self.count}"}, self.give_up.is_set,
                                0.05 if FEW else self.random.uniform(0.1, 1))

    def run(self):
        try:
            while not self.over and not self.give_up.is_set():
                self.turn()
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = repr(error)

    def turn(self):
        status, answer = self.post(":suggest", {"count": self.random.choice((1, 1, 2)), "lease_s": LEASE_S})
        if status == 409 and "is done" in answer["detail"]:
            self.over = True
        elif status:
            assert status == 200, (status, answer)
            self.over = answer["next"] == "over"
            for trial in answer["trials"]:
                self.serve(trial)
            if answer["next"] == "wait":
                time.sleep(0.05 if FEW else 0.5)

    def serve(self, trial):
        time.sleep(self.random.uniform(0.02, 0.5))
        who = {"attempt": trial["attempt"]}
        if self.random.random() < 0.3:
            self.post(f"/{trial['number']}:heartbeat", who)
        times = [round(self.random.uniform(9000, 30000), 3) for _ in range(3)]
        status, answer = self.post(f"/{trial['number']}:complete", {**who, "iterations_us": times})
        if status == 200:
            self.acknowledged.append((self.session, trial["number"], times))
        elif status == 409:
            self.stale += 1
        elif status:
            raise AssertionError((status, answer))


def recorded(sessions):
    """Complete trials of the sessions: {(session, number): times}, from the file alone."""
    found, known = {}, {href.rsplit("/", 1)[1]: href for href in sessions}
    for line in run("dataset", "export", "--dataset", "d.db", "--iterations").stdout.splitlines():
        trial = json.loads(line)
        if trial["session"] in known and trial["state"] == "complete":
            key = known[trial["session"]], trial["number"]
            assert key not in found, key
            found[key] = trial["iterations_us"]
    return found


def check_kept(acknowledged, kept):
    for session, number, times in acknowledged:
        assert kept.get((session, number)) == times, (session, number, times, kept.get((session, number)))


def check_acknowledged(clients, sessions):
    kept = recorded(sessions)
    acknowledged = [a for c in clients for a in list(c.acknowledged)]
    assert len({a[:2] for a in acknowledged}) == len(acknowledged), "acknowledged twice"
    check_kept(acknowledged, kept)
    return len(acknowledged), kept


def kill_again_and_again(site, clients, sessions, rng):
    for _ in range(KILLS):
        if rng.random() < 0.25:
            site.kill()
            site.start(wait=False)
            time.sleep(rng.uniform(0, 0.2))
        else:
            time.sleep(rng.uniform(0.1, 2.5))
        before = [a for c in clients for a in list(c.acknowledged)]
        site.kill()
        check_dataset("d.db")
        check_kept(before, recorded(sessions))
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


def ends_of(href, site):
    """The numbers of the trials whose end was told, from the session's events."""
    connection = site.connect(3)
    connection.request("GET", href + "/events")
    answer, ends, kind = connection.getresponse(), [], None
    while True:
        line = answer.readline().decode().strip()
        if line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            content = json.loads(line[5:])
            if kind == "trial-ended":
                ends.append(content["number"])
            if kind == "session" and content["state"] not in ("running", "paused"):
                connection.close()
                return ends


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
    if run("serve", "--help", check=False).returncode or not os.path.exists("/usr/bin/mpirun"):
        return None
    return "lab" if os.geteuid() == 0 else "local"


def nothing_acknowledged_is_lost_when_the_service_is_killed():
    rng, runner, options = random.Random(SEED), own_runner(), []
    print(f"# seed {SEED}, {KILLS} kills, {CLIENTS} clients, own session: {runner}", flush=True)
    if runner:
        with open("launchers.json", "w", encoding="utf-8") as file:
            json.dump({"launchers": [{"cluster": f"{service.ROOT}/examples/clusters/lab-4x1g.json", "runner": runner}]}, file)
        options = ["--launchers", "launchers.json"]
    site = Service(*options, environment=dict([MARK.split("=", 1)])).start()
    sessions = [site.open_session(budget={"trials": 100000}, seed=(SEED + i) % 1000) for i in range((CLIENTS + 24) // 25)]
    own = runner and site.open_session(service.example("models", "mlp-small"), service.example("clusters", "lab-4x1g"),
                                       mode="own", budget={"trials": 3}, final_rounds=0, trial_us=300000)
    clients = [Client(site, sessions[i % len(sessions)], i) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        began = time.monotonic()
        kill_again_and_again(site, clients, sessions, rng)
        print(f"# kills: {time.monotonic() - began:.0f} s", flush=True)
        for href in sessions:
            let_end(site, href, 8)
        for client in clients:
            client.join(60 if FEW else 300)
        assert all(c.over and not c.trouble for c in clients), [(c.name, c.over, c.trouble) for c in clients if not c.over or c.trouble][:8]
        for href in sessions:
            ended = wait_for(href, site, 10)
            assert ended["state"] == "done", ended
        if own:
            ended = wait_for(own, site, 120)
            assert ended["state"] == "done" and ended["complete"] == 3, ended
        ends = [(href, number) for href in sessions for number in ends_of(href, site)]
        assert len(set(ends)) == len(ends), "an end was told twice"
    finally:
        for client in clients:
            client.give_up.set()
        status = site.stop() if site.alive() else None
    assert status == 0, status
    check_dataset("d.db")
    acknowledged, kept = check_acknowledged(clients, sessions)
    assert sorted(ends) == sorted(kept), "ends that were told are not those of the file"
    until = time.monotonic() + 10
    while stray() and time.monotonic() < until:
        time.sleep(0.2)
    assert not stray(), stray()
    print(f"# {acknowledged} completions acknowledged, {len(kept)} kept, {sum(c.stale for c in clients)} stale")
    assert acknowledged == len(kept) and acknowledged > 0


report([nothing_acknowledged_is_lost_when_the_service_is_killed])
