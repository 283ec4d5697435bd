"""Names that nobody means well, through every way in, and looked for at every way out. Terminals obey escapes and marks that
turn text round, spreadsheets obey cells that begin with =, paths lead elsewhere, and what looks like an id takes another's
place. In: bodies, imports, first lines. Out: tables, errors, pages, CSV and the log. faults(): what came out."""
import csv
import json
import os
import random
import subprocess
import urllib.parse

import service
from service import GONE, PROGRAM, Service, run

NAMES = ["esc\x1b[31m", "osc\x1b]0;owned\x07", "two\r\nlines", "c1\u009b31m", "turned\u202egpj.exe", "isolated\u2066x\u2069", "nul\0x", "del\x7f",
         "=cmd|' /C calc'!A0", "+1+1", "@SUM(1)", "-2+3", "../../pwned", "/etc/passwd", "f" * 64, "<script>alert(1)</script>", "-oProxyCommand=x",
         "%s%n", 'a,"b"', "line\u2028end", "x" * 3000]
TURNING = set(map(chr, [*range(0x202a, 0x202f), *range(0x2066, 0x206a), 0x200e, 0x200f, 0x061c]))
TABLES = [["dataset", "query"], ["dataset", "sessions"], ["dataset", "check"], ["dataset", "query", "--order", "number"]]
SERVER_TABLES = [["models", "list"], ["clusters", "list"], ["sessions", "list"], ["dataset", "query"]]


def unsafe(text):
    """The first thing of a text that a terminal would obey, or None."""
    for at, c in enumerate(text):
        if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or c in TURNING:
            return f"U+{ord(c):04X} in {text[max(0, at - 30):at + 10]!r}"
    return None


def formula(text):
    """The first cell of a CSV that a spreadsheet would obey, or None."""
    for row in csv.reader(text.splitlines()):
        for cell in row:
            if cell[:1] and cell[0] in "=+-@\t\r":
                try:
                    float(cell)
                except ValueError:
                    return f"the cell {cell[:40]!r}"
    return None


class Trial:
    def __init__(self, shown):
        self.faults, self.rng, self.shown = [], random.Random(1), shown

    def hold(self, where, text, is_csv=False):
        text = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
        why = unsafe(text.replace("\r\n", "\n") if is_csv else text) or (formula(text) if is_csv else None)
        if why:
            self.faults.append(f"{where}: {why}")

    def command(self, *arguments, folder=None):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, check=False, timeout=120, cwd=folder)
        words = " ".join(arguments[:2])
        if done.returncode < 0:
            self.faults.append(f"{words}: signal {-done.returncode}")
        self.hold(f"what {words} prints", done.stdout, "csv" in arguments)
        self.hold(f"the errors of {words}", done.stderr)
        return done


# ---- through a service ----

def put(site, path, body, faults):
    status, answer = site.ask("POST", path, body)
    if status >= 500:
        faults.append(f"POST {path}: {status} {str(answer)[:100]}")
    return answer if status < 300 else None


def put_names(site, name, trial, session):
    """Wherever a body takes a word."""
    f = trial.faults
    made = put(site, "/api/v1/models", {**service.MODEL, "name": name}, f)
    variables = [{**v, "name": name if i == 0 else v["name"]} for i, v in enumerate(service.MODEL["variables"])]
    put(site, "/api/v1/models", {**service.MODEL, "name": "v", "variables": variables,
                                 "layers": [{**layer, "name": name, "variables": [v["name"]]} for layer, v in zip(service.MODEL["layers"], variables)]}, f)
    put(site, "/api/v1/clusters", {**service.CLUSTER, "name": name}, f)
    put(site, "/api/v1/clusters", {**service.CLUSTER, "name": "n", "nodes": [{**service.CLUSTER["nodes"][0], "name": name}]}, f)
    if made:
        put(site, "/api/v1/sessions", {"model": made["id"], "cluster": "four", "ranker": "none", "budget": {"trials": 1}}, f)
    record = {"model": "toy", "cluster": "four", "strategy": site.strategy, "proposer": "wfbp", "runner": "lab", "iterations_us": [9]}
    for part in ({"proposer": name}, {"runner": name}, {"uid": name}, {"environment_details": {name: name}}, {"reason": name, "state": "failed"}):
        body = {**record, **part}
        if "reason" in part:
            del body["iterations_us"]
        put(site, "/api/v1/records:batchCreate", {"records": [body]}, f)
    put(site, "/api/v1/rankers", {"kind": "linear", "name": name}, f)
    offer = put(site, session + "/trials:suggest", {"client": name}, f) or put(site, session + "/trials:suggest", {"client": "c"}, f)
    for t in (offer or {"trials": ()})["trials"]:
        put(site, f"{session}/trials/{t['number']}:fail", {"client": name, "attempt": t["attempt"], "reason": name}, f)
        put(site, f"{session}/trials/{t['number']}:fail", {"client": "c", "attempt": t["attempt"], "reason": name}, f)


def ask_strangely(site, name):
    """First lines and headers of such bytes, of which the log tells."""
    raw = name.encode("utf-8").replace(b"\r\n", b"\r")
    for text in (raw + b" /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /" + raw + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % urllib.parse.quote(raw).encode(),
                 b"GET /healthz HTTP/1.1\r\nHost: " + raw + b"\r\nX-Forwarded-For: " + raw + b"\r\n\r\n"):
        try:
            connection = site.raw(text, timeout=2)
            connection.shutdown(1)
            connection.recv(1000)
            connection.close()
        except GONE:
            pass


