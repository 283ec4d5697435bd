"""Who attacks: each function is one turn of an attacker, which repeats it on several threads until the attack is over. A
process of its own, so that it takes nothing from the witness: `attackers.py NAME`, the aim as a line of JSON on standard
input, what came back as JSON on standard output when the input ends. attack.py has the table and judges."""
import collections
import http.client
import json
import os
import random
import socket
import sys
import threading
import time
import urllib.parse

import framing
from service import GONE, bearer, routes

JSON = {"Content-Type": "application/json"}
ODD_BODIES = [None, b"", b" ", b"null", b"0", b'""', b"[]", b"{}", b"[" * 100000, b'{"a":' * 50000, b'"' + b"x" * 100000 + b'"', b"\xff\xfe\0",
              b'{"model":null}', b'{"model":{}}', b'{"a":1,"a":2}', b"1e999", b"{" + b'"k":1,' * 5000 + b'"k":1}']


class Aim:
    """What an attacker has: where, whose tokens, what exists, its random numbers; and the book of what came back."""

    def __init__(self, said):
        self.port, self.tokens, self.things, self.seed = said["port"], said["tokens"], said["things"], said["seed"]
        self.statuses, self.bad, self.held, self.lock = collections.Counter(), [], {}, threading.Lock()

    def note(self, what, status, why=None):
        with self.lock:
            self.statuses[str(status)] += 1
            if why and len(self.bad) < 5:
                self.bad.append(f"{what}: {why}"[:300])

    def judge(self, what, status, data=b""):
        self.note(what, status, f"status {status}: {data[:150]!r}" if status >= 500 and status not in (503, 504, 505, 507) else None)

    def is_over(self):
        """Whether the service is being ended, or was."""
        try:
            return self.ask(None, "GET", "/readyz") == 503
        except (OSError, http.client.HTTPException):
            return True

    def connect(self, source=None, timeout=20, small=False):
        connection = socket.socket()
        if small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(timeout)
        if source:
            connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        return connection

    def ask(self, who, method, path, body=None, headers={}, timeout=20):
        """The status; `body` is bytes or JSON. 0 when it took longer than `timeout`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            sent = {**(JSON if data is not None else {}), **bearer(self.tokens.get(who)), **headers}
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = b"" if answer.getheader("Content-Type") == "text/event-stream" else answer.read()
            self.judge(f"{method} {path}", answer.status, text)
            return answer.status
        except socket.timeout:
            self.note(f"{method} {path}", "left")
            return 0
        finally:
            connection.close()

    def head(self, who, method, path, lines=""):
        token = f"Authorization: Bearer {self.tokens[who]}\r\n" if who else ""
        return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{token}{lines}\r\n".encode()


def path_of(pattern, things, rng):
    values = {"{id}": ["model", "cluster", "strategy", "absent"], "{session}": ["session", "absent"], "{number}": ["1", "2"], "{uid}": ["uid"],
              "{operation}": ["absent"], "{code}": ["invalid"], "{way}": ["zero-3"]}
    for name, words in values.items():
        word = rng.choice(words)
        pattern = pattern.replace(name, urllib.parse.quote(str(things.get(word, word)), safe=""))
    return pattern


# ---- what is malformed ----

def malformed(aim, rng):
    """Frames that are wrong, and requests within bodies."""
    model, token = json.dumps(aim.things["toy"]).encode(), f"Bearer {aim.tokens['reader']}"
    method, path, headers, body = rng.choice((("GET", "/healthz", {}, None), ("POST", "/sign-in", {}, b"token=x"), ("GET", "/api/v1/records", {}, None),
                                              ("POST", "/api/v1/models", JSON, model), ("POST", "/api/v1/predictions", JSON, b'{"model":"x"}')))
    name, kind, parts = framing.Framer(rng).frame(method, path, {**headers, "Authorization": token}, body)
    connection = aim.connect()
    try:
        answers, whole, closed = framing.converse(connection, [*parts, framing.SECOND], [], 10 if kind == framing.GOOD else 0.2)
        over = any(a[0] == 503 for a in answers) or not answers  # it is being ended, or was
        if not over and not (closed and aim.is_over()):  # which closes connections between two requests
            framing.check(name, kind, answers, whole, closed)
        for status, _, data in answers:
            aim.judge(name, status, data)
    except framing.Malformed as error:
        aim.note(name, "malformed", str(error))
    finally:
        connection.close()


def endless(aim, rng):
    """Headers, targets, chunk extensions and trailers without an end; a thousand requests before the first answer is read."""
    what = rng.randrange(5)
    connection = aim.connect(timeout=5)
    try:
        start = (b"GET /", aim.head(None, "GET", "/healthz")[:-2], b"POST /sign-in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;",
                 b"POST /sign-in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", aim.head(None, "GET", "/healthz") * 1000)[what]
        connection.sendall(start)
        for _ in range(2000 if what < 4 else 0):
            connection.sendall((b"x" * 1000, b"X-%d: y\r\n" % rng.randrange(10**9) * 30, b"x" * 1000, b"X-A: b\r\n" * 100)[what])
        framing.converse(connection, [], [], 0.2)
    except framing.Malformed as error:
        aim.note("endless", "malformed", str(error))
    finally:
        connection.close()
        aim.note("endless", "cut")


def bodies(aim, rng):
    """Every route, with bodies that are none, empty in chunks, of another type, deep, or 16 MiB of numbers."""
    table = aim.held.setdefault("routes", routes())
    method, pattern, _ = rng.choice(table)
    method = rng.choice((method, method, method, "POST", "PATCH", "HEAD"))
    path, who = path_of(pattern, aim.things, rng), rng.choice(("runner", "runner", "reader", None))
    if method == "GET" and pattern.endswith("/events"):
        return
    what = rng.random()
    form = rng.random() < 0.3
    lines = "Content-Type: application/x-www-form-urlencoded\r\nOrigin: http://localhost\r\n" if form else ""
    if what < 0.4:  # chunks, and none of them
        head = aim.head(who, method, path, lines + "Transfer-Encoding: chunked\r\nConnection: close\r\n")
        head = head.replace(b"Content-Type: application/json\r\n", b"", 1) if form else head
        connection = aim.connect()
        try:
            answers, _, _ = framing.converse(connection, [head, rng.choice((b"0\r\n\r\n", b"1\r\n \r\n0\r\n\r\n", b"0\r\nX: y\r\n\r\n"))], [method == "HEAD"], 10)
            for status, _, data in answers:
                aim.judge(f"{method} {path}, chunked and empty", status, data)
        except framing.Malformed as error:
            aim.note(f"{method} {path}, chunked and empty", "malformed", str(error))
        finally:
            connection.close()
    elif what < 0.98:
        aim.ask(who, method, path, rng.choice(ODD_BODIES))
    else:
        try:
            aim.ask(who, method, path, b"[" + b"0," * (8 << 20))
        except (BrokenPipeError, ConnectionResetError):
            aim.note("16 MiB", "cut")


# ---- who is slow, or only there ----

def hold(aim, key, make, most):
    """Keep `most` connections, making a new one for each that is gone."""
    held = aim.held.setdefault(key, [])
    if len(held) < most:
        held.append(make())
    else:
        time.sleep(0.05)
    return held


def trickle(aim, held, byte):
    for connection in held[:]:
        try:
            connection.send(byte)
        except (BlockingIOError, socket.timeout):
            pass
        except OSError:
            held.remove(connection)
            aim.note("trickle", "cut")


def slow(aim, rng):
    """Headers and bodies of a byte now and then."""
    def make():
        connection = aim.connect()
        connection.sendall(rng.choice((b"GET /healthz HTTP/1.1\r\nX: ", aim.head("reader", "POST", "/api/v1/predictions", "Content-Length: 9000\r\n") + b"{",
                                       aim.head(None, "POST", "/sign-in", "Content-Length: 9000\r\nOrigin: http://localhost\r\n") + b"token=")))
        return connection
    held = hold(aim, threading.get_ident(), make, 60)
    if len(held) % 10 == 0:
        trickle(aim, held, b"x")


def deaf(aim, _):
    """Asks for much and reads nothing."""
    def make():
        connection = aim.connect(small=True)
        ask = [aim.head("reader", "GET", p) for p in ("/openapi.json", "/api/v1/records?page_size=1000&iterations=true", aim.things["session"] + "/events")]
        connection.sendall(ask[0] * 20 + ask[1] * 20 + ask[2])
        return connection
    hold(aim, threading.get_ident(), make, 50)


def idle_from(aim, sources):
    def make():
        connection = aim.connect(source=sources[len(aim.held.get("idle", ())) % len(sources)], timeout=2)
        return connection
    held = hold(aim, "idle", make, 2000)
    if len(held) >= 2000 or len(held) % 100 == 0:
        for connection in held[:]:
            connection.setblocking(False)
            try:
                if not connection.recv(1):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                held.remove(connection)
                aim.note("idle", "cut")


def idle(aim, _):
    """2,000 connections of one address that say nothing."""
    idle_from(aim, ["127.0.0.2"])


def idle_everywhere(aim, _):
    """2,000 of eight addresses."""
    idle_from(aim, [f"127.0.0.{n}" for n in range(2, 10)])


def sign_in(aim, rng):
    """A sign-in of 16 MiB, all but its last bytes, from anybody; the connection stays."""
    def make():
        connection = aim.connect(timeout=5)
        connection.sendall(b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                           + rng.choice((b"Content-Length: 16777216\r\n\r\ntoken=", b"Transfer-Encoding: chunked\r\n\r\nf00000\r\n")))
        piece, sent = b"x" * 65536, 0
        while sent < (15 << 20):
            connection.sendall(piece)
            sent += len(piece)
        return connection
    hold(aim, threading.get_ident(), make, 50)


# ---- who asks for much ----

def large_model(rng, variables=250):
    """No two alike, so that nothing of it is remembered."""
    names = [f"v{i}" for i in range(variables)]
    shapes = [[rng.randint(100, 1000), rng.randint(100, 1000)] for _ in names]
    return {"schema": "syncopate.model/1", "name": f"m{rng.getrandbits(32)}", "batch_per_device": 8,
            "variables": [{"name": n, "shape": s, "dtype": "f32"} for n, s in zip(names, shapes)],
            "layers": [{"name": "l" + n, "forward_us": rng.randint(10, 900), "backward_us": rng.randint(10, 900), "variables": [n]} for n in names]}


def large_cluster(rng, nodes=64):
    return {"schema": "syncopate.cluster/1", "name": f"c{rng.getrandbits(32)}",
            "nodes": [{"name": "n", "count": nodes, "nic_gbit_per_s": rng.randint(1, 100), "nic_latency_us": 50}]}


def predictions(aim, rng):
    """The most that one may ask, again and again, leaving before it is answered."""
    body = {"model": large_model(rng), "cluster": large_cluster(rng), "baselines": ["byteps"] * 200}
    aim.ask("reader", "POST", "/api/v1/predictions", body, timeout=2)


def domains(aim, rng):
    """Models in place, each another one, small enough to be allowed."""
    body = {"model": large_model(rng, rng.choice((4, 40))), "cluster": large_cluster(rng, 4), "baselines": ["horovod", "wfbp"]}
    aim.ask("reader", "POST", "/api/v1/predictions", body)


def timelines(aim, rng):
    body = {"model": large_model(rng), "cluster": large_cluster(rng, 16), "baselines": ["byteps", "horovod"] * 8, "timeline": True}
    aim.ask("reader", "POST", "/api/v1/predictions", body, timeout=2)


def suggestions(aim, rng):
    """Eight at once, of one session on a large model."""
    aim.ask("runner", "POST", aim.things["large session"] + "/trials:suggest", {"client": f"c{rng.randrange(100)}", "count": 4, "lease_s": 1})


def sessions(aim, rng):
    """Sessions without an end, opened, asked and cancelled."""
    opened = {"model": "toy", "cluster": "four", "ranker": "none", "budget": {"trials": 100000}, "seed": rng.randrange(1000)}
    aim.ask("runner", "POST", "/api/v1/sessions", opened)


def pages(aim, rng):
    """What must be simulated before it can be shown."""
    t = aim.things
    query = f"model={t['large model']}&cluster={t['large cluster']}"
    aim.ask("reader", "GET", rng.choice((
        f"/strategies/{t['large strategy']}?{query}", f"/compare?a={t['large strategy']}&b={t['other strategy']}&{query}",
        t["page"] + "/whole", t["page"], t["session"] + "/importance", t["session"] + "/best", "/")), headers={"Accept": "text/html"}, timeout=2)


def filters(aim, rng):
    """What no index serves, and all there is."""
    where = rng.choice(("client ~ x OR proposer != a AND runner != b", "NOT (" + " OR ".join(f"measured_us = {i}" for i in range(20)) + ")",
                        "number > 0 OR measured_us < 1000000000", ""))
    order = rng.choice(("measured", "-measured", "predicted", "-number"))
    form = rng.choice(("", "&format=csv", "&format=jsonl&references=true", "&iterations=true"))
    where = "&filter=" + urllib.parse.quote(where) if where else ""
    aim.ask("reader", "GET", f"/api/v1/records?page_size=1000&order={order}{where}{form}")


def exports(aim, rng):
    form = rng.choice(("jsonl", "csv", "strategy", "horovod", "pytorch-ddp", "tensorflow", "nccl"))
    aim.ask("reader", "GET", f"{aim.things['session']}/export?format={form}")


def repeats(aim, rng):
    """One write under a thousand keys, and imports of what is there already."""
    key = {"Idempotency-Key": f"k{rng.getrandbits(60)}"}
    aim.ask("runner", "POST", "/api/v1/models", aim.things["toy"], headers=key)


def main():
    attack = globals()[sys.argv[1]]
    aim = Aim(json.loads(sys.stdin.readline()))

    def work(index):
        rng = random.Random(f"{aim.seed} {index}")
        while True:
            try:
                attack(aim, rng)
            except GONE:
                aim.note("", "gone")
                time.sleep(0.05)
            except Exception as error:  # pylint: disable=broad-except
                aim.note(sys.argv[1], "trouble", repr(error))
                time.sleep(0.5)

    print("ready", flush=True)
    for index in range(int(sys.argv[2])):
        threading.Thread(target=work, args=(index,), daemon=True).start()
    sys.stdin.read()
    with aim.lock:
        print(json.dumps({"statuses": aim.statuses, "bad": aim.bad}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
