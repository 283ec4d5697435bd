"""A service for tests: started, killed and started again on one port, with clients that repeat what was not answered."""
import atexit
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time

ROOT = os.environ["ROOT"]
PROGRAM = os.path.abspath(os.path.join(ROOT, os.environ["OUT"], "bin/syncopate"))
MODEL = {"schema": "syncopate.model/1", "name": "toy", "batch_per_device": 8,
         "variables": [{"name": "a", "shape": [64, 64], "dtype": "f32"}, {"name": "b", "shape": [256, 256], "dtype": "f32"},
                       {"name": "c", "shape": [1024, 256], "dtype": "f32"}],
         "layers": [{"name": "l1", "forward_us": 2000, "backward_us": 4000, "variables": ["a"]},
                    {"name": "l2", "forward_us": 3000, "backward_us": 5000, "variables": ["b"]},
                    {"name": "l3", "forward_us": 2000, "backward_us": 6000, "variables": ["c"]}]}
CLUSTER = {"schema": "syncopate.cluster/1", "name": "four",
           "nodes": [{"name": "n", "count": 4, "nic_gbit_per_s": 1, "nic_latency_us": 50}]}
GONE = (OSError, http.client.HTTPException, json.JSONDecodeError)


def example(kind, name):
    with open(f"{ROOT}/examples/{kind}/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*arguments, check=True):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=check, timeout=60)


class Service:
    """`wrapper` is a command that runs the command behind it; `environment` is added to this process's. Without `opened`
    it asks for tokens, and `headers` go with every request. It runs in `folder`."""

    def __init__(self, *options, dataset="d.db", wrapper=(), environment={}, log="serve.err", opened=True, folder="."):
        self.command = [*wrapper, PROGRAM, "serve", *(["--open"] if opened else []), "--dataset", dataset, *options]
        self.headers, self.folder = {}, folder
        self.environment = {**os.environ, **environment}
        self.dataset, self.log, self.port, self.process = dataset, log, free_port(), None
        atexit.register(lambda: self.process and self.alive() and self.process.kill())  # after a test that failed

    def start(self, wait=True):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*self.command, "--listen", f"127.0.0.1:{self.port}"], stdout=subprocess.PIPE,
                                            stderr=log, text=True, env=self.environment, cwd=self.folder)
        if wait:
            self.wait_until_up()
        return self

    def wait_until_up(self):
        line = self.process.stdout.readline()
        assert "syncopate serves" in line, (line, self.tail())

    def tail(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()[-1500:]

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)

    def alive(self):
        return self.process.poll() is None

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def raw(self, data=b"", timeout=60):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        connection.sendall(data)
        return connection

    def ask(self, method, path, body=None, headers={}, timeout=60):
        """(status, JSON or bytes)"""
        connection = self.connect(timeout)
        try:
            sent = {**self.headers, **headers, **({"Content-Type": "application/json"} if body is not None else {})}
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if "json" in (answer.getheader("Content-Type") or "") else data
        finally:
            connection.close()

    def insist(self, *request, **options):
        return insist([self], *request, **options)

    def open_session(self, model=MODEL, cluster=CLUSTER, **options):
        for kind, body in (("models", model), ("clusters", cluster)):
            status, answer = self.ask("POST", "/api/v1/" + kind, body)
            assert status in (200, 201), answer
        status, session = self.ask("POST", "/api/v1/sessions",
                                   {"model": model["name"], "cluster": cluster["name"], **options})
        assert status == 201, session
        return session["href"]


def insist(sites, method, path, body=None, headers={}, pause_s=0.05):
    """As Service.ask, of these services in turn while there is no answer or it is "later"."""
    for site in itertools.cycle(sites):
        try:
            status, answer = site.ask(method, path, body, headers)
            if status not in (429, 503, 507):
                return status, answer
        except GONE:
            pass
        time.sleep(pause_s)


def make_token(name, role, team, dataset, *options):
    return run("serve", "token", "create", name, "--role", role, "--team", team, "--dataset", dataset, *options).stdout.strip()


def bearer(secret):
    return {"Authorization": "Bearer " + secret} if secret else {}


def routes():
    """[(method, pattern, role)] of the whole table, pages too: from the source, since /openapi.json leaves pages out."""
    with open(f"{ROOT}/service/http/routes.c", encoding="utf-8") as file:
        rows = re.findall(r'\{"([A-Z]+)",\s*"(/[^"]*)",\s*ROLE_([A-Z]+)', file.read())
    assert len(rows) > 50, len(rows)
    return [(method, pattern, role.lower()) for method, pattern, role in rows]


def check_dataset(dataset):
    done = run("dataset", "check", "--dataset", dataset, check=False)
    assert done.returncode == 0 and "as they should be" in done.stdout + done.stderr, (done.stdout + done.stderr)[:500]


def report(tests):
    """Run them and print the lines of tests/README.md."""
    import traceback
    for test in tests:
        start = time.monotonic()
        try:
            why = test()
            print(f"skip {test.__name__}: {why}" if why else f"ok {test.__name__}")
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            print(f"not ok {test.__name__}:", repr(error).replace("\n", " ")[:2000])
        print(f"# {test.__name__}: {time.monotonic() - start:.1f} s", flush=True)
