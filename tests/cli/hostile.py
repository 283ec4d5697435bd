"""No command prints a byte that somebody else chose for a terminal.

What is hostile: ESC ]0;x BEL (a window's title), CR and LF (a line that is forged), U+009B (the same as ESC [), U+202E
(text turned around), a byte that is no UTF-8, and =cmd() for spreadsheets. A dataset, files, an honest service on that
dataset and a service of somebody else say it wherever a name, an id, a reason or any other word may stand.

A new command that prints such words is a row of one of the tables below: its name, its words, and SEES where its output
must show that a hostile word came through, so that no row passes because it printed nothing.
"""
import csv
import http.server
import io
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading

PROGRAM = os.path.abspath(os.path.join(os.environ["ROOT"], os.environ["OUT"], "bin/syncopate"))
EVIL = "evil\x1b]0;x\x07\r\nFORGED\x9b31m\u202eend"
FORMULA = "=cmd()"
JSON_EVIL = json.dumps(EVIL, ensure_ascii=False)  # C1 and bidirectional marks raw, as JSON allows
NEVER = [b"\x1b", b"\x07", b"\x7f", b"\xc2\x9b", b"\xe2\x80\xae", b"\nFORGED"]
SEES, CSV, REFUSED, PAGE, ANY = "sees", "csv", "refused", "page", "any"
NEEDLES = {SEES: b"evil", CSV: b"evil", REFUSED: b"; remove it"}  # what the output shows


def run(words, limit_s=100):
    """What waits for others is ended after a while: status 0."""
    process = subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return (0 if limit_s < 100 else "none in time"), out, err
    return process.returncode, out, err


def raw_bytes(data, page=False):
    """What is wrong with these bytes, or nothing. A line end means nothing in a page."""
    wrong = [repr(bad) for bad in NEVER if bad in data and not (page and bad == b"\nFORGED")]
    if re.search(rb"\r(?!\n)", data):
        wrong.append("CR")
    if b"\r\nFORGED" in data or data.startswith(b"FORGED"):
        wrong.append("a line of its own")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        wrong.append(f"no UTF-8 at {error.start}")
    return ", ".join(wrong)


def formulas(text):
    """Cells that a spreadsheet would take for a formula."""
    number = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?$")
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row
            if cell[:1] in tuple("=+-@\t\r") and cell and not number.match(cell)]


def verdict(name, why):
    print(f"not ok {name}: {why}".replace("\n", " ")[:2000] if why else f"ok {name}", flush=True)


def check(name, words, kind=ANY, limit_s=100):
    status, out, err = run(words, limit_s)
    why = raw_bytes(out, kind == PAGE) or raw_bytes(err)
    if status not in (0, 1, 2, 3, 4, 130):
        why = why or f"exit status {status}"
    if kind == CSV:
        found = formulas(out.decode(errors="replace"))
        why = why or (f"formulas: {found}" if found else "")
    if NEEDLES.get(kind, b"") not in out + err:
        why = why or "nothing hostile came through: " + repr((out + err)[:200])
    verdict(name, why and f"{why} in {out[:200]!r} {err[:200]!r}")


# ---- a dataset whose every name is hostile ----

def change(path, *statements):
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(*statement) if isinstance(statement, tuple) else db.execute(statement)
    db.close()


JOB = "for i in 1 2 3 4 5 6 7; do echo \"{\\\"time_us\\\":1$i}\"; done"


def make_dataset():
    status, _, err = run(["tune", "mlp-small", "lab-4x1g", "--command", JOB, "--trials", "4", "--rounds", "0",
                          "--trial-time", "40ms", "--dataset", "d.db"])
    assert status == 0, err
    change("d.db", "PRAGMA journal_mode = DELETE")


