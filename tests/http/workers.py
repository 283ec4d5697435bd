"""Who works at the sessions of services and may be killed at any moment: Client speaks HTTP, in a process of its own, and
Agent is `syncopate agent`. Each has a file in which it notes what it was given and what was acknowledged."""
import json
import multiprocessing
import os
import random
import re
import subprocess
import time
import uuid

import service

JOB = """sleep 0.1
for i in $(seq $((SYNCOPATE_TRIAL_WARMUP + SYNCOPATE_TRIAL_ITERATIONS))); do echo "{\\"iteration\\":$i,\\"time_us\\":9000}"; done
"""


class Worker:
    """The life of one; begun again it has another name. `lease_s`: how long it may be silent."""

    def __init__(self, name, sites, session, lease_s):
        self.name, self.sites, self.session, self.lease_s, self.lives, self.notes = name, [*sites], session, lease_s, 0, []

    def start(self):
        self.lives += 1
        self.life = f"{self.name}.{self.lives}"
        self.notes.append(self.life + ".notes")
        self.process = self.launch(random.Random(self.life), self.notes[-1])

    def kill(self):
        self.process.kill()
        self.wait(20)

    def trouble(self, seconds):
        """Why it did not end well within so long; None: it did."""
        status = self.wait(seconds)
        if status == 0:
            return None
        with open(self.notes[-1], encoding="utf-8", errors="replace") as file:
            return self.life, status, file.read()[-300:]


class Client(Worker):
    """Takes trials until its session is over. It asks the first of the services, sometimes another, and the next one under
    the same key where it gets no answer."""

    def wait(self, seconds):
        self.process.join(seconds)
        return self.process.exitcode

    def launch(self, rng, notes):
        process = multiprocessing.get_context("fork").Process(target=self.run, args=(rng, notes), daemon=True)
        process.start()
        return process

    def run(self, rng, notes):
        self.random, self.file = rng, os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        while not self.turn():
            pass

    def note(self, *what):
        os.write(self.file, json.dumps(what).encode() + b"\n")

    def post(self, verb, body):
        sent = time.time()
        status, answer = service.insist(self.sites, "POST", f"{self.session}/trials{verb}", {"client": self.life, **body},
                                        {"Idempotency-Key": uuid.uuid4().hex}, self.random.uniform(0.02, 0.3))
        self.note("answered", time.time() - sent)
        if self.random.random() < 0.2:
            self.random.shuffle(self.sites)
        return status, answer, sent

    def turn(self):
        """True: the session is over."""
        status, answer, sent = self.post(":suggest", {"count": self.random.choice((1, 1, 2)), "lease_s": self.lease_s})
        if status == 409 and "is done" in answer["detail"]:
            return True
        assert status == 200, (status, answer)
        for trial in answer["trials"]:
            self.note("lease", self.session, trial["number"], trial["attempt"], self.life, sent, time.time())
        for trial in answer["trials"]:
            self.serve(trial)
        if answer["next"] == "wait":
            time.sleep(0.2)
        return answer["next"] == "over"

    def serve(self, trial):
        who, number = {"attempt": trial["attempt"]}, trial["number"]
        time.sleep(self.random.uniform(0.02, 0.5))
        if self.random.random() < 0.3:
            status, _, sent = self.post(f"/{number}:heartbeat", {**who, "lease_s": self.lease_s})
            if status == 200:
                self.note("lease", self.session, number, trial["attempt"], self.life, sent, time.time())
        times = [round(self.random.uniform(9000, 30000), 3) for _ in range(3)]
        self.note("told", self.session, number, times)
        status, answer, _ = self.post(f"/{number}:complete", {**who, "iterations_us": times})
        assert status in (200, 409), (status, answer)
        self.note("acknowledged" if status == 200 else "stale", self.session, number, times)


class Agent(Worker):
    """Its job tells one time only, so that its notes say of a trial that it was taken, not with which times."""

    def wait(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def launch(self, rng, notes):
        with open("job.sh", "w", encoding="ascii") as file:
            file.write(JOB)
        site = self.sites[0]
        with open(notes, "w", encoding="utf-8") as file:
            return subprocess.Popen(
                [service.PROGRAM, "agent", "--server", f"http://127.0.0.1:{site.port}", "--session",
                 self.session.rsplit("/", 1)[1], "--command", "sh " + os.path.abspath("job.sh"), "--lease",
                 f"{self.lease_s}s", "--name", self.life], stderr=file, stdin=subprocess.DEVNULL, env=site.environment)


def notes_of(workers):
    """All notes: [(kind, ...)]."""
    found = []
    for worker in workers:
        for name in filter(os.path.exists, worker.notes):
            with open(name, encoding="utf-8") as file:
                text = file.read()
            if isinstance(worker, Client):
                found += map(json.loads, text.splitlines())
            else:
                refused = set(re.findall(r"trial (\d+) was not taken", text))
                taken = set(re.findall(r"trial (\d+): .* over \d+ iterations", text)) - refused
                found += [("acknowledged", worker.session, int(number), None) for number in taken]
    return found