def look_everywhere(site, trial, session):
    page = session.replace("/api/v1", "")
    for path in ("/", "/models", "/clusters", "/dataset", page, page + "/whole", page + "/live", f"/strategies/{site.strategy}?model=toy&cluster=four",
                 "/dataset?filter=" + urllib.parse.quote("reason ~ '\x1b'"), "/api/v1/records?page_size=1000&format=csv", session + "/export?format=csv"):
        status, text = site.ask("GET", path, headers={"Accept": "text/html"})
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        trial.hold(path, text, "csv" in path)
        if status >= 500:
            trial.faults.append(f"GET {path}: {status}")
        if b"<script>alert" in text and "csv" not in path:
            trial.faults.append(f"{path}: a script of a name's")
    url = f"http://127.0.0.1:{site.port}"
    for table in SERVER_TABLES:
        trial.command(*table, "--server", url)
    for name in trial.rng.sample(NAMES, trial.shown):
        if "\0" not in name:
            trial.command("models", "show", name, "--server", url)
            trial.command("sessions", "show", name, "--server", url)


def through_a_service(trial):
    site = Service(dataset="names.db", log="names.err").start()
    session = site.open_session(budget={"trials": 1000}, ranker="none")
    site.strategy = site.ask("POST", "/api/v1/strategies", {"model": "toy", "cluster": "four", "baseline": "wfbp"})[1]["id"]
    before = site.ask("GET", "/api/v1/models/toy")[1]
    for name in NAMES:
        put_names(site, name, trial, session)
        ask_strangely(site, name)
    look_everywhere(site, trial, session)
    trial.faults += [] if site.ask("GET", "/api/v1/models/toy")[1] == before else ["another model is called toy"]
    if not site.alive() or site.stop() != 0:
        trial.faults.append(f"the service ended with {site.process.returncode}")
    with open(site.log, "rb") as log:
        trial.hold("the log", log.read())
    for table in TABLES:
        trial.command(*table, "--dataset", "names.db")
    checked = trial.command("dataset", "check", "--dataset", "names.db")
    if checked.returncode:
        trial.faults.append(f"the service's dataset fails its check: {checked.stdout[-300:] + checked.stderr[-300:]}")
    trial.command("dataset", "export", "--format", "csv", "--dataset", "names.db")


# ---- through a file ----

def lines_with(lines, name):
    """The export with this name in one place after another."""
    for i, line in enumerate(lines):
        content = json.loads(line)
        for key, value in content.items():
            if isinstance(value, str) and key not in ("schema", "created", "started", "ended", "recorded", "id"):
                yield key, lines[:i] + [json.dumps({**content, key: name})] + lines[i + 1:]
    for whole in ("session", "uid"):  # a name that others of the file refer to
        values = {json.loads(line).get(whole) or (json.loads(line).get("id") if "session/1" in line else None) for line in lines}
        for value in sorted(filter(None, values))[:1]:
            yield whole, [line.replace(json.dumps(value), json.dumps(name)) for line in lines]


def exported():
    site = Service(dataset="file.db").start()
    session = site.open_session(budget={"trials": 2}, ranker="none")
    for _ in range(2):
        trial = site.ask("POST", session + "/trials:suggest", {"client": "c1"})[1]["trials"][0]
        verb, what = ("complete", {"iterations_us": [9000, 9001]}) if trial["number"] == 1 else ("fail", {"reason": "it broke"})
        site.ask("POST", f"{session}/trials/{trial['number']}:{verb}", {"client": "c1", "attempt": 1, **what})
    site.stop()
    return run("dataset", "export", "--dataset", "file.db", "--references", "--iterations").stdout.splitlines()


def through_a_file(trial, most):
    """`most` imports, drawn from all."""
    lines = exported()
    cases = [(key, name, text) for name in NAMES for key, text in lines_with(lines, name)]
    os.makedirs("inner/inner", exist_ok=True)
    before = set(os.listdir(".")) | set(os.listdir("inner"))
    for n, (key, name, text) in enumerate(trial.rng.sample(cases, min(most, len(cases)))):
        with open("inner/inner/in.jsonl", "w", encoding="utf-8") as file:
            file.write("\n".join(text) + "\n")
        dataset = f"i{n}.db"
        if trial.command("dataset", "import", "in.jsonl", "--dataset", dataset, folder="inner/inner").returncode == 0:
            for table in TABLES:
                trial.command(*table, "--dataset", dataset, folder="inner/inner")
            trial.command("dataset", "export", "--format", "csv", "--dataset", dataset, folder="inner/inner")
            if key == "session" and "\0" not in name:
                trial.command("report", name, "--dataset", dataset, folder="inner/inner")
    made = (set(os.listdir(".")) | set(os.listdir("inner"))) - before
    trial.faults += [f"written outside its folder: {sorted(made)}"] if made else []


def faults(short=False):
    """What came out that should not have."""
    trial = Trial(4 if short else len(NAMES))
    through_a_file(trial, 12 if short else 200)
    through_a_service(trial)
    return list(dict.fromkeys(trial.faults))