def poison(path):
    """The contents stay as they are, so that commands get far with the names beside them."""
    shutil.copy("d.db", path)
    broken = EVIL.encode() + b"\x9b]"  # and no UTF-8
    change(path, "PRAGMA foreign_keys = OFF",
           *[(f"UPDATE {kind} SET name = ?", (EVIL,)) for kind in ("models", "clusters", "strategies", "holdings")],
           ("UPDATE trials SET proposer = ?, runner = ?, client = ?, session = ?", (FORMULA, EVIL, FORMULA, EVIL)),
           ("UPDATE trials SET proposer = ? WHERE number = 1", (EVIL,)),
           ("UPDATE trials SET uid = ? || number, queued = ?, started = ?", (EVIL, EVIL, EVIL)),
           ("UPDATE trials SET state = 'failed', reason = CAST(? AS TEXT), mean_us = NULL, median_us = NULL,"
            " low_us = NULL, high_us = NULL, environment = NULL, n_iterations = NULL WHERE number = 2", (broken,)),
           "DELETE FROM iterations WHERE trial IN (SELECT id FROM trials WHERE state = 'failed')",
           ("UPDATE sessions SET id = ?, reason = CAST(? AS TEXT), started = ?, team = ?", (EVIL, broken, EVIL, EVIL)),
           ("UPDATE environments SET content = ?", (f'{{"host":{JSON_EVIL},"kernel":{JSON_EVIL}}}',)))


def spoil_contents(path):
    """Descriptions that no reader takes."""
    shutil.copy("d.db", path)
    for kind in ("models", "clusters", "strategies"):
        change(path, (f"UPDATE {kind} SET name = ?, content = replace(replace(content, '\"name\":\"',"
                      f" '\"name\":\"' || ?), '\"schema\":\"', '\"schema\":\"' || ?)", (EVIL, "\x9b\u202eevil",
                                                                                   "\x9b\u202eevil")))
    change(path, ("UPDATE sessions SET options = ?", (f'{{"runner":{JSON_EVIL},"job":{{"command":{JSON_EVIL}}}}}',)))


def ids_of(path):
    with sqlite3.connect(path) as db:
        found = {kind[:-1]: db.execute(f"SELECT id FROM {kind}").fetchone()[0]
                 for kind in ("models", "clusters", "strategies")}
        found["session"] = db.execute("SELECT id FROM sessions").fetchone()[0]
    db.close()
    return {"model": found["model"], "cluster": found["cluster"], "strategy": found["strategie"],
            "session": found["session"]}


def dataset_rows(db, ids):
    at = ["--dataset", db]
    session, model, cluster, strategy = ids["session"], ids["model"], ids["cluster"], ids["strategy"]
    return [
        ("query", ["dataset", "query", *at], SEES),
        ("query_json", ["dataset", "query", "--json", *at], SEES),
        ("query_filtered", ["dataset", "query", "--filter", f'model = "{EVIL}"', *at], ANY),
        ("sessions", ["dataset", "sessions", *at], SEES),
        *[(f"show_{kind}s", ["dataset", "show", kind, *at], SEES) for kind in ("model", "cluster", "strategy")],
        *[(f"show_{kind}", ["dataset", "show", kind, ids[kind], *at], ANY) for kind in ("model", "cluster", "strategy")],
        *[(f"show_{kind}_canonical", ["dataset", "show", kind, ids[kind], "--canonical", *at], ANY)
          for kind in ("model", "cluster", "strategy")],
        ("show_by_name", ["dataset", "show", "strategy", EVIL, *at], ANY),
        ("export", ["dataset", "export", *at], SEES),
        ("export_csv", ["dataset", "export", "--format", "csv", "--iterations", *at], CSV),
        ("export_references", ["dataset", "export", "--references", "--iterations", *at], SEES),
        ("check", ["dataset", "check", *at], SEES),
        ("merge", ["dataset", "merge", db, "--dataset", "merged.db"], SEES),
        ("sessions_show", ["sessions", "show", session, *at], ANY),
        ("sessions_show_json", ["sessions", "show", session, "--json", *at], ANY),
        ("report", ["report", session, *at], ANY),
        ("report_page", ["report", session, "--out", "-", *at], PAGE),
        ("resume", ["tune", "--resume", session, *at], ANY),
        ("resume_again", ["tune", "--resume", session, "--command", JOB, *at], ANY),
        ("session_show", ["session", "show", session, *at], ANY),
        ("session_show_json", ["session", "show", session, "--json", *at], ANY),
        ("session_suggest", ["session", "suggest", session, *at], ANY),
        ("session_suggest_json", ["session", "suggest", session, "--json", "--out", "folders", *at], ANY),
        ("session_stop", ["session", "stop", session, *at], ANY),
        ("train_ranker", ["train-ranker", "--kind", "linear", "--name", EVIL, *at], ANY),
        ("rank", ["rank", "mlp-small", "lab-4x1g", "--baselines", *at], ANY),
        ("rank_by_name", ["rank", "mlp-small", "lab-4x1g", "--baselines", "--ranker", EVIL, *at], ANY),
        ("collect", ["collect", "mlp-small", "lab-4x1g", "--runner", EVIL, *at], SEES),
    ]


