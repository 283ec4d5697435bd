"""A service of this test's own, its clients, and what the description says of every answer. Prints TAP-like lines."""
import atexit
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time

import prometheus
import schema
from service import report

PROGRAM, WORK = os.environ["OUT"] + "/bin/syncopate", os.getcwd()
PROGRAM = os.path.abspath(os.path.join(os.environ["ROOT"], PROGRAM))
EXAMPLES = os.environ["ROOT"] + "/examples"


class Service:
    def __init__(self, *options, dataset="d.db"):
        self.process = subprocess.Popen([PROGRAM, "serve", "--listen", "127.0.0.1:0", "--dataset", dataset, *options],
                                        stdout=subprocess.PIPE, stderr=open("serve.err", "a"), text=True)
        atexit.register(self.process.kill)  # after a test that failed
        self.line = self.process.stdout.readline().strip()
        self.url = self.line.split(" ")[-1]
        self.port = int(self.url.rsplit(":", 1)[1]) if self.line else 0

    def ask(self, method, path, body=None, headers={}, context=None):
        """(status, headers, body)"""
        if context:
            connection = http.client.HTTPSConnection("localhost", self.port, timeout=60, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = dict(headers)
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        result = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return result

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        start = time.monotonic()
        status = self.process.wait(20)
        return status, time.monotonic() - start


def last_words():
    with open("serve.err", encoding="utf-8", errors="replace") as file:
        return file.read()[-1500:]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def example(kind, name):
    with open(f"{EXAMPLES}/{kind}/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def traces(ranks):
    """[(name, text)]: an all-reduce of 1 MiB a step, to which rank 1 comes 2 ms late."""
    def events(r):
        for s in range(3):
            at, ready = 10000 * s, 10000 * s + 3000 + 2000 * (r == 1)
            yield {"ph": "X", "cat": "gpu_user_annotation", "name": f"ProfilerStep#{s}", "ts": at, "dur": 10000}
            yield {"ph": "X", "cat": "kernel", "name": "gemm", "ts": ready - 3000, "dur": 3000}
            yield {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ts": ready,
                   "dur": at + 6000 - ready, "args": {
                       "Collective name": "allreduce", "In msg nelems": 1 << 18, "Out msg nelems": 1 << 18, "Group size": ranks,
                       "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": str(list(range(ranks))), "Seq": s}}
    return [(f"rank{r}.json", json.dumps({"distributedInfo": {"rank": r, "world_size": ranks}, "traceEvents": [
        {"pid": 1, "tid": 1, **e} for e in events(r)]})) for r in range(ranks)]


def upload(files, field="trace"):
    """Body and headers of multipart/form-data."""
    parts = [f'--cut\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
             f"Content-Type: application/json\r\n\r\n{text}\r\n" for name, text in files]
    return ("".join(parts) + "--cut--\r\n").encode(), {"Content-Type": "multipart/form-data; boundary=cut"}


def uploaded_traces_are_explained_as_the_command_does():
    service = Service("--open", dataset="explain.db")
    files = traces(4)
    for name, text in files:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    said = run("explain", *(name for name, _ in files), "--json")
    status, _, text = service.ask("POST", "/api/v1/explanations", *upload(files))
    assert status == 200 and json.loads(text) == json.loads(said.stdout) and json.loads(text)["late_rank"] == 1, text[:300]
    body, headers = upload(files)
    headers["Origin"] = service.url
    status, _, page = service.ask("POST", "/traces", body, headers)
    assert status == 200 and b"Rank 1 is late" in page and page.count(b">rank ") >= 4, page[:300]
    assert service.ask("POST", "/traces", *upload(files))[0] == 403, "no page of ours sent this"
    service.stop()


def uploads_left(service):
    """Files of uploads that the service has open. Those of requests that just ended get 5 s to go."""
    folder, left = f"/proc/{service.process.pid}/fd", []
    for _ in range(50):
        left = []
        for name in os.listdir(folder):
            try:
                left += re.findall(r"/syncopate-\w{6} \(deleted\)$", os.readlink(f"{folder}/{name}"))
            except FileNotFoundError:
                pass  # closed since it was listed
        if not left:
            break
        time.sleep(0.1)
    return left


def uploads_that_make_no_sense_are_refused_in_one_line():
    service = Service("--open", dataset="explain.db")
    one = traces(4)[:1]
    cut = one[0][1][:300]
    for files, field, status, words in (
            (one + one, "trace", 422, "rank0.json: of rank 0, as rank0.json is"), ([], "trace", 400, "no trace in it"),
            ([("", "")], "trace", 400, "no trace in it"), (one, "file", 400, 'unknown field "file"'),
            ([("x.json", "{}")], "trace", 422, 'x.json: line 1: no list "traceEvents"'),
            ([("x.json", cut)], "trace", 422, "is the file complete?"),
            ([("x.gz", "\x1f\x0b")], "trace", 422, "x.gz: compressed"),
            ([("x.json", "[]")] * 4097, "trace", 413, "more than 4096 parts")):
        got, _, text = service.ask("POST", "/api/v1/explanations", *upload(files, field))
        assert got == status and words in json.loads(text)["detail"] and "\n" not in json.loads(text)["detail"], (words, got, text)
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as large:
        large.sendall(b"POST /api/v1/explanations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 536870913\r\n"
                      b"Content-Type: multipart/form-data; boundary=cut\r\n\r\n")
        told = large.recv(4096)
    assert b" 413 " in told and b"a body may have 536870912 bytes here" in told, told
    assert not uploads_left(service), uploads_left(service)
    service.stop()


def an_upload_that_the_disk_does_not_take_is_told():
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = os.path.join(WORK, "nowhere")
    service = Service("--open", dataset="explain.db")
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before
    status, _, text = service.ask("POST", "/api/v1/explanations", *upload(traces(2)))
    assert status == 507 and json.loads(text)["code"] == "insufficient-storage", (status, text)
    assert "an upload cannot be kept in TMPDIR" in last_words(), last_words()
    assert service.ask("GET", "/healthz")[0] == 200
    service.stop()


def without_tokens_and_not_open_it_refuses_to_start():
    done = run("serve", "--dataset", "none.db", "--listen", "127.0.0.1:0")
    assert done.returncode == 2 and "token create" in done.stderr and not done.stdout, done
    assert not os.path.exists("none.db")


def bad_options_are_told():
    for options, part in ((["--listen", "nonsense"], "ADDRESS:PORT"), (["--listen", "1.2.3.4.5:1"], "no address"),
                          (["--tls-cert", "x"], "both a certificate"), (["--threads", "1000000"], "256 threads")):
        done = run("serve", "--open", "--dataset", "o.db", *options)
        assert done.returncode == 2 and part in done.stderr, (options, done)


def it_says_where_it_listens_and_ends_on_a_signal():
    service = Service("--open")
    assert service.line.startswith("syncopate serves d.db at http://127.0.0.1:"), service.line
    assert service.ask("GET", "/healthz")[0] == 200
    second = run("serve", "--open", "--dataset", "d.db", "--listen", "127.0.0.1:0")
    assert second.returncode == 1 and "d.db" in second.stderr, second
    status, seconds = service.stop()
    assert status == 0 and seconds < 5, (status, seconds)


def while_it_stops_what_runs_ends_well_and_others_are_told():
    service = Service("--open")
    body = json.dumps(example("models", "mlp-small")).encode()
    slow = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    slow.sendall(b"POST /api/v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                 + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
    while service.ask("GET", "/metrics")[2].find(b"syncopate_http_requests_in_flight 2") < 0:
        time.sleep(0.01)
    service.process.send_signal(signal.SIGTERM)
    while service.ask("GET", "/readyz")[0] != 503:
        time.sleep(0.01)
    status, headers, answer = service.ask("GET", "/api/v1/models")
    assert status == 503 and json.loads(answer)["code"] == "draining" and "Retry-After" in headers, (status, answer)
    slow.sendall(body[10:])
    answer = b"".join(iter(lambda: slow.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 20"), answer
    assert service.process.wait(20) == 0


def tokens_are_made_listed_and_revoked():
    made = run("serve", "token", "create", "alice", "--role", "admin", "--team", "core", "--dataset", "t.db")
    assert made.returncode == 0, made
    token = made.stdout.strip()
    assert os.stat("t.db.tokens").st_mode & 0o777 == 0o600
    assert token.split("_", 2)[2] not in open("t.db.tokens", encoding="utf-8").read()
    run("serve", "token", "create", "bob", "--role", "read", "--dataset", "t.db")
    listed = [json.loads(line) for line in run("serve", "token", "list", "--json", "--dataset", "t.db").stdout.splitlines()]
    assert sorted((t["name"], t["role"]) for t in listed) == [("alice", "admin"), ("bob", "read")], listed
    service = Service(dataset="t.db")
    header = {"Authorization": "Bearer " + token}
    assert service.ask("GET", "/api/v1/models", headers=header)[0] == 200
    assert service.ask("GET", "/api/v1/models")[0] == 401
    assert run("serve", "token", "revoke", "alice", "--dataset", "t.db").returncode == 0
    deadline = time.monotonic() + 5
    while service.ask("GET", "/api/v1/models", headers=header)[0] != 401:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    service.stop()
    assert run("serve", "token", "revoke", "alice", "--dataset", "t.db").returncode == 2


def tls_is_1_2_and_up():
    make_certificate("localhost")
    service = Service("--open", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    assert service.url.startswith("https://"), service.url
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile="cert.pem")
        context.minimum_version = context.maximum_version = version
        status, headers, _ = service.ask("GET", "/healthz", context=context)
        assert status == 200 and "max-age" in headers["Strict-Transport-Security"], headers
    context = ssl.create_default_context(cafile="cert.pem")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    try:
        service.ask("GET", "/healthz", context=context)
        raise AssertionError("TLS 1.1 was accepted")
    except (ssl.SSLError, ConnectionError):
        pass
    assert service.stop()[0] == 0
    wrong = run("serve", "--open", "--dataset", "d.db", "--listen", "127.0.0.1:0", "--tls-cert", "key.pem", "--tls-key",
                "cert.pem")
    assert wrong.returncode == 2 and "belong together" in wrong.stderr, wrong


def speaks(service, *options):
    """The cipher that openssl and the service agree on; "" where they agree on none."""
    client = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{service.port}", "-tls1_2", *options],
                            input="", capture_output=True, text=True, timeout=60)
    agreed = re.search(r"Cipher is ([A-Z0-9-]+|\(NONE\))", client.stdout)
    assert agreed and (client.returncode == 0) == (agreed.group(1) != "(NONE)"), client
    return agreed.group(1).strip("()").replace("NONE", "")


def what_was_recorded_stays_secret_when_the_key_is_lost():
    """TLS 1.2 needs a key of the connection's own, and ciphers that seal what they hide."""
    for kind, key, good, bad in (
            ("rsa", ("rsa:2048",),
             ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"),
             ("AES128-SHA", "AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-CCM", "ECDHE-RSA-AES128-SHA",
              "ECDHE-RSA-AES256-SHA", "DHE-RSA-AES128-SHA", "DHE-RSA-AES256-SHA256")),
            ("ec", ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
             ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"),
             ("ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-SHA256"))):
        make_certificate("localhost", newkey=key)
        service = Service("--open", "--tls-cert", "cert.pem", "--tls-key", "key.pem", dataset=f"{kind}.db")
        for cipher in good:
            assert speaks(service, "-cipher", cipher + ":@SECLEVEL=0") == cipher, cipher
        spoken = [cipher for cipher in bad if speaks(service, "-cipher", cipher + ":@SECLEVEL=0")]
        assert not spoken, spoken
        service.stop()


def over_tls_the_cookie_is_for_this_host_and_tls_alone():
    make_certificate("localhost")
    token = run("serve", "token", "create", "anna", "--role", "read", "--dataset", "cookie.db").stdout.strip()
    service = Service("--tls-cert", "cert.pem", "--tls-key", "key.pem", dataset="cookie.db")

    def ask(method, path, body=None, **headers):
        connection = http.client.HTTPSConnection("localhost", service.port, timeout=60)
        connection.sock = connect_tls(service)
        connection.request(method, path, body, {"Origin": f"https://localhost:{service.port}", **headers})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Set-Cookie"), answer.read()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, cookie, _ = ask("POST", "/sign-in", "token=" + token, **form)
    assert status == 303 and re.fullmatch("__Host-syncopate=[0-9a-f]{64}; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure",
                                          cookie), (status, cookie)
    value = cookie.split(";")[0]
    assert ask("GET", "/models", Cookie=value)[0] == 200
    assert ask("GET", "/models", Cookie=value.replace("__Host-syncopate", "syncopate_session"))[0] == 401
    assert ask("GET", "/models", Cookie="syncopate_token=" + token)[0] == 401
    assert ask("POST", "/sign-out", "", Cookie=value, **form)[0] == 303
    assert ask("GET", "/models", Cookie=value)[0] == 401
    service.stop()


def make_certificate(name, chain="cert.pem", key="key.pem", newkey=("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
    subprocess.run(["openssl", "req", "-x509", "-newkey", *newkey, "-nodes", "-keyout",
                    key, "-out", chain, "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)


def connect_tls(service):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", service.port), timeout=60), server_hostname="localhost")


def shown_certificate(service):
    with connect_tls(service) as connection:
        return ssl.DER_cert_to_PEM_cert(connection.getpeercert(True))


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def a_renewed_certificate_is_taken_up_and_drops_no_connection():
    make_certificate("first")
    service = Service("--open", "--tls-cert", "cert.pem", "--tls-key", "key.pem", dataset="renewed.db")
    first = open("cert.pem", encoding="ascii").read()
    assert shown_certificate(service) == first
    kept = http.client.HTTPSConnection("localhost", service.port, timeout=60)
    kept.sock = connect_tls(service)
    half = connect_tls(service)
    half.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    make_certificate("second")
    assert shown_certificate(service) == first
    service.process.send_signal(signal.SIGHUP)
    second = open("cert.pem", encoding="ascii").read()
    wait_for(lambda: shown_certificate(service) == second)
    kept.request("GET", "/healthz")
    assert kept.getresponse().read() and kept.sock
    half.sendall(b"Connection: close\r\n\r\n")
    assert half.recv(1000).startswith(b"HTTP/1.1 200")
    with open("key.pem", "w", encoding="ascii") as file:
        file.write("nonsense")
    for _ in range(5):
        service.process.send_signal(signal.SIGHUP)
        time.sleep(0.02)
    assert shown_certificate(service) == second and service.process.poll() is None
    wait_for(lambda: "stays as it was" in open("serve.err", encoding="utf-8").read())
    assert service.stop()[0] == 0


def a_hangup_ends_nothing():
    for _ in range(8):  # the first comes at once, the others while those before are being taken
        service = Service("--open", dataset="hangup.db")
        for _ in range(20):
            service.process.send_signal(signal.SIGHUP)
        answer = service.ask("GET", "/healthz")
        assert answer[0] == 200, answer
        status, took = service.stop()
        assert status == 0, (status, took, last_words())


def it_runs_trials_only_by_launchers_of_its_own():
    service = Service("--open", dataset="elsewhere.db")
    for kind, name in (("models", "mlp-small"), ("clusters", "lab-4x1g")):
        assert service.ask("POST", f"/api/v1/{kind}", example(kind, name))[0] == 201
    status, _, body = service.ask("POST", "/api/v1/sessions", {"model": "mlp-small", "cluster": "lab-4x1g", "ranker": "none"})
    assert status == 201, body
    session = json.loads(body)["href"]
    service.stop()
    dataset = sqlite3.connect("elsewhere.db")  # as it would come from a service that runs it
    with dataset:
        dataset.execute("UPDATE sessions SET mode = 'own', options = json_set(options, '$.served', json('true'), "
                        "'$.runner', 'local')")
    dataset.close()
    service = Service("--open", dataset="elsewhere.db")
    time.sleep(0.5)
    assert json.loads(service.ask("GET", session + "/trials")[2])["items"] == []
    assert service.ask("GET", session + "/best")[0] in (200, 404)  # it can be looked at
    assert service.ask("POST", session + ":pause")[0] == 200
    assert service.ask("POST", session + ":resume")[0] == 409
    service.stop()
    with open("serve.err", encoding="utf-8") as log:
        assert "no launcher is registered for its cluster" in log.read()


def what_is_old_is_forgotten_and_nothing_else():
    service = Service("--open", dataset="old.db")
    for key, model in (("yesterday", "cnn-small"), ("now", "mlp-small")):
        assert service.ask("POST", "/api/v1/models", example("models", model), {"Idempotency-Key": key})[0] == 201
    service.stop()
    with sqlite3.connect("old.db") as dataset:
        ago = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?)"
        dataset.execute(f"UPDATE idempotency SET created = {ago} WHERE key = 'yesterday'", ("-25 hours",))
        dataset.execute("INSERT INTO audit (at, method, path, status) VALUES "
                        f"({ago}, 'GET', 'old', 200), ({ago}, 'GET', 'young', 200)", ("-731 days", "-729 days"))
    dataset.close()
    service = Service("--open", dataset="old.db")
    def left():
        dataset = sqlite3.connect("file:old.db?mode=ro", uri=True)
        try:
            return (dataset.execute("SELECT key FROM idempotency").fetchall(),
                    dataset.execute("SELECT path FROM audit WHERE path IN ('old', 'young')").fetchall())
        finally:
            dataset.close()
    wait_for(lambda: left() == ([("now",)], [("young",)]))
    service.stop()


def open_is_not_for_those_who_come_through_a_proxy():
    service = Service("--open", dataset="proxied.db")
    assert service.ask("GET", "/api/v1/models")[0] == 200
    for name in ("Forwarded", "x-forwarded-for", "X-Real-IP", "Via"):
        assert service.ask("GET", "/api/v1/models", headers={name: "192.0.2.1"})[0] == 401, name
        assert service.ask("GET", "/healthz", headers={name: "192.0.2.1"})[0] == 200, name
    service.stop()


def the_metrics_are_what_prometheus_reads():
    service = Service("--open")
    for path in ("/healthz", "/api/v1/models", "/nothing", "/api/v1/models?x=1", '/api/v1/models/%22%5C'):
        service.ask("GET", path)
    # A request is counted after it was answered: wait until all are.
    wait_for(lambda: "\nsyncopate_http_requests_in_flight 1\n" in service.ask("GET", "/metrics")[2].decode())
    status, headers, body = service.ask("GET", "/metrics")
    service.stop()
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples = prometheus.read(body.decode())
    requests = samples["syncopate_http_requests_total"]
    assert requests['route="GET /healthz",status="200"'] == 1
    assert requests['route="GET /api/v1/models",status="400"'] == 1
    assert requests['route="none",status="404"'] == 1
    assert samples["syncopate_http_request_duration_seconds_count"]['route="GET /healthz"'] == 1


def the_metrics_tell_what_became_of_sessions_and_trials():
    service = Service("--open", dataset="counted.db")

    def ask(path, body=None, method="POST"):
        status, _, text = service.ask(method, "/api/v1/" + path, body)
        assert status < 300, (path, status, text[:300])
        return json.loads(text)

    def metrics():
        return prometheus.read(service.ask("GET", "/metrics")[2].decode())

    named = {"model": example("models", "mlp-small")["name"], "cluster": "lab-4x1g"}
    ask("models", example("models", "mlp-small"))
    ask("clusters", example("clusters", "lab-4x1g"))
    ids = [ask("sessions", {**named, "budget": {"trials": 30}})["id"] for _ in range(3)]
    base = f"sessions/{ids[0]}/trials"
    taken = ask(base + ":suggest", {"client": "c", "count": 5})["trials"]
    for trial, (verb, body) in zip(taken, (("complete", {"iterations_us": [9, 9]}), ("fail", {"reason": "it broke"}),
                                           ("fail", {"reason": "too big", "infeasible": True}))):
        ask(f"{base}/{trial['number']}:{verb}", {"client": "c", "attempt": 1, **body})
    lost = ask(f"sessions/{ids[1]}/trials:suggest", {"client": "c", "lease_s": 1})["trials"][0]
    ask(f"sessions/{ids[2]}:pause")
    ask(f"sessions/{ids[0]}:cancel")
    strategy = ask("strategies", {**named, "baseline": "wfbp"})["id"]
    record = {**named, "strategy": strategy, "proposer": "wfbp", "runner": "lab", "iterations_us": [9], "uid": "u"}
    for _ in range(2):  # the second is a duplicate
        ask("records:batchCreate", {"records": [record]})
    for attempt in (1, 2, 3):
        wait_for(lambda attempt=attempt: metrics()["syncopate_trials_returned_total"][""] == attempt or attempt == 3)
        if attempt < 3:
            again = ask(f"sessions/{ids[1]}/trials:suggest", {"client": "c", "lease_s": 1})["trials"][0]
            assert (again["number"], again["attempt"]) == (lost["number"], attempt + 1)
    wait_for(lambda: metrics()["syncopate_trials_total"]['state="lost"'] == 1)
    samples = metrics()
    assert samples["syncopate_trials_total"] == {f'state="{state}"': n for state, n in (
        ("complete", 1), ("failed", 1), ("infeasible", 1), ("cancelled", 2), ("lost", 1))}, samples["syncopate_trials_total"]
    assert {k: v for k, v in samples["syncopate_sessions"].items() if v} == {
        'state="running"': 1, 'state="paused"': 1, 'state="cancelled"': 1}, samples["syncopate_sessions"]
    assert samples["syncopate_records_added_total"][""] == 1
    assert samples["syncopate_dataset_bytes"][""] >= os.stat("counted.db").st_size
    assert samples["syncopate_dataset_free_bytes"][""] > 0
    assert abs(samples["process_start_time_seconds"][""] - time.time()) < 60
    assert service.stop()[0] == 0


def every_answer_is_as_described():
    service = Service("--open", dataset="described.db")
    _, _, text = service.ask("GET", "/openapi.json")
    document = json.loads(text)
    model, cluster = example("models", "resnet50"), example("clusters", "lab-4x1g")
    seen = set()

    def ask(method, path, pattern, body=None, headers={}, well_formed=True):
        status, got, text = service.ask(method, path, body, headers)
        operation = document["paths"][pattern][method.lower()]
        assert str(status) in operation["responses"], (method, path, status, text[:300])
        schema.check_headers(got, operation["responses"][str(status)], document)
        if body is not None and well_formed:
            schema.check(body, operation["requestBody"]["content"]["application/json"]["schema"], document)
        if text:
            content = operation["responses"][str(status)]["content"]
            media = got["Content-Type"]
            assert media in content, (media, content)
            if media.endswith("json"):
                answer = json.loads(text)
                schema.check(answer, content[media]["schema"], document)
                if status >= 400:
                    codes = operation["responses"][str(status)]["description"].split(", ")
                    assert answer["code"] in codes, (answer, codes)
                seen.add((method, pattern))
                return answer
        seen.add((method, pattern))
        return text

    ask("GET", "/healthz", "/healthz")
    ask("GET", "/readyz", "/readyz")
    ask("GET", "/metrics", "/metrics")
    ask("GET", "/openapi.json", "/openapi.json")
    names = {"models": model["name"], "clusters": cluster["name"]}
    for kind, body in (("models", model), ("clusters", cluster)):
        first = ask("POST", f"/api/v1/{kind}", f"/api/v1/{kind}", body)
        assert ask("POST", f"/api/v1/{kind}", f"/api/v1/{kind}", body) == first
    for _ in range(2):
        ask("POST", "/api/v1/models", "/api/v1/models", model, {"Idempotency-Key": "once"})
    ask("GET", "/api/v1/models", "/api/v1/models", headers={"Authorization": "Bearer guessed"})
    named = {"model": names["models"], "cluster": names["clusters"]}
    built = ask("POST", "/api/v1/strategies", "/api/v1/strategies", {**named, "baseline": "pytorch-ddp"})
    for kind, name in (*names.items(), ("strategies", built["id"])):
        assert len(ask("GET", f"/api/v1/{kind}", f"/api/v1/{kind}")["items"]) == 1
        pattern = f"/api/v1/{kind}/{{id}}"
        ask("GET", f"/api/v1/{kind}/{name}", pattern)
        ask("GET", f"/api/v1/{kind}/absent", pattern)
        ask("GET", f"/api/v1/{kind}/%00", pattern)
        ask("GET", f"/api/v1/{kind}/absent?x=y", pattern)
        ask("GET", f"/api/v1/{kind}/{built['id']}", pattern, headers={"If-None-Match": f'"{built["id"]}"'})
    ask("POST", "/api/v1/predictions", "/api/v1/predictions",
        {**named, "strategies": [built["id"]], "baselines": ["horovod", "byteps"], "timeline": True})
    described = {
        "model": {"schema": "syncopate.model/1", "name": "told", "optimizer": {"name": "adam", "master_copy": True},
                  "update_us": 120, "activations_estimated": True,
                  "variables": [{"name": "a", "shape": [100, 10], "dtype": "bf16"}],
                  "layers": [{"name": "l", "forward_us": 1000, "backward_us": 1000, "variables": ["a"], "activation_bytes": 500}]},
        "cluster": {"schema": "syncopate.cluster/1", "name": "told", "nodes": [
            {"name": "n", "count": 2, "nic_gbit_per_s": 1, "device_memory_gbyte": 80, "memory_gbyte": 512}]}}
    shards = {"schema": "syncopate.strategy/1", "name": "shards", "schedule": {"policy": "fifo"},
              "groups": [{"id": 0, "sharded": "parameters", "reshard_after_forward": False, "gathered_as": "f16", "summed_as": "f32"}],
              "variables": [{"name": "a", "sync": {"kind": "all_reduce", "group": 0}}]}
    told = ask("POST", "/api/v1/predictions", "/api/v1/predictions",
               {**described, "baselines": ["wfbp", "ps", "async-ps"], "strategies": [shards], "memory_bytes": 16000})
    for memories in ({}, {"memory_bytes": [1, 16000, 80 * 10**9]}):
        advice = ask("POST", "/api/v1/advice", "/api/v1/advice", {**described, **memories})
    for kind in described:
        with open(f"told-{kind}.json", "w", encoding="utf-8") as file:
            json.dump(described[kind], file)
    printed = run("advise", "told-model.json", "told-cluster.json", "--memory", "1B,16000B,80000000000", "--json")
    assert json.loads(printed.stdout) == advice, (printed, advice)
    fits = {row["strategy"]["name"]: row.get("memory", {}).get("fits") for row in told["predictions"]}
    assert fits == {"wfbp": False, "ps": False, "async-ps": None, "shards": True}, fits  # 2000 + 2000 + 12 * 1000 + 500
    for kind in ("models", "clusters", "strategies", "predictions", "advice"):
        path = f"/api/v1/{kind}"
        ask("POST", path, path, b"{", well_formed=False)
        ask("POST", path, path, {}, well_formed=False)
        ask("POST", path, path, [1], well_formed=False)
        ask("POST", path, path, "1", {"Content-Type": "text/plain"}, well_formed=False)
        ask("POST", path, path, {**named, "baseline": "x", "strategies": ["none"]}, well_formed=False)
    explanations, (body, headers) = "/api/v1/explanations", upload(traces(2))
    ask("POST", explanations, explanations, body, headers, well_formed=False)
    for files in (traces(2) * 2, [], [("m.json", json.dumps(model))]):
        body, headers = upload(files)
        ask("POST", explanations, explanations, body, headers, well_formed=False)
    ask("POST", explanations, explanations, {}, well_formed=False)
    batch = "/api/v1/records:batchCreate"
    trial = {"strategy": built["id"], "proposer": "pytorch-ddp", "runner": "mpirun", "iterations_us": [10, 12]}
    put = ask("POST", batch, batch, {"records": [{**named, **trial}, {**named, **trial, "uid": "u1"}]})
    ask("POST", batch, batch, {"records": [{**named, **trial, "uid": "u1", "runner": "lab"}]})
    ask("POST", batch, batch, {"records": [{**named, **trial, "runner": 1}]}, well_formed=False)
    for query in ("", "?format=csv&page_size=1", "?filter=model+%3D+resnet50&order=-measured&iterations=true",
                  "?filter=%3D", "?order=created"):
        ask("GET", "/api/v1/records" + query, "/api/v1/records")
    for uid in (*put["uids"], "absent"):
        ask("GET", "/api/v1/records/" + uid, "/api/v1/records/{uid}")
        for shared in ("team", ["red", "blue"], "all"):
            ask("PATCH", "/api/v1/records/" + uid, "/api/v1/records/{uid}", {"shared": shared})
        ask("PATCH", "/api/v1/records/" + uid, "/api/v1/records/{uid}", {"shared": 1}, well_formed=False)
    session = ask("POST", "/api/v1/sessions", "/api/v1/sessions", {**named, "budget": {"trials": 9}})
    export = "/api/v1/sessions/{session}/export"
    for query in ("", "?format=strategy", "?format=csv", "?format=jsonl&page_size=1", "?format=json", "?page_token=x&format=csv"):
        ask("GET", session["href"] + "/export" + query, export)
    offer = ask("POST", session["href"] + "/trials:suggest", "/api/v1/sessions/{session}/trials:suggest", {"client": "c"})["trials"][0]
    ask("POST", f"{session['href']}/trials/{offer['number']}:complete", "/api/v1/sessions/{session}/trials/{number}:complete",
        {"client": "c", "attempt": 1, "iterations_us": [9000, 9001]})
    for query in ("", "?format=csv", "?format=jsonl", "?format=strategy&page_size=3", "?format=nccl", "?format=tensorflow",
                  "?format=horovod&strict=true"):
        ask("GET", session["href"] + "/export" + query, export)
    for body in ({"shared": "team"}, {"budget": {"trials": 10}, "shared": "all"}):
        ask("PATCH", session["href"], "/api/v1/sessions/{session}", body)
    ask("PATCH", session["href"], "/api/v1/sessions/{session}", {}, well_formed=False)
    for body in ({"kind": "linear", "domains": [{"model": "resnet50"}]}, {"held_out": 0.5, "filter": "x"}):
        ask("POST", "/api/v1/rankers", "/api/v1/rankers", body)
    ask("GET", "/api/v1/rankers", "/api/v1/rankers")
    ask("GET", "/api/v1/rankers/absent", "/api/v1/rankers/{id}")
    begun = ask("GET", "/api/v1/operations", "/api/v1/operations")["items"][0]
    while begun["state"] == "running":
        time.sleep(0.05)
        begun = ask("GET", begun["href"], "/api/v1/operations/{operation}")
    assert begun["state"] == "failed", begun  # one strategy is no pair
    ask("GET", "/api/v1/operations/absent", "/api/v1/operations/{operation}")
    service.stop()
    tested = {p for _, p in seen}
    ours = [p for p in document["paths"] if p.split("/")[-1].split("{")[0].strip(":") in
            ("healthz", "readyz", "metrics", "openapi.json", "models", "clusters", "strategies", "predictions", "advice", "records",
             "records:batchCreate", "rankers", "operations", "explanations")]
    assert not [p for p in ours if p not in tested], (ours, tested)


TESTS = [without_tokens_and_not_open_it_refuses_to_start, bad_options_are_told,
         it_says_where_it_listens_and_ends_on_a_signal,
         while_it_stops_what_runs_ends_well_and_others_are_told, tokens_are_made_listed_and_revoked, tls_is_1_2_and_up,
         what_was_recorded_stays_secret_when_the_key_is_lost, over_tls_the_cookie_is_for_this_host_and_tls_alone,
         a_renewed_certificate_is_taken_up_and_drops_no_connection, a_hangup_ends_nothing,
         it_runs_trials_only_by_launchers_of_its_own, what_is_old_is_forgotten_and_nothing_else,
         open_is_not_for_those_who_come_through_a_proxy,
         the_metrics_are_what_prometheus_reads, the_metrics_tell_what_became_of_sessions_and_trials,
         uploaded_traces_are_explained_as_the_command_does, uploads_that_make_no_sense_are_refused_in_one_line,
         an_upload_that_the_disk_does_not_take_is_told,
         every_answer_is_as_described]

report(TESTS)
