"""REQUESTS (5,000) requests made from /openapi.json, valid ones and mutated ones, for at most SECONDS (20; 0: as long as it
takes): no crash, no status but those of the description, no 5xx but 503 and 507, and every body fits the schema of its
status. What valid requests made (sessions, trials on lease, records) is what later ones are about. One in twelve goes by
a connection of its own in a frame of framing.py, good or bad, with a second request behind it.
SYNCOPATE_TEST_SEED gives other requests. Needs OUT and ROOT."""
import collections
import http.client
import json
import os
import random
import re
import string
import time
import urllib.parse

import framing
import schema
import service
from service import GONE, Service, check_dataset, report

REQUESTS, SECONDS = int(os.environ.get("REQUESTS", "5000")), float(os.environ.get("SECONDS", "20"))
SEED = int(os.environ.get("SYNCOPATE_TEST_SEED", "20261121"))
STRANGE = ["", " ", "\0", "a\0b", "\n", "é", "💥", "\ud800", "%00", "../..", "'; DROP TABLE trials; --", "<script>", "{", "-", "0",
           "-1", "1e400", "9" * 40, "NaN", "null", "x" * 300, "x" * 5000, "|a|b|", "*", "service"]
NUMBERS = [0, -1, 1, 2, 0.5, -0.0, 1e-320, 1e308, 1e16, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30, 65, 100001, 1e13, float("nan")]
FILTERS = ["state = complete", "model = toy AND measured_us < 90000", "NOT (number > 3 OR team = red)", "x = 1", "model =", "((",
           "measured_us IN (1, 2, 3)", "model = 'a''b'", "state = complete " + "AND number > 1 " * 80, "(" * 500, "NOT " * 900]
# Requests that keep the service busy for long come less often.
RARE = {"POST /api/v1/rankers": 0.1, "POST /api/v1/sessions": 0.3, "POST /api/v1/sessions/{session}/trials:suggest": 0.5,
        "GET /api/v1/sessions/{session}/best": 0.5, "GET /api/v1/sessions/{session}/importance": 0.5,
        "POST /api/v1/sessions/{session}:stop": 0.1, "POST /api/v1/sessions/{session}:cancel": 0.1,
        "POST /api/v1/sessions/{session}:pause": 0.3}


# Whose answers take long, or make work that goes on.
FEW_FRAMES = ("/api/v1/rankers", "/api/v1/sessions")


