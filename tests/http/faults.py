"""What goes wrong around a service: the disk, the clock, and clients that stall, flood, send garbage or go away. After each the
service serves on, and its dataset is whole. Needs OUT and ROOT; root for the disks."""
import errno
import json
import os
import select
import socket
import subprocess
import time

import service
from service import GONE, Service, check_dataset, report, run


def complete_one(site, session, client="c1"):
    """Take a trial and end it; the status of the end."""
    status, answer = site.ask("POST", session + "/trials:suggest", {"client": client})
    if status != 200:
        return status
    trial = answer["trials"][0]
    return site.ask("POST", f"{session}/trials/{trial['number']}:complete",
                    {"client": client, "attempt": trial["attempt"], "iterations_us": [9000, 9100]})[0]


def stop(site, dataset):
    assert site.alive(), site.tail()
    assert site.stop() == 0, site.tail()
    check_dataset(dataset)


def hear(connection, seconds):
    """All that comes until the peer closes: (bytes, whether it closed)."""
    data, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        if not select.select([connection], [], [], max(0, until - time.monotonic()))[0]:
            break
        try:
            part = connection.recv(65536)
        except ConnectionError:
            return data, True
        if not part:
            return data, True
        data += part
    return data, False


# ---- disks ----

def in_a_namespace(script):
    """A wrapper: a mount namespace of its own in which `script` has run."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", script + ' && exec "$@"', "sh"]


def no_namespaces():
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        return "needs root and mount namespaces"
    return None


def inside(site, *command):
    """Run a command where the service has its mounts."""
    return subprocess.run(["nsenter", "-t", str(site.process.pid), "-m", *command], capture_output=True, text=True, check=True)


def a_full_disk_is_told_and_nothing_acknowledged_is_lost():
    if no_namespaces():
        return no_namespaces()
    os.makedirs("small", exist_ok=True)
    site = Service(dataset="small/d.db", wrapper=in_a_namespace("mount -t tmpfs -o size=3m none small")).start()
    session, done, full = site.open_session(budget={"trials": 3000}), 0, None
    inside(site, "sh", "-c", f"head -c 900k /dev/zero > {os.getcwd()}/small/ballast")
    inside(site, "sh", "-c", f"cat /dev/zero > {os.getcwd()}/small/filler || true")
    number = 0
    while full is None and number < 200:
        number += 1
        body = {**service.MODEL, "name": f"m{number}", "batch_per_device": number + 1}
        body["variables"] = body["variables"] + [{"name": "n" * 4000 + str(i), "shape": [2], "dtype": "f32"} for i in range(40)]
        body["layers"] = body["layers"] + [{"name": "more", "forward_us": 1, "backward_us": 1,
                                            "variables": [v["name"] for v in body["variables"][3:]]}]
        status, answer = site.ask("POST", "/api/v1/models", body)
        assert status in (200, 201, 507), (status, answer)
        full = answer if status == 507 else None
        done += status == 201
    assert full and full["code"] == "insufficient-storage", full
    assert site.ask("GET", "/healthz")[0] == 200 and site.ask("GET", session)[0] == 200
    ended = complete_one(site, session)
    assert ended in (200, 507), ended
    inside(site, "rm", f"{os.getcwd()}/small/ballast", f"{os.getcwd()}/small/filler")
    until = time.monotonic() + 10
    while complete_one(site, session) != 200:
        assert time.monotonic() < until, site.tail()
        time.sleep(0.1)
    items = site.ask("GET", "/api/v1/models?page_size=1000")[1]["items"]
    assert len(items) == done + 1, (len(items), done)
    assert site.ask("GET", session + "/trials")[1]["items"][0]["state"] in ("complete", "running")
    assert site.stop() == 0, site.tail()
    return None


def write_number(path, number):
    """At once, since it is read at any moment."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(str(number))
    os.rename(path + ".new", path)