# ---- files ----

MODEL = {"schema": "syncopate.model/1", "name": "m", "batch_per_device": 8,
         "variables": [{"name": "a", "shape": [64, 64], "dtype": "f32"}],
         "layers": [{"name": "l1", "forward_us": 2000, "backward_us": 4000, "variables": ["a"]}]}
CLUSTER = {"schema": "syncopate.cluster/1", "name": "c",
           "nodes": [{"name": "n", "count": 4, "nic_gbit_per_s": 1, "nic_latency_us": 50}]}


def with_names(value, name):
    """Every name in it, or every word of any kind, hostile."""
    if isinstance(value, dict):
        return {key: name if key == "name" else with_names(item, name) for key, item in value.items()}
    return [with_names(item, name) for item in value] if isinstance(value, list) else value


def write(path, text):
    with open(path, "w" if isinstance(text, str) else "wb") as file:
        file.write(text)
    return path


def make_files():
    mark = "evil\x9b31m\u202eend"  # raw in JSON, where ESC and line ends are not allowed
    write("model.json", json.dumps(MODEL))
    write("cluster.json", json.dumps(CLUSTER))
    write("formula.json", json.dumps(with_names(CLUSTER, FORMULA)))
    for name, text in (("c1", mark), ("esc", EVIL)):
        write(f"model-{name}.json", json.dumps(with_names(MODEL, text), ensure_ascii=False))
        write(f"cluster-{name}.json", json.dumps(with_names(CLUSTER, text), ensure_ascii=False))
        write(f"strategy-{name}.json", json.dumps({"schema": "syncopate.strategy/1", "name": text, "groups": [],
                                                  "variables": [], text: text}, ensure_ascii=False))
    write("evil.txt", EVIL.encode() + b"\x9b\xff\n" + EVIL.encode())
    write("evil.jsonl", json.dumps({"schema": EVIL}, ensure_ascii=False) + "\n")
    write("member.jsonl", json.dumps({"schema": "syncopate.record/1", EVIL: 1}, ensure_ascii=False) + "\n")
    write("session.jsonl", json.dumps({"schema": "syncopate.session/1", "id": EVIL, "model": "m", "cluster": "c",
                                       "state": EVIL, "started": "2026-11-21T08:41:17.123Z", "seed": 1, "budget": {},
                                       "options": {}}, ensure_ascii=False) + "\n")
    write("object.jsonl", json.dumps({"schema": "syncopate.object/1", "kind": "ranker", "name": EVIL, "content": {}},
                                     ensure_ascii=False) + "\n")
    write("trace.json", json.dumps({"traceEvents": [{"name": EVIL, "ph": "X", "ts": 1, "dur": 1, "cat": EVIL, "pid": EVIL,
                                                     "tid": EVIL, "args": {EVIL: EVIL}}]}, ensure_ascii=False))
    said = {"Collective name": EVIL, "Process Group Name": EVIL, "Process Group Ranks": EVIL, "dtype": EVIL}
    write("rank.json", json.dumps({EVIL: EVIL, "traceEvents": [{"name": "nccl" + EVIL, "ph": "X", "ts": 1, "dur": 1,
                                                               "cat": "kernel", "args": said}]}, ensure_ascii=False))