class Makers:
    """Values that fit a schema, and things that exist."""

    def __init__(self, document, rng):
        self.document, self.rng = document, rng
        self.known = collections.defaultdict(lambda: collections.deque(maxlen=24))
        self.known["offer"], self.known["key"] = collections.deque(maxlen=40), collections.deque(["k1"], maxlen=8)

    def one_of(self, *kinds):
        pool = [word for kind in kinds for word in self.known[kind]]
        return self.rng.choice(pool) if pool and self.rng.random() < 0.95 else "absent"

    def named(self, name):
        """A string member or parameter called `name`, where it must name something."""
        ids = {"model": ("model",), "cluster": ("cluster",), "strategy": ("strategy",), "strategies": ("strategy",),
               "session": ("session",), "uid": ("uid",), "operation": ("operation",), "from": ("ranker",), "ranker": ("ranker",)}
        if name in ids:
            return self.one_of(*ids[name])
        words = {"baseline": ["wfbp", "horovod", "ps", "mg-wfbp"], "baselines": ["wfbp", "horovod", "pytorch-ddp", "nothing"],
                 "client": ["c1", "c2", "c3"], "proposer": ["wfbp", "guided"], "runner": ["lab", "local", "mpirun", "ask"],
                 "team": ["local", "red"], "filter": FILTERS, "page_token": ["", "x", self.one_of("page")], "number": ["1", "2"],
                 "shared": ["red", "blue"]}
        return self.rng.choice(words[name]) if name in words else "".join(self.rng.choices(string.ascii_lowercase, k=6))

    def number(self, rule):
        low = rule.get("minimum", rule.get("exclusiveMinimum", 0))
        high = min(rule.get("maximum", low + 50), low + 10**6)
        if rule.get("type") == "integer":
            return self.rng.randint(int(low), int(min(high, low + 50)))
        return round(low + (high - low) * self.rng.uniform(0.001, 1), 4)

    def text(self, rule, name):
        pattern = rule.get("pattern", "")
        return self.one_of("strategy", "model") if "[0-9a-f]" in pattern else self.named(name)

    def ended_trial(self, kind):
        trial = {"strategy": self.one_of("strategy"), "proposer": "wfbp", "runner": "lab"}
        trial |= {"model": "toy", "cluster": "four"} if kind == "NewRecord" else {}
        if self.rng.random() < 0.2:
            return trial | {"state": "failed", "reason": "it broke"}
        return trial | {"iterations_us": [round(self.rng.uniform(9000, 20000), 2) for _ in range(self.rng.randint(1, 4))]}

    def exported_lines(self):
        """Lines of an export, as they are (then they add nothing) or as if another dataset had measured it all again."""
        text = self.rng.choice(self.known["export"])
        if self.rng.random() < 0.7:
            uids = {uid: f"{self.rng.getrandbits(128):032x}" for uid in re.findall(r'"uid":"([^"]+)"', text)}
            sessions = {s: f"s-{self.rng.getrandbits(64):016x}" for s in re.findall(r'session/1","id":"([^"]+)"', text)}
            for old, new in {**uids, **sessions}.items():
                text = text.replace(f'"{old}"', f'"{new}"')
        return text.splitlines()

    def value(self, rule, name=""):
        rng = self.rng
        if "$ref" in rule:
            kind = rule["$ref"].rsplit("/", 1)[1]
            if kind in ("NewRecord", "NewTrial") and rng.random() < 0.7:
                return self.ended_trial(kind)
            if kind == "LineBatch" and rng.random() < 0.8:
                return {"lines": self.exported_lines()}
            if kind in ("Model", "Cluster", "Strategy") and self.known["whole " + kind] and rng.random() < 0.8:
                return json.loads(rng.choice(self.known["whole " + kind]))
            return self.value(self.document["components"]["schemas"][kind], name)
        if "oneOf" in rule:
            return self.value(rng.choice(rule["oneOf"]), name)
        for word in ("const", "enum"):
            if word in rule:
                return rule[word] if word == "const" else rng.choice(rule[word])
        kind = rule.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            needed = rule.get("required", ())
            return {k: self.value(r, k) for k, r in rule.get("properties", {}).items() if k in needed or rng.random() < 0.4}
        if kind == "array":
            least = rule.get("minItems", 0)
            return [self.value(rule["items"], name) for _ in range(rng.randint(least, max(least, min(3, rule.get("maxItems", 3)))))]
        if kind == "boolean":
            return rng.random() < 0.5
        return self.number(rule) if kind in ("integer", "number") else self.text(rule, name)


