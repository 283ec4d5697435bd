"""The Python client against a service, /llms.txt as a program reads it, and what empty answers say."""
import ast
import contextlib
import http.server
import inspect
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings

import guide
import schema
import syncopate_client
from service import CLUSTER, ROOT, Service, free_port, make_token, report, run
from syncopate_client import Client, ServiceError

CLIENT = f"{ROOT}/interop/client/syncopate_client.py"
SITE = Service(dataset="site.db").start()
MODEL = {"schema": "syncopate.model/1", "name": "toy", "variables": [{"name": v, "shape": [256, 256]} for v in "ab"],
         "layers": [{"name": v, "forward_us": 2000, "backward_us": 4000, "variables": [v]} for v in "ab"]}
TIMES = [21000, 20500, 20800, 20700]


def client(**options):
    return Client(f"http://127.0.0.1:{SITE.port}", "", **options)


def opened(service, **options):
    service.put_model(MODEL)
    service.put_cluster(CLUSTER)
    return service.open_session("toy", "four", **{"final_rounds": 0, **options})


def refusal(call):
    try:
        call()
    except ServiceError as error:
        return error
    raise AssertionError("nothing was refused")


# ---- the client ----

class Wire(threading.Thread):
    """Between a client and the service: of the answers number 3, 7, 11, ... only a half arrives."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener, self.n, self.lost = socket.create_server(("127.0.0.1", 0)), 0, []
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            with connection, socket.create_connection(("127.0.0.1", SITE.port)) as onward:
                head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                while length and len(body) < int(length[1]):
                    body += connection.recv(1 << 16)
                onward.sendall(head + b"\r\n\r\n" + body)
                answer = b"".join(iter(lambda: onward.recv(1 << 16), b""))
                self.n += 1
                if self.n % 4 == 3:
                    self.lost.append(head.split(b" ")[1].decode().rsplit(":")[-1])
                    answer = answer[:len(answer) // 2]
                connection.sendall(answer)


def a_session_is_run_though_answers_are_lost():
    wire = Wire()
    session, told = opened(Client(f"http://127.0.0.1:{wire.port}", "", name="job"), trials=12, seed=3), []
    while trial := session.ask(lease_s=600):
        assert trial.lease_s == 600 and trial.strategy["schema"] == "syncopate.strategy/1", trial
        assert trial.heartbeat() is False and trial.report(TIMES[:2]) in (False, True)
        told.append(trial.number)
        if trial.number == 2:
            trial.fail("out of memory", infeasible=True)
        else:
            trial.tell([us + 100 * trial.number for us in TIMES], runner="mine")
    rows, best = session.trials(iterations=True), session.best()
    assert told == [row["number"] for row in rows] and len(told) >= 12, (told, len(rows))
    assert [row["state"] for row in rows] == ["infeasible" if n == 2 else "complete" for n in told], rows
    assert {row["client"] for row in rows} == {"job"}, rows
    assert rows[0]["iterations_us"] == [us + 100 for us in TIMES], rows[0]
    assert best["best"]["measured_us"] == min(row["median_us"] for row in rows if row["state"] == "complete"), best
    info = session.wait(5)
    assert info["state"] == "done" and info["trials"] == len(told) and info["complete"] == len(told) - 1, info
    assert session.ask() is None and session.ask_many(4) == [] and len(client().rows("/api/v1/sessions")) == 1
    assert {"suggest", "complete"} <= set(wire.lost) and len(wire.lost) >= 12, wire.lost
    assert session.outcome()["strategy"] == session.export(), "two answers"
    assert session.trials()[0].keys() >= {"uid", "model", "strategy"}


def advice_and_predictions_know_memory():
    service = client()
    service.put_model(MODEL)
    service.put_cluster(CLUSTER)
    advice = service.advise("toy", "four", memory_bytes=[1, 2**40])
    rows = {c["id"]: c for c in advice["candidates"]}
    assert [a["id"] for a in advice["answers"]] == [None, advice["candidates"][0]["id"]], advice["answers"]
    assert "memory_bytes" not in service.advise("toy", "four")["answers"][-1]
    assert refusal(lambda: service.advise("toy", "four", memory_bytes=range(1, 10))).code == "invalid"
    one, = [c for c in rows.values() if c["strategy"] == "pytorch-ddp"]
    peak = one["memory"]["peak_bytes"]
    for asked, fits in (({"memory": True}, True), ({"memory_bytes": peak}, True), ({"memory_bytes": peak - 1}, False)):
        row, = service.predict("toy", "four", baselines=["pytorch-ddp"], **asked)["predictions"]
        assert row["memory"]["peak_bytes"] == peak and row["memory"]["fits"] == fits, (asked, row)
        assert row["iteration_us"] == one["iteration_us"], (row, one)


def a_trial_told_twice_counts_once():
    session = opened(client(), trials=3)
    trial = session.ask()
    first = trial.tell(TIMES)
    assert trial.tell(TIMES) == first and session.info()["complete"] == 1 and len(session.trials()) == 1
    assert refusal(lambda: trial.tell([1, 2, 3])).code == "idempotency-mismatch"
    assert session.trials()[0]["median_us"] == first["median_us"]
    key = "same script"
    same = [client().open_session("toy", "four", trials=2, key=key.replace(" ", "-")).id for _ in range(2)]
    assert same[0] == same[1], same
    assert session.cancel()["state"] == "cancelled" and session.ask() is None


def a_refusal_is_an_error_with_the_services_line():
    service = client()
    absent = refusal(lambda: service.session("20990101-000000-0000").info())
    assert (absent.status, absent.code, absent.again_s) == (404, "not-found", None), absent
    assert "no session" in str(absent), absent
    wrong = refusal(lambda: service.put_model({**MODEL, "layrs": []}))
    assert wrong.status == 422 and wrong.errors[0]["pointer"] == "/layrs" and len(wrong.request_id) == 16, wrong
    assert wrong.detail in str(wrong) and "layrs" in wrong.detail
    assert refusal(opened(service, trials=2).best).code == "not-found"
    assert refusal(lambda: service.predicted_us("toy", "four", baseline="none")).status in (404, 422)
    start = time.monotonic()
    gone = refusal(lambda: Client(f"http://127.0.0.1:{free_port()}", "", patience_s=0.3).query())
    assert (gone.status, gone.code) == (0, "unreachable") and "does not answer" in str(gone), gone
    assert time.monotonic() - start < 2
    try:
        Client("127.0.0.1:8642", "")
        raise AssertionError("an address without a scheme")
    except ValueError as error:
        assert "http" in str(error)


class Scripted(http.server.BaseHTTPRequestHandler):
    """Answers of (status, headers, body) from a list, and what was asked."""
    script, asked = [], []

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.asked.append((time.monotonic(), self.headers["Idempotency-Key"], self.headers["Authorization"]))
        status, headers, body = self.script.pop(0)
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def a_busy_service_is_asked_again_when_it_says():
    server = http.server.HTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = Client(f"http://127.0.0.1:{server.server_port}", "secret", patience_s=4)
    busy, good = b'{"code":"overloaded","detail":"too many requests wait"}', b'{"id":"m"}'
    Scripted.script[:] = [(503, {"Retry-After": "1"}, busy), (502, {}, b"<html>"), (200, {}, good)]
    assert service.put_model({})["id"] == "m"
    times, keys, tokens = zip(*Scripted.asked)
    assert len(keys) == 3 and len(set(keys)) == 1 and keys[0] and set(tokens) == {"Bearer secret"}, Scripted.asked
    assert times[1] - times[0] >= 1 and times[2] - times[1] < 1, times
    for status, headers, code, asked in ((429, {"Retry-After": "3600"}, "overloaded", 1), (409, {}, "overloaded", 1),
                                         (307, {"Location": "/elsewhere"}, "overloaded", 1)):
        Scripted.asked.clear()
        Scripted.script[:] = [(status, headers, busy)] * 9
        error = refusal(lambda: service.put_model({}))
        assert (error.status, error.code, len(Scripted.asked)) == (status, code, asked), (error, Scripted.asked)
    Scripted.script[:] = [(404, {}, b"<html>nginx")]
    assert "404" in str(refusal(lambda: service.put_model({})))
    server.shutdown()


def pages_are_followed_and_batches_made():
    service = client()
    service.put_model(MODEL)
    service.put_cluster(CLUSTER)
    strategy = service.put_strategy("toy", "four", baseline="horovod")["id"]
    ended = {"strategy": strategy, "proposer": "p", "runner": "r"}
    records = [{"uid": f"page-{i}", "model": "toy", "cluster": "four", **ended, "iterations_us": [10000 + i]}
               for i in range(2300)]
    added = service.add_records(iter(records), shared=["red"])
    assert added == (2300, 0, [r["uid"] for r in records]), added[:2]
    assert service.add_records(records[:1001])[:2] == (0, 1001)
    rows = service.query("uid ~ page-", order="measured")
    assert [row["uid"] for row in rows] == added.uids and rows.note == "", len(rows)
    assert [row["median_us"] for row in service.query("uid ~ page-", order="-measured", limit=1500)] == \
        [10000 + i for i in range(2299, 799, -1)]
    assert service.query("uid ~ page-", limit=0) == []
    sizes = [len(batch) for batch in syncopate_client._batches({"text": "x" * (3 << 20)} for _ in range(5))]
    assert sizes == [2, 2, 1], sizes
    session = opened(service, trials=5)
    assert session.add_trials([{**ended, "uid": f"ended-{i}", "iterations_us": TIMES} for i in (1, 2)]).added == 2
    assert {row["uid"] for row in session.trials()} >= {"ended-1", "ended-2"}


def sessions_take_all_that_the_service_does():
    document = client()._get("/openapi.json")["components"]["schemas"]
    budget = set(document["NewSession"]["properties"]["budget"]["properties"])
    wanted = set(document["NewSession"]["properties"]) - {"budget"} | budget | {"key"}
    assert set(inspect.signature(Client.open_session).parameters) - {"self"} == wanted
    predicted = set(inspect.signature(Client.predict).parameters) - {"self", "options"}
    assert predicted <= set(document["PredictionRequest"]["properties"]), predicted
    session = opened(client(), trials=4, time_us=1e9, gap=0.01, mode="ask", seed=7, allow_lossy=True, trial_us=1e6,
                     memory_bytes=10**9, export_to=["pytorch-ddp"], accept=["groups"], shared="team")
    info = session.info()
    assert info["budget"] == {"trials": 4, "time_us": 1e9, "gap": 0.01}, info
    assert info["seed"] == 7 and info["shared"] == "team", info
    assert session.pause()["state"] == "paused" and session.resume()["state"] == "running"
    assert session.stop()["state"] == "stopped"


def tokens_are_sent_and_their_loss_is_told():
    secret = make_token("t", "run", "red", "closed.db")
    site = Service(dataset="closed.db", opened=False).start()
    url = f"http://127.0.0.1:{site.port}"
    assert Client(url, secret).put_model(MODEL)["name"] == "toy"
    os.environ["SYNCOPATE_SERVER"], os.environ["SYNCOPATE_TOKEN"] = url, secret
    try:
        assert Client().rows("/api/v1/models")[0]["name"] == "toy"
    finally:
        del os.environ["SYNCOPATE_SERVER"], os.environ["SYNCOPATE_TOKEN"]
    for token in ("", "guessed"):
        error = refusal(lambda: Client(url, token).rows("/api/v1/models"))
        assert (error.status, error.code) == (401, "unauthorized"), error
    site.stop()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for url in ("http://127.0.0.1:1", "http://localhost", "https://there.example", "http://there.example"):
            Client(url, "secret")
    assert [str(w.message) for w in told] == ["the token goes to http://there.example unencrypted; use https"], told


def its_page_runs_as_it_stands():
    os.symlink(ROOT + "/examples", "examples")
    site = Service(dataset="page.db").start()
    os.environ["SYNCOPATE_SERVER"] = f"http://127.0.0.1:{site.port}"
    with open(f"{ROOT}/docs/python-client.md", encoding="utf-8") as file:
        fences, names, n = list(guide.FENCE.finditer(file.read())), {}, 0
    for fence, after in zip(fences, fences[1:]):
        if fence.group(1) != "python":
            continue
        printed, n = io.StringIO(), n + 1
        with contextlib.redirect_stdout(printed):
            exec(compile(fence.group(2), "python-client.md", "exec"), names)  # pylint: disable=exec-used
        wanted = after.group(2) if after.group(1) == "text" else ""
        assert printed.getvalue() == wanted, (wanted, printed.getvalue())
    assert n >= 7, n
    del os.environ["SYNCOPATE_SERVER"]
    site.stop()


def its_types_are_right():
    with open(CLIENT, encoding="utf-8") as file:
        tree = ast.parse(file.read(), feature_version=(3, 9))
    nodes = list(ast.walk(tree))
    modules = {name.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for name in node.names}
    modules |= {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert modules <= set(sys.stdlib_module_names) and "threading" not in modules, modules
    if not shutil.which("mypy"):
        return "the file is plain Python 3.9; its types need mypy"
    done = subprocess.run(["mypy", "--strict", "--cache-dir=/dev/null", CLIENT], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]
    return None


# ---- /llms.txt ----

class Program:
    """Knows /llms.txt and /openapi.json of a service, and nothing else."""

    def __init__(self, site):
        self.site, self.values, self.n = site, {}, 0
        self.document = site.ask("GET", "/openapi.json")[1]
        self.text = site.ask("GET", "/llms.txt")[1].decode()
        self.steps = {}
        for paragraph in re.split(r"^(?=\d\. |## )", self.text, flags=re.M):
            self.steps[paragraph.split("\n")[0][:2] if paragraph[0] != "#" else paragraph.split("\n")[0]] = \
                re.findall(r"^    (GET|POST) (\S+)(?: (\{.*\}))?$", paragraph, re.M)

    def operation(self, method, path):
        for pattern, methods in self.document["paths"].items():
            form = re.sub(r"\\\{\w+\\\}", "[^/:]+", re.escape(pattern))
            if method.lower() in methods and re.fullmatch(form, path.split("?")[0]):
                return methods[method.lower()]
        raise AssertionError(f"{method} {path} is not described")

    def send(self, line, also=None):
        """Fill in what earlier answers had, hold request and answer against the description."""
        method, path, body = (re.sub(r"\{(\w+)\}", lambda m: str(self.values[m[1]]), part) for part in line)
        operation, self.n = self.operation(method, path), self.n + 1
        keyed = any(p["name"] == "Idempotency-Key" for p in operation["parameters"])
        if body:
            content = operation["requestBody"]["content"]
            schema.check(json.loads(body), content["application/json"]["schema"], self.document)
        status, answer = self.site.ask(method, path, json.loads(body) if body else None,
                                       {"Idempotency-Key": f"llms-{self.n}"} if keyed else {})
        assert status in (200, 201, also), (line, status, answer)
        media = "application/json" if status < 400 else "application/problem+json"
        schema.check(answer, operation["responses"][str(status)]["content"][media]["schema"], self.document)
        return answer


def a_program_drives_a_session_by_llms_txt():
    site = Service(dataset="llms.db").start()
    program = Program(site)
    for line in program.steps["1."]:
        program.send(line)
    program.values["session"] = program.send(program.steps["2."][0])["id"]
    heartbeat, complete, fail = program.steps["4."]
    told = 0
    while (offer := program.send(program.steps["3."][0], also=409)).get("next", "over") != "over":
        assert offer["next"] == "trials" and told < 50, offer
        program.values |= {name: offer["trials"][0][name] for name in ("number", "attempt")}
        program.send(heartbeat)
        told += program.send(fail if told == 1 else complete)["state"] in ("complete", "failed")
    answers = [program.send(line) for line in program.steps["5."]]
    assert answers[0]["best"]["measured_us"] == 20800 and answers[1]["schema"] == "syncopate.strategy/1", answers[:2]
    assert len(answers[2]["items"]) == told >= 5, (told, len(answers[2]["items"]))
    predict, put, *others = program.steps["## Without a session"]
    assert [p["strategy"]["name"] for p in program.send(predict)["predictions"]], predict
    program.values["strategy"] = program.send(put)["id"]
    rest = [program.send(line) for line in others]
    assert rest[0]["added"] == 1 and rest[1]["next_page_token"] and len(rest[2]["items"]) == 1, rest
    sent = sum(len(lines) for lines in program.steps.values())
    assert sent == len(re.findall(r"^    \S", program.text, re.M)) == 15, sent
    site.stop()


def what_llms_txt_says_besides_is_true():
    status, _ = SITE.ask("GET", "/llms.txt")
    connection = SITE.connect()
    connection.request("GET", "/llms.txt")
    answer = connection.getresponse()
    text, tag = answer.read().decode(), answer.getheader("ETag")
    assert status == 200 and answer.getheader("Content-Type") == "text/plain; charset=utf-8", status
    assert len(text) < 6000, len(text)
    connection.request("GET", "/llms.txt", headers={"If-None-Match": tag})
    assert connection.getresponse().status == 304
    assert text.startswith("# syncopate\n\n> "), text[:60]
    for path in re.findall(r"\]\((/[^)]*)\)|`GET (/\w+)`", text):
        assert SITE.ask("GET", path[0] or path[1])[0] == 200, path
    document = SITE.ask("GET", "/openapi.json")[1]
    roles = {operation["x-role"] for methods in document["paths"].values() for operation in methods.values()}
    assert {"read", "submit", "run"} <= roles and "NewSession" in document["components"]["schemas"]


# ---- empty answers ----

def every_empty_list_says_why():
    site = Service(dataset="empty.db").start()
    document = site.ask("GET", "/openapi.json")[1]
    lists = {path: methods["get"] for path, methods in document["paths"].items() if "get" in methods and "List" in
             str(methods["get"]["responses"]["200"].get("content", {}).get("application/json", ""))}
    assert len(lists) == 8, list(lists)
    filters = {"name": "none", "state": "failed", "team": "none", "filter": "model = none"}
    notes = {}

    def look(path, operation, query=""):
        status, answer = site.ask("GET", path + query)
        assert status == 200 and answer["items"] == [] and answer["next_page_token"] == "", (path, query, answer)
        schema.check(answer, operation["responses"]["200"]["content"]["application/json"]["schema"], document)
        assert len(answer.get("note", "")) > 20, (path, query, answer)
        return answer["note"]

    for path, operation in lists.items():
        if "{" in path:
            continue
        notes[path] = look(path, operation)
        for name in filters.keys() & {p["name"] for p in operation["parameters"]}:
            fits = look(path, operation, f"?{name}={filters[name].replace(' ', '%20')}")
            assert fits != notes[path] and name in fits, (path, fits)
    for note in notes.values():
        for path in re.findall(r"POST (/api/\S+?)(?=[,;)\s]|$)", note):
            assert "post" in document["paths"][path], note
    assert sum("POST /api/" in note for note in notes.values()) == len(notes) == 7, notes
    site.open_session(budget={"trials": 2})
    href = site.open_session(budget={"trials": 2})
    trials = lists["/api/v1/sessions/{session}/trials"]
    assert ":suggest" in look(href + "/trials", trials)
    for text in ("csv", "jsonl"):
        for path in ("/api/v1/records", href + "/export"):
            connection = site.connect()
            connection.request("GET", f"{path}?format={text}")
            answer = connection.getresponse()
            assert len(answer.getheader("Note") or "") > 20, (path, text)
            answer.read()
            connection.close()
    site.ask("POST", href + ":cancel")
    assert "state" in look(href + "/trials", trials)
    assert "note" not in site.ask("GET", "/api/v1/models")[1]
    site.stop()


def every_empty_table_says_why():
    def told(*arguments, needs):
        done = run(*arguments)
        assert needs in done.stderr, (arguments, done.stdout, done.stderr)
        assert "{" not in done.stdout, done.stdout
        return done.stderr

    site = Service(dataset="none.db").start()
    there = ["--server", f"http://127.0.0.1:{site.port}"]
    here = ["--dataset", "none.db"]
    for where in (here, there):
        for rest in (["--json"], ["--model", "none", "--state", "failed"]):
            told("dataset", "query", *rest, *where, needs="no trials yet")
        told("dataset", "export", *where, needs="no trials yet")
    for rest in (["--json"], ["--state", "done"]):
        told("sessions", "list", *rest, *there, needs="open one: syncopate")
    for kind, rest in (("models", []), ("clusters", ["--json"])):
        told(kind, "list", *rest, *there, needs=f"add one: syncopate {kind} add")
    told("dataset", "sessions", *here, needs="syncopate tune")
    for kind in ("model", "cluster", "strategy"):
        told("dataset", "show", kind, *here, needs="the dataset has none yet")
    told("serve", "token", "list", *here, needs="make one: syncopate serve token create")
    service = Client(f"http://127.0.0.1:{site.port}", "")
    opened(service, trials=2).ask().tell(TIMES)
    for where in (here, there):
        for rest in (["--model", "toy", "--state", "failed"], ["--filter", "model = none", "--json"]):
            told("dataset", "query", *rest, *where, needs="leave out a condition")
        assert "condition" not in run("dataset", "query", *where).stderr
    site.stop()


report([a_session_is_run_though_answers_are_lost, advice_and_predictions_know_memory, a_trial_told_twice_counts_once,
        a_refusal_is_an_error_with_the_services_line, a_busy_service_is_asked_again_when_it_says,
        pages_are_followed_and_batches_made, sessions_take_all_that_the_service_does,
        tokens_are_sent_and_their_loss_is_told, its_page_runs_as_it_stands, its_types_are_right,
        a_program_drives_a_session_by_llms_txt, what_llms_txt_says_besides_is_true, every_empty_list_says_why,
        every_empty_table_says_why])
SITE.stop()