def faulty(dataset, **environment):
    """A service with faulty_machine.c preloaded; None without a compiler."""
    library = os.path.join(os.getcwd(), "faulty_machine.so")
    if not os.path.exists(library):
        done = subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", library,
                               f"{service.ROOT}/tests/http/faulty_machine.c"], check=False)
        if done.returncode:
            return None
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    files = {name: os.path.join(os.getcwd(), name.lower()) for name in ("FAULTY_CLOCK", "FAULTY_DISK")}
    for path in files.values():
        write_number(path, 0)
    return Service(dataset=dataset, environment={"LD_PRELOAD": library, "ASAN_OPTIONS": asan, **files, **environment})


def disk_refuses(why, name):
    """Writes are refused as 507 and undone, reads go on, and all is well when the disk is."""
    site = faulty(name)
    if not site:
        return "needs a C compiler"
    session = site.start().open_session(budget={"trials": 50})
    assert complete_one(site, session) == 200
    taken = site.ask("POST", session + "/trials:suggest", {"client": "c2"})[1]["trials"][0]
    end = {"client": "c2", "attempt": taken["attempt"], "iterations_us": [8000, 8100]}
    write_number("faulty_disk", why)
    for _ in range(3):
        status, answer = site.ask("POST", f"{session}/trials/{taken['number']}:complete", end)
        assert status == 507 and answer["code"] == "insufficient-storage", (status, answer)
        status, answer = site.ask("POST", "/api/v1/models", {**service.MODEL, "name": "other"})
        assert status == 507, (status, answer)
    assert site.ask("GET", session)[1]["complete"] == 1
    assert site.ask("GET", "/api/v1/models/toy")[0] == 200 and site.ask("GET", "/api/v1/models/other")[0] == 404
    write_number("faulty_disk", 0)
    status, answer = site.ask("POST", f"{session}/trials/{taken['number']}:complete", end)
    assert status == 200 and answer["iterations_us"] == [8000, 8100], (status, answer)
    assert complete_one(site, session) == 200
    assert site.ask("GET", session)[1]["complete"] == 3
    stop(site, name)
    return None


def a_disk_without_room_refuses_and_recovers():
    return disk_refuses(errno.ENOSPC, "room.db")


def a_disk_that_became_read_only_refuses_and_recovers():
    return disk_refuses(errno.EROFS, "fixed.db")