class Mutator:
    def __init__(self, makers):
        self.makers, self.rng = makers, makers.rng

    def junk(self, depth=0):
        rng = self.rng
        kind = rng.randrange(7 if depth < 3 else 4)
        if kind == 4:
            return [self.junk(depth + 1) for _ in range(rng.randrange(4))]
        if kind == 5:
            return {rng.choice(STRANGE): self.junk(depth + 1) for _ in range(rng.randrange(3))}
        return [None, rng.choice(STRANGE), rng.choice(NUMBERS), rng.random() < 0.5, 0, 0, self.makers.named("strategy")][kind]

    def places(self, value, out):
        """Every (container, key) in it."""
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in list(items):
            out.append((value, key))
            self.places(inner, out)
        return out

    def body(self, value):
        """Some members lost, added, of other types or values."""
        rng = self.rng
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            places = self.places(value, [])
            if not places or rng.random() < 0.05:
                return self.junk()
            container, key = rng.choice(places)
            what = rng.randrange(4)
            if what == 0:
                del container[key]
            elif what == 1 and isinstance(container, dict):
                container[rng.choice(STRANGE + ["nme"])] = self.junk()
            elif what == 2 and isinstance(container, list):
                container.extend([container[key]] * rng.choice((1, 70, 2000)))
            else:
                container[key] = self.junk()
        return value

    def text(self, data):
        """Bytes that are no longer quite JSON."""
        rng, at = self.rng, self.rng.randrange(len(data) + 1)
        what = rng.randrange(9)
        if what == 0:
            return data[:at]
        if what == 1:
            return data[:at] + bytes([rng.randrange(256)]) + data[at:]
        if what == 2:
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
        if what == 3:
            return b"[" * rng.choice((10, 2000, 20000)) + data
        if what == 4:
            return data.decode().encode("utf-16")
        if what == 5:
            return b"\xef\xbb\xbf" + data
        if what == 6:
            return data + data
        if what == 7:
            return data.replace(b'":', b'":1,"x":', 1) if b'":' in data else b"nul"
        return b"{" + b'"client":"c1",' * 3 + data[1:]

    def headers(self, headers):
        rng = self.rng
        name, value = rng.choice((
            ("Content-Type", "text/plain"), ("Content-Type", "application/json; charset=latin1"), ("Content-Type", ""),
            ("Idempotency-Key", "x" * 300), ("Idempotency-Key", "a b"), ("If-Match", '"x"'), ("If-Match", "*"), ("If-Match", ","), ("If-Match", "x"),
            ("If-None-Match", "*"), ("If-None-Match", '"a", W/"b"'), ("Origin", "http://elsewhere"), ("Origin", "null"),
            ("Host", "elsewhere"), ("Host", ""), ("Authorization", "Bearer syn_x"), ("Authorization", "Basic eDp5"),
            ("Cookie", "syncopate_token=syn_x"), ("Last-Event-ID", "-1"), ("Last-Event-ID", "9" * 30), ("Accept", "text/html"),
            ("Accept-Encoding", "gzip"), ("Range", "bytes=0-1"), ("X-" + "y" * 200, "z" * 3000), ("Expect", "100-continue"),
            ("Transfer-Encoding", "gzip"), ("Content-Length", "1"), ("Content-Length", "-1"), ("Upgrade", "websocket")))
        headers[name] = value
        return headers

    def path(self, path):
        rng, at = self.rng, self.rng.randrange(1, len(path) + 1)
        what = rng.randrange(6)
        if what == 0:
            return path[:at] + urllib.parse.quote(rng.choice(STRANGE), safe="", errors="replace") + path[at:]
        if what == 1:
            return path + rng.choice(("/", "//", "/x", ":x", "?", "?x=1", "&", "?page_size=0", "?page_size=x", "%", "%zz", "%ff"))
        if what == 2:
            return path[:at]
        if what == 3:
            return path.replace("/api", rng.choice(("/API", "//api", "/./api", "/x/../api")), 1)
        if what == 4:
            return path + ("&" if "?" in path else "?") + "filter=" + urllib.parse.quote(rng.choice(FILTERS + STRANGE[:7]), errors="replace")
        return path[:at] + path[at + 1:]


