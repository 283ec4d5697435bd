"""Clients of several services that share a dataset: services.py SESSION CLIENTS LOG URL...

Each client asks for a trial and tells its result, every request to the next service. A request that got no answer, or
503, goes to the next one under the same key. Each acknowledged result is a line of LOG: number, attempt, time. Exits
with 1, and says why, when a lease was given twice, when an answer was unexpected, or when the session does not end."""
import itertools
import json
import random
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

session, clients, log, urls = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "w"), sys.argv[4:]
deadline = time.time() + 60
lock = threading.Lock()
given, wrong, waits = set(), [], []


def ask(turn, path, body):
    """The answer to a POST: status and JSON."""
    data, key, began = json.dumps(body).encode(), uuid.uuid4().hex, time.time()
    while time.time() < deadline:
        url = f"{urls[next(turn) % len(urls)]}/api/v1/sessions/{session}/{path}"
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as answer:
                waits.append(time.time() - began)
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as problem:
            text = problem.read()
            if problem.code != 503:
                return problem.code, json.loads(text)
            if not problem.headers["Retry-After"]:
                return 503, "no Retry-After"
        except OSError:
            pass
        time.sleep(random.uniform(0.02, 0.2))
    return 0, f"no answer to {path}"


def one_trial(turn, me, trial):
    number, attempt = trial["number"], trial["attempt"]
    with lock:
        if (number, attempt) in given:
            wrong.append(f"trial {number}, attempt {attempt}, was given twice")
        given.add((number, attempt))
    time.sleep(random.uniform(0, 0.2))
    us = 1000 + number + random.random()
    body = {"client": me, "attempt": attempt, "iterations_us": [us] * trial["iterations"]}
    status, answer = ask(turn, f"trials/{number}:complete", body)
    with lock:
        if status == 200:
            log.write(f"{number} {attempt} {us:.6f}\n")
            log.flush()
        else:
            wrong.append(f"trial {number}: {status} {answer}")


def client(i):
    turn = itertools.count(i)
    while time.time() < deadline and not wrong:
        status, answer = ask(turn, "trials:suggest", {"client": f"c{i}", "lease_s": 30})
        if (status == 409 and "is done" in answer["detail"]) or (status == 200 and answer["next"] == "over"):
            return
        if status != 200:
            wrong.append(f"suggest: {status} {answer}")
        elif answer["trials"]:
            one_trial(turn, f"c{i}", answer["trials"][0])
        else:
            time.sleep(0.2)
    wrong.append(f"client {i} did not see the end")


threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
waits.sort()
print(f"# {len(waits)} answers, the slowest after {waits[-1] if waits else 0:.2f} s")
sys.exit("\n".join(wrong[:5]) if wrong else 0)