def file_rows():
    both = [(model, cluster) for name in ("c1", "esc") for model, cluster in
            ((f"model-{name}.json", "cluster.json"), ("model.json", f"cluster-{name}.json"))]
    rows = []
    for model, cluster in both:
        tag = (model + cluster).replace(".json", "").replace("model", "m").replace("cluster", "c")
        rows += [(f"simulate_{tag}", ["simulate", model, cluster], REFUSED),
                 (f"simulate_json_{tag}", ["simulate", model, cluster, "--json"], REFUSED),
                 (f"compare_{tag}", ["compare", model, cluster], REFUSED),
                 (f"baselines_{tag}", ["baselines", model, cluster], ANY),
                 (f"strategy_show_{tag}", ["strategy", "show", model, cluster, "--baseline", "wfbp"], REFUSED),
                 (f"tune_{tag}", ["tune", model, cluster, "--command", "true", "--dataset", "new.db"], REFUSED)]
    for name in ("c1", "esc"):
        file = f"strategy-{name}.json"
        rows += [(f"strategy_check_{name}", ["strategy", "check", "model.json", "cluster.json", file], SEES),
                 (f"strategy_diff_{name}", ["strategy", "diff", "model.json", "cluster.json", file, "wfbp"], SEES),
                 (f"strategy_export_{name}", ["strategy", "export", file, "--model", "model.json", "--cluster",
                                              "cluster.json", "--to", "horovod"], SEES),
                 (f"simulate_strategy_{name}", ["simulate", "model.json", "cluster.json", "--strategy", file], SEES),
                 (f"bench_{name}", ["bench", f"cluster-{name}.json"], REFUSED)]
    rows += [(f"import_{file}", ["dataset", "import", f"{file}.jsonl", "--dataset", "new.db"], SEES)
             for file in ("evil", "member", "session", "object")]
    rows += [(f"import_{kind}_{form}", ["import", kind, file, "--from", form], ANY)
             for file in ("evil.txt", "trace.json")
             for kind, forms in (("model", ("safetensors", "onnx", "torch-trace", "pipedream", "espresso", "graph-item")),
                                 ("cluster", ("nccl-tests", "osu", "hostfile", "slurm", "topology", "resource-spec")))
             for form in forms]
    rows += [("explain_trace", ["explain", "trace.json"], ANY), ("explain_rank", ["explain", "rank.json"], ANY),
             ("explain_rank_json", ["explain", "rank.json", "--json"], ANY)]
    # What is typed comes back in errors too.
    rows += [(f"typed_{number}", words, kind) for number, (words, kind) in enumerate((
        ([EVIL], SEES), (["dataset", EVIL], SEES), (["dataset", "query", "--order", EVIL, "--dataset", "d.db"], SEES),
        (["dataset", "query", "--dataset", EVIL], SEES), (["simulate", EVIL, "cluster.json"], SEES),
        (["report", EVIL, "--dataset", "d.db"], SEES), (["strategy", "show", "model.json", "cluster.json", "--baseline",
                                                          EVIL], SEES),
        (["tune", "--resume", EVIL, "--dataset", "d.db"], SEES), (["--server", EVIL, "models", "list"], SEES),
        (["doctor", EVIL], SEES), (["completion", EVIL], SEES), (["manual", EVIL], SEES)))]
    rows += [("sweep_csv", ["simulate", "model.json", "formula.json", "--sweep", "batch=1,2", "--csv", "-"], ANY)]
    return rows


# ---- an honest service on a hostile dataset ----

WAITS_S = 4  # what asks again and again, or waits for others