class Fuzzer:
    def __init__(self, site, rng):
        self.site, self.rng = site, rng
        self.document = site.ask("GET", "/openapi.json")[1]
        self.makers = Makers(self.document, rng)
        self.mutator = Mutator(self.makers)
        self.routes = [(m.upper(), p, o) for p, ms in self.document["paths"].items() for m, o in ms.items() if m != "parameters"]
        self.weights = [RARE.get(f"{m} {p}", 1) for m, p, _ in self.routes]
        self.framer, self.frames = framing.Framer(rng), collections.Counter()
        self.statuses, self.succeeded, self.connection, self.trail = collections.Counter(), set(), None, collections.deque(maxlen=3)

    # ---- what to send ----

    def fill(self, pattern, operation, offer):
        """Path with its parameters and query."""
        query = []
        for p in operation.get("parameters", ()):
            name, value = p["name"], None
            if p["in"] == "path":
                kind = pattern.split("/")[3].split(":")[0].rstrip("s") if name == "id" else name
                kind = {"strategie": "strategy"}.get(kind, kind)
                value = str(offer[name]) if offer and name in offer else self.makers.named(kind)
                if name == "number" and not offer:
                    value = str(self.rng.randint(1, 20))
                pattern = pattern.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
            elif p["in"] == "query" and self.rng.random() < 0.3:
                query.append((name, str(self.makers.value(p["schema"], name)).replace("True", "true").replace("False", "false")))
        return pattern + ("?" + urllib.parse.urlencode(query) if query else "")

    def request(self):
        """(route, method, path, headers, body or None)"""
        rng, makers = self.rng, self.makers
        method, pattern, operation = route = rng.choices(self.routes, self.weights)[0]
        offer = rng.choice(makers.known["offer"]) if "{number}" in pattern and makers.known["offer"] and rng.random() < 0.8 else None
        path, headers, body = self.fill(pattern, operation, offer), {}, None
        if "multipart/form-data" in operation.get("requestBody", {"content": {}})["content"]:
            trace = b'[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":9}]'
            body = b"".join(b'--b\r\nContent-Disposition: form-data; name="trace"; filename="r"\r\n\r\n' + trace + b"\r\n"
                            for _ in range(rng.choice((1, 1, 2)))) + b"--b--\r\n"
            body = self.mutator.text(body) if rng.random() < 0.5 else body
            headers["Content-Type"] = "multipart/form-data; boundary=b"
        elif "requestBody" in operation:
            value = makers.value(operation["requestBody"]["content"]["application/json"]["schema"])
            if offer:
                value |= {"client": offer["client"], "attempt": offer["attempt"]}
            if pattern.endswith(":complete") and "iterations_us" in value:
                value["iterations_us"] += [9000]
            value = self.mutator.body(value) if rng.random() < 0.4 else value
            body = json.dumps(value).encode()
            body = self.mutator.text(body) if rng.random() < 0.1 else body
            headers["Content-Type"] = "application/json"
        keyed = any(p["name"] == "Idempotency-Key" for p in operation["parameters"])
        if rng.random() < (0.1 if keyed else 0.01):
            headers["Idempotency-Key"] = rng.choice(makers.known["key"])
        headers = self.mutator.headers(headers) if rng.random() < 0.12 else headers
        path = self.mutator.path(path) if rng.random() < 0.1 else path
        method = rng.choice(("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "FOO")) if rng.random() < 0.04 else method
        return route, method, path, headers, body

    # ---- what came back ----

    def send(self, method, path, headers, body):
        """(status, headers, body), or None where the connection was closed without an answer, as bad framing may end."""
        for _ in range(2):
            fresh = self.connection is None
            # May wait for more, or be closed before its answer can be read.
            broken = {"Expect", "Content-Length", "Transfer-Encoding"} & set(headers)
            long = len(body or b"") > 60000
            self.connection = self.connection or self.site.connect(60)
            try:
                if self.connection.sock is None:
                    self.connection.connect()
                self.connection.sock.settimeout(0.2 if broken else 60)
                self.connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
                for name, value in headers.items():
                    self.connection.putheader(name, value)
                if body is not None and "Content-Length" not in headers:
                    self.connection.putheader("Content-Length", str(len(body)))
                self.connection.endheaders(body)
                answer = self.connection.getresponse()
                stream = answer.getheader("Content-Type") == "text/event-stream"
                result = answer.status, answer.headers, b"" if stream else answer.read()
                if stream or answer.will_close or broken:
                    self.hang_up()
                return result
            except GONE:
                self.hang_up()
                time.sleep(0 if broken or long or not fresh else 1)
                assert self.site.alive(), ("the service died", self.site.process.returncode, self.trail[-1], self.site.tail())
                if broken or long:
                    return None
                assert not fresh, ("no answer", self.trail[-1])
        return None

    def hang_up(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def operation_of(self, method, path):
        """What the description says of it; None for what it does not know."""
        path = path.split("?")[0]
        for pattern, methods in self.document["paths"].items():
            parts, words = pattern.split("/"), path.split("/")
            if len(parts) == len(words) and all(self.fits(p, w) for p, w in zip(parts, words)):
                return methods.get("get" if method == "HEAD" else method.lower())
        return None

    @staticmethod
    def fits(part, word):
        if not part.startswith("{"):
            return part == word
        tail = part[part.index("}") + 1:]
        return word.endswith(tail) and ":" not in word[:len(word) - len(tail)] and len(word) > len(tail)

    def judge(self, method, path, sent, status, headers, data):
        assert status < 500 or status in (503, 507), status
        media = headers.get("Content-Type", "")
        if "X-Request-Id" not in headers:  # the library's own: what it could not read as a request (service/http/README.md)
            assert status in (400, 413, 414, 431, 505) and not media, "no request id"
            return None
        operation = self.operation_of(method, path)
        if status >= 400 and method != "HEAD":
            assert media == "application/problem+json" or media == "text/html; charset=utf-8", media
            assert media.startswith("app") or "text/html" in sent.get("Accept", "") or not path.startswith("/api/"), "a page"
        answer = json.loads(data) if data and media.split(";")[0].endswith("json") else None
        if operation is None:
            page = not path.startswith("/api/") and not media.endswith("json")  # for people: described nowhere
            assert status in (400, 404, 405) or 300 <= status < 400 or method == "OPTIONS" or page, status
        else:
            known = operation["responses"].get(str(status))
            assert known, f"status {status} is not described"
            schema.check_headers(headers, known, self.document)
            if data and media:
                assert media in known["content"], f"{media} is not described"
                if answer is not None:
                    schema.check(answer, known["content"][media]["schema"], self.document)
            if status >= 400 and answer:
                assert answer["code"] in known["description"].split(", "), answer["code"]
        if status >= 400 and answer is not None:
            schema.check(answer, self.document["components"]["schemas"]["Problem"], self.document)
            assert answer["status"] == status and answer["request_id"] == headers["X-Request-Id"]
        return answer

    def learn(self, route, method, path, sent, answer):
        """What exists now."""
        known, (_, pattern, _) = self.makers.known, route
        kind = {"/api/v1/models": "model", "/api/v1/clusters": "cluster", "/api/v1/strategies": "strategy",
                "/api/v1/sessions": "session", "/api/v1/rankers": "operation"}.get(pattern)
        if method == "POST" and kind and "id" in answer:
            known[kind].append(answer["id"])
        known["page"].extend([answer["next_page_token"]] if answer.get("next_page_token") else [])
        known["uid"].extend(answer.get("uids", [])[:3])
        if pattern.endswith(":suggest") and method == "POST":
            client = json.loads(sent)["client"]
            session = urllib.parse.unquote(path.split("/")[4])
            for trial in answer["trials"]:
                known["offer"].append({"session": session, "client": client, "number": trial["number"], "attempt": trial["attempt"]})
                known["whole Strategy"].append(json.dumps(trial["strategy"]))

    # ---- frames ----

    def framed(self):
        """A request that is right, in a frame that may not be."""
        while True:
            (_, pattern, _), method, path, headers, body = self.request()
            plain = not headers or list(headers) == ["Content-Type"]
            if plain and len(body or b"") < 20000 and method in ("GET", "HEAD", "POST", "PATCH") and "/events" not in path and pattern not in FEW_FRAMES:
                return method, path, headers, body

    def framed_step(self):
        method, path, headers, body = self.framed()
        name, kind, parts = self.framer.frame(method, path, headers, body)
        self.trail.append((name, kind, [part[:2000] for part in parts[:50]]))
        connection = self.site.raw(timeout=60)
        try:
            patience = 60 if kind == framing.GOOD else 0.3
            answers, whole, closed = framing.converse(connection, [*parts, framing.SECOND], [method == "HEAD"], patience)
            framing.check(name, kind, answers, whole, closed)
            if kind == framing.GOOD:
                status, got, data = answers[0]
                self.judge(method, path, headers, status, titled(got), data)
        except (AssertionError, ValueError, KeyError, framing.Malformed) as error:
            raise AssertionError((str(error)[:300], self.trail[-1])) from error
        finally:
            connection.close()
        assert self.site.alive(), ("the service died", self.site.process.returncode, self.trail[-1], self.site.tail())
        self.frames[kind] += 1
        if self.frames.total() % 50 == 0:
            assert self.site.ask("GET", "/healthz")[0] == 200

    # ---- a step ----

    def step(self):
        if self.rng.random() < 1 / 12:
            self.framed_step()
            return
        route, method, path, headers, body = self.request()
        self.trail.append((method, path[:300], headers, body and body[:2000]))
        got = self.send(method, path, headers, body)
        if got is None:
            self.statuses["closed"] += 1
            return
        status, answered, data = got
        try:
            answer = self.judge(method, path, headers, status, answered, data)
        except (AssertionError, ValueError, KeyError) as error:
            raise AssertionError((str(error)[:300], self.trail[-1], status, data[:500])) from error
        self.statuses[status] += 1
        if status < 300 and method == route[0]:
            self.succeeded.add(f"{route[0]} {route[1]}")
            if isinstance(answer, dict):
                self.learn(route, method, path, body, answer)


def titled(headers):
    """As http.client has them: found by any case."""
    message = http.client.HTTPMessage()
    for name, value in headers.items():
        message[name] = value
    return message


def export(site, path):
    """The text of JSON Lines."""
    connection = site.connect()
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.getheader("Content-Type") == "application/jsonl", answer.status
    text = answer.read().decode()
    connection.close()
    return text


def complete(site, session):
    trial = site.ask("POST", session + "/trials:suggest", {"client": "c1"})[1]["trials"][0]
    done = {"client": "c1", "attempt": trial["attempt"], "iterations_us": [9000, 9001]}
    assert site.ask("POST", f"{session}/trials/{trial['number']}:complete", done)[0] == 200


def set_up(site, makers):
    """One of each, so that there is something to ask about."""
    for kind, whole, body in (("model", "Model", service.MODEL), ("cluster", "Cluster", service.CLUSTER)):
        makers.known["whole " + whole].append(json.dumps(body))
        makers.known[kind].extend([site.ask("POST", f"/api/v1/{kind}s", body)[1]["id"], body["name"]] * 5)
    named = {"model": "toy", "cluster": "four"}
    for baseline in ("wfbp", "horovod"):
        strategy = site.ask("POST", "/api/v1/strategies", {**named, "baseline": baseline})[1]["id"]
        makers.known["strategy"].append(strategy)
        makers.known["whole Strategy"].append(json.dumps(site.ask("GET", "/api/v1/strategies/" + strategy)[1]))
        trial = {**named, "strategy": strategy, "proposer": baseline, "runner": "lab", "iterations_us": [9000, 9100, 9200]}
        makers.known["uid"].extend(site.ask("POST", "/api/v1/records:batchCreate", {"records": [trial, trial]})[1]["uids"])
    ended = site.open_session(budget={"trials": 2}, final_rounds=0)
    complete(site, ended)
    assert site.ask("POST", ended + ":stop")[0] == 200
    makers.known["export"] = [export(site, ended + "/export?format=jsonl"),
                              export(site, "/api/v1/records?format=jsonl&references=true&filter=runner%20%3D%20lab")]
    session = site.open_session(budget={"trials": 500})
    complete(site, session)
    makers.known["session"].extend([session.rsplit("/", 1)[1]])


def every_route_answers_as_described_whatever_is_sent():
    print(f"# seed {SEED}", flush=True)
    site = Service("--no-access-log", "--connections", "4000", "--connections-per-address", "4000", dataset="f.db").start()
    fuzzer = Fuzzer(site, random.Random(SEED))
    set_up(site, fuzzer.makers)
    start, n = time.monotonic(), 0
    while n < REQUESTS and not (SECONDS and time.monotonic() - start > SECONDS):
        fuzzer.step()
        n += 1
    fuzzer.hang_up()
    seconds = time.monotonic() - start
    print(f"# {n} requests in {seconds:.1f} s:", ", ".join(f"{k}: {v}" for k, v in sorted(fuzzer.statuses.items(), key=str)))
    never = [f"{m} {p}" for m, p, _ in fuzzer.routes if f"{m} {p}" not in fuzzer.succeeded]
    print("# frames:", ", ".join(f"{k}: {v}" for k, v in sorted(fuzzer.frames.items())))
    print("# never succeeded:", ", ".join(never) or "none")
    assert site.ask("GET", "/healthz")[0] == 200
    assert site.stop() == 0, site.tail()
    check_dataset("f.db")
    assert "Sanitizer" not in site.tail() and "runtime error" not in site.tail(), site.tail()
    # On a slow day few requests meet few routes.
    assert n >= 50 and (n < 300 or len(never) <= len(fuzzer.routes) // 4), (n, never)
    assert n < 2000 or "POST /api/v1/records:import" not in never, "no import came through"


report([every_route_answers_as_described_whatever_is_sent])