def an_own_session_waits_for_a_disk_that_refuses():
    site = faulty("own.db", PATH=os.getcwd() + "/bin:" + os.environ["PATH"], SYNCOPATE_WORKER="/bin/true")
    if not site:
        return "needs a C compiler"
    os.makedirs("bin", exist_ok=True)
    with open("bin/mpirun", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nsleep 0.4\nexit 1\n")
    os.chmod("bin/mpirun", 0o755)
    with open("four.json", "w", encoding="utf-8") as file:
        json.dump(service.CLUSTER, file)
    with open("launchers.json", "w", encoding="utf-8") as file:
        json.dump({"launchers": [{"cluster": os.getcwd() + "/four.json", "runner": "local"}]}, file)
    site.command += ["--launchers", "launchers.json"]
    session = site.start().open_session(mode="own", budget={"trials": 3})
    time.sleep(0.2)
    write_number("faulty_disk", errno.ENOSPC)
    time.sleep(2)
    assert site.ask("GET", session)[1]["state"] == "running"
    write_number("faulty_disk", 0)
    until = time.monotonic() + 30
    while site.ask("GET", session)[1]["state"] == "running":
        assert time.monotonic() < until, site.tail()
        time.sleep(0.1)
    trials = site.ask("GET", session + "/trials")[1]["items"]
    assert [t["state"] for t in trials] == ["failed"] * 3, trials
    stop(site, "own.db")
    return None


def an_own_session_that_was_paused_is_resumed_after_a_restart():
    os.makedirs("failing", exist_ok=True)
    with open("failing/mpirun", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nsleep 0.3\nexit 1\n")
    os.chmod("failing/mpirun", 0o755)
    with open("four.json", "w", encoding="utf-8") as file:
        json.dump(service.CLUSTER, file)
    with open("launchers.json", "w", encoding="utf-8") as file:
        json.dump({"launchers": [{"cluster": os.getcwd() + "/four.json", "runner": "local"}]}, file)
    site = service.Service("--launchers", "launchers.json", dataset="paused.db",
                           environment={"PATH": os.getcwd() + "/failing:" + os.environ["PATH"], "SYNCOPATE_WORKER": "/bin/true"})
    session = site.start().open_session(mode="own", budget={"trials": 3})
    assert site.ask("POST", session + ":pause")[0] == 200
    assert site.stop() == 0
    site.start()
    time.sleep(1)
    before = site.ask("GET", session + "/trials")[1]["items"]
    assert site.ask("GET", session)[1]["state"] == "paused" and len(before) < 3, before
    assert site.ask("POST", session + ":resume")[0] == 200
    until = time.monotonic() + 30
    while site.ask("GET", session)[1]["state"] == "running":
        assert time.monotonic() < until, site.tail()
        time.sleep(0.1)
    trials = site.ask("GET", session + "/trials")[1]["items"]
    assert sorted(t["state"] for t in trials if t["state"] != "cancelled") == ["failed"] * 3, trials
    stop(site, "paused.db")


# ---- the clock ----

def a_clock_that_jumps_ends_no_lease_and_keeps_none_alive():
    site = faulty("clock.db")
    if not site:
        return "needs a C compiler"
    session = site.start().open_session(budget={"trials": 50})
    for ahead in (400 * 86400, -400 * 86400):
        write_number("faulty_clock", 0)
        kept = site.ask("POST", session + "/trials:suggest", {"client": "keeps", "lease_s": 60})[1]["trials"][0]
        lost = site.ask("POST", session + "/trials:suggest", {"client": "loses", "lease_s": 1})[1]["trials"][0]
        write_number("faulty_clock", ahead)
        time.sleep(2)
        number, body = lost["number"], {"client": "loses", "attempt": lost["attempt"], "iterations_us": [9000]}
        status, answer = site.ask("POST", f"{session}/trials/{number}:complete", body)
        assert status == 409 and answer["code"] == "stale-attempt", (ahead, status, answer)
        body = {"client": "keeps", "attempt": kept["attempt"], "iterations_us": [9000, 9001]}
        assert site.ask("POST", f"{session}/trials/{kept['number']}:heartbeat", {k: body[k] for k in ("client", "attempt")})[0] == 200
        status, answer = site.ask("POST", f"{session}/trials/{kept['number']}:complete", body)
        assert status == 200, (ahead, status, answer)
        again = site.ask("POST", session + "/trials:suggest", {"client": "keeps"})[1]["trials"][0]
        assert (again["number"], again["attempt"]) == (number, lost["attempt"] + 1), (again, lost)
        body |= {"attempt": again["attempt"]}
        assert site.ask("POST", f"{session}/trials/{number}:complete", body)[0] == 200
    stop(site, "clock.db")
    return None


# ---- clients ----

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def a_slow_client_is_cut_and_others_do_not_wait():
    site = Service(dataset="slow.db").start()
    started = time.monotonic()
    head = site.raw(GET[:20])
    silent = site.raw()
    post = b"POST /api/v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
    body = site.raw(post)
    closed = {}
    while time.monotonic() - started < 20 and head not in closed:
        for connection, byte in ((head, b"x"), (body, b" ")):
            if connection not in closed:
                try:
                    connection.sendall(byte)
                    closed.update({connection: time.monotonic()} if hear(connection, 0.2)[1] else {})
                except OSError:
                    closed[connection] = time.monotonic()
        before = time.monotonic()
        assert site.ask("GET", "/healthz")[0] == 200 and time.monotonic() - before < 3
    assert 5 < closed.get(head, 1e9) - started < 20, "headers that trickle are cut after 10 s"
    for connection in (head, silent, body):
        connection.close()
    stop(site, "slow.db")


def a_client_that_does_not_read_holds_nobody_up():
    site = Service(dataset="deaf.db").start()
    session = site.open_session(budget={"trials": 400})
    path = session + "/events"
    deaf = []
    for _ in range(20):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", site.port))
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() + b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        deaf.append(connection)
    for _ in range(12):
        before = time.monotonic()
        assert complete_one(site, session) == 200
        assert time.monotonic() - before < 10
    for connection in deaf:
        connection.close()
    stop(site, "deaf.db")


def a_flood_is_bounded_and_passes():
    site = Service("--connections", "60", "--connections-per-address", "40", dataset="flood.db").start()
    held = []
    for _ in range(200):
        try:
            held.append(site.raw(GET, timeout=5))
        except OSError:
            pass
    answered = sum(1 for c in held if hear(c, 0.05)[0].startswith(b"HTTP/1.1 200"))
    assert 10 <= answered <= 40, answered
    for connection in held:
        connection.close()
    until = time.monotonic() + 10
    while True:
        try:
            assert site.ask("GET", "/healthz")[0] == 200
            break
        except GONE:
            assert time.monotonic() < until
            time.sleep(0.1)
    stop(site, "flood.db")


def a_token_that_asks_too_often_is_told_to_wait():
    secret = run("serve", "token", "create", "eager", "--role", "read", "--requests-per-s", "5", "--dataset", "rate.db").stdout.strip()
    site = Service(dataset="rate.db").start()
    headers = {"Authorization": "Bearer " + secret}
    answers = [site.ask("GET", "/api/v1/models", headers=headers) for _ in range(40)]
    refused = [a for s, a in answers if s == 429]
    assert refused and all(a["code"] == "rate-limited" for a in refused), [s for s, _ in answers]
    connection = site.connect()
    connection.request("GET", "/api/v1/models", headers=headers)
    answer = connection.getresponse()
    wait = int(answer.getheader("Retry-After") or 0)
    assert answer.status == 200 or wait >= 1
    connection.close()
    time.sleep(max(wait, 1) + 0.2)
    assert site.ask("GET", "/api/v1/models", headers=headers)[0] == 200
    stop(site, "rate.db")


def garbage_and_sudden_ends_leave_it_as_it_was():
    site = Service(dataset="garbage.db").start()
    session = site.open_session(budget={"trials": 50})
    whole = f"POST {session}/trials:suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n".encode() + b'{"client":"c1"}'
    events = f"GET {session}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    texts = [b"\0" * 100, b"\x16\x03\x01" + bytes(range(256)), b"GET", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70000, b"\r\n" * 1000, b"GET /\r\n",
             b"GET /healthz HTTP/1.1\r\n" + b"X: " + b"y" * 60000, GET[:-2] + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
             whole[:-5], whole, events]
    texts += [whole[:n] for n in range(0, len(whole), 7)] + [events] * 30
    for i, text in enumerate(texts):
        try:
            connection = site.raw(text)
            if i % 2:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closed by a reset
            connection.close()
        except OSError:
            pass
    assert complete_one(site, session, "c9") == 200
    metrics = site.ask("GET", "/metrics")[1].decode()
    assert "syncopate_http_requests_in_flight" in metrics
    stop(site, "garbage.db")


report([a_disk_without_room_refuses_and_recovers, a_disk_that_became_read_only_refuses_and_recovers,
        a_full_disk_is_told_and_nothing_acknowledged_is_lost, an_own_session_waits_for_a_disk_that_refuses,
        an_own_session_that_was_paused_is_resumed_after_a_restart,
        a_clock_that_jumps_ends_no_lease_and_keeps_none_alive, a_slow_client_is_cut_and_others_do_not_wait,
        a_client_that_does_not_read_holds_nobody_up, a_flood_is_bounded_and_passes, a_token_that_asks_too_often_is_told_to_wait,
        garbage_and_sudden_ends_leave_it_as_it_was])