class Honest:
    def __init__(self, dataset):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open("serve.err", "wb")
        self.process = subprocess.Popen([PROGRAM, "serve", "--open", "--dataset", dataset, "--listen",
                                         f"127.0.0.1:{self.port}"], stdout=subprocess.PIPE, stderr=self.log)
        self.process.stdout.readline()

    def say(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            got = b""
            try:
                while chunk := connection.recv(65536):
                    got += chunk
            except OSError:
                pass
        return got

    def get(self, path):
        return self.say(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept: text/html, */*\r\n"
                        "Connection: close\r\n\r\n".encode())

    def stop(self):
        self.process.terminate()
        self.process.wait(40)
        self.process.stdout.close()
        self.log.close()


def client_rows(url, ids):
    at = ["--server", url]
    session = ids["session"]
    rows = [
        *[(f"{kind}s_list", [f"{kind}s", "list", *at]) for kind in ("model", "cluster", "session")],
        *[(f"{kind}s_list_json", [f"{kind}s", "list", "--json", *at]) for kind in ("model", "cluster", "session")],
        *[(f"{kind}s_show", [f"{kind}s", "show", ids[kind], *at]) for kind in ("model", "cluster", "session")],
        *[(f"{kind}s_add", [f"{kind}s", "add", f"{kind}.json", *at]) for kind in ("model", "cluster")],
        ("sessions_show_json", ["sessions", "show", session, "--json", *at]),
        *[(f"sessions_{verb}", ["sessions", verb, session, *at]) for verb in ("pause", "resume", "stop", "cancel")],
        ("query", ["dataset", "query", *at]),
        ("query_json", ["dataset", "query", "--json", *at]),
        ("export", ["dataset", "export", "--references", *at]),
        ("export_csv", ["dataset", "export", "--format", "csv", *at]),
        ("merge", ["dataset", "merge", url, "--dataset", "from-service.db"]),
        ("import", ["dataset", "import", "plain.jsonl", *at]),
        ("send", ["dataset", "merge", "d.db", *at]),
        ("report", ["report", session, "--out", "-", *at]),
        ("resume", ["tune", "--resume", session, *at]),
        ("tune", ["tune", "model.json", "cluster.json", "--trials", "1", *at]),
        ("simulate", ["simulate", "model.json", "cluster.json", *at]),
        ("simulate_json", ["simulate", "model.json", "cluster.json", "--json", *at]),
        ("strategy_export", ["strategy", "export", session, "--out", "folder", *at]),
        ("agent", ["agent", "--session", session, "--command", JOB, "--once", "--patience", "1s", "--idle", "1s", *at]),
    ]
    return rows


def honest_service():
    shutil.copy("names.db", "served.db")
    change("served.db", "PRAGMA foreign_keys = OFF", "UPDATE sessions SET id = 's1'",  # which an address may hold
           "UPDATE trials SET session = 's1'")
    service = Honest("served.db")
    url = f"http://127.0.0.1:{service.port}"
    seen = {"models_list", "clusters_list", "sessions_list", "models_list_json", "query", "query_json", "export", "merge"}
    try:
        for name, words in client_rows(url, ids_of("served.db")):
            kind = CSV if name == "export_csv" else SEES if name in seen else PAGE if name == "report" else ANY
            check("service_" + name, words, kind, WAITS_S)
        for page in ("/", "/sessions/s1", "/dataset", "/models", "/clusters", "/api/v1/sessions", "/api/v1/sessions/s1",
                     "/api/v1/models", "/api/v1/records", "/api/v1/records?format=csv"):
            # The header ends with CR LF, and so does a line of CSV.
            answer = service.get(page).split(b"\r\n\r\n", 1)[-1]
            shown = b"evil" in answer or page == "/api/v1/records?format=csv"
            verdict("answer_of_" + page, raw_bytes(answer, page=True) or (not shown and repr(answer[-1500:])))
        for request in (b"EV\x1b]0;x\x07IL / HTTP/1.1", b"GET /\xc2\x9bevil\xe2\x80\xae HTTP/1.1", b"GET /%1b%9b%0aFORGED HTTP/1.1",
                        b"E\xc2\x9b\xe2\x80\xaeIL /evil HTTP/1.1", b"GET /api/v1/models?a=\x1b HTTP/1.1"):
            service.say(request + b"\r\nHost: x\r\nX-Request-Id: evil\x1b\r\nConnection: close\r\n\r\n")
    finally:
        service.stop()
    with open("serve.err", "rb") as log:
        text = log.read()
    verdict("the_log_of_a_service", raw_bytes(text) or (b"evil" not in text and "nothing hostile came through"))


# ---- somebody else's service ----

ANSWERS = {"problem": lambda text: (400, "application/problem+json", json.dumps(
               {"type": text, "title": text, "status": 400, "detail": text, "code": text, "request_id": text,
                "errors": [{"pointer": text, "detail": text}], "losses": [{"what": text, "why": text}]}, ensure_ascii=False)),
           "page": lambda text: (502, "text/html", text),
           "list": lambda text: (200, "application/json", json.dumps(anything(text), ensure_ascii=False)),
           "lines": lambda text: (200, "application/jsonl", json.dumps(
               {"schema": "syncopate.record/1", "uid": text}, ensure_ascii=False) + "\n"),
           "csv": lambda text: (200, "text/csv", "trial,name\r\n1," + text.replace("\n", "") + f"\r\n2,{FORMULA}\r\n"
                                f'3,"@a{text}"\r\n')}


def anything(text):
    """A document with every member that a client may look for."""
    flat = {key: text for key in ("id", "name", "state", "reason", "model_name", "cluster_name", "strategy_name", "uid",
                                  "started", "ended", "queued", "proposer", "runner", "team", "mode", "href", "client",
                                  "strategy", "session", "created", "kind", "detail", "why", "error", "next", "message")}
    named = {key: {"id": text, "name": text} for key in ("model", "cluster")}
    item = {**flat, **named, "trials": 1, "complete": 1, "seed": 1, "number": 1, "attempt": 1, "median_us": 1,
            "shared": text, "budget": {}, "result": {**flat}}
    return {**item, "items": [item], "sessions": [item], "models": [item], "clusters": [item], "records": [item],
            "predictions": [item], "errors": [item], "content": item}


class Stranger(http.server.BaseHTTPRequestHandler):
    mode = "problem"
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, kind, body = ANSWERS[Stranger.mode](EVIL)
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


def strangers_service():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for mode in ANSWERS:
        Stranger.mode = mode
        for name, words in client_rows(url, {kind: "abcdef012345" for kind in ("model", "cluster", "session")}):
            if mode in ("lines", "csv") and "export" not in name and name not in ("query", "query_json", "merge"):
                continue
            if mode == "page" and name not in ("models_list", "export", "merge", "tune"): # each is tried for seconds
                continue
            seen = mode == "problem" and "agent" not in name or (mode, name) in {("lines", "query_json"), ("lines", "export")}
            kind = CSV if (mode, name) == ("csv", "export_csv") else SEES if seen else PAGE if name == "report" else ANY
            check(f"stranger_{mode}_{name}", words, kind, WAITS_S)
    server.shutdown()
    server.server_close()


def main():
    make_dataset()
    make_files()
    run(["dataset", "export", "--references", "--dataset", "d.db", "--out", "plain.jsonl"])
    poison("names.db")
    spoil_contents("contents.db")
    for db in ("names.db", "contents.db"):
        ids = ids_of(db)
        for name, words, kind in dataset_rows("work.db", ids):
            shutil.copy(db, "work.db")
            for tail in ("-wal", "-shm"):
                if os.path.exists("work.db" + tail):
                    os.remove("work.db" + tail)
            if db == "contents.db" and kind in (SEES, CSV) and name in ("query_json", "export", "export_csv", "sessions", "check",
                                                                           "merge"):
                kind = ANY
            check(f"{db[:-3]}_{name}", words, kind)
    for name, words, kind in file_rows():
        check(name, words, kind)
    honest_service()
    strangers_service()
    return 0


if __name__ == "__main__":
    sys.exit(main())
