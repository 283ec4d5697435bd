"""What goes wrong around a service: the disk, the clock, and clients that stall, flood, send garbage or go away. After each the
service serves on, and its dataset is whole. Needs OUT and ROOT; root for the disks."""
import json
import os
import select
import shutil
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
    inside(site, "cp", f"{os.getcwd()}/small/d.db", "/tmp/.")  if False else None
    assert site.ask("GET", session + "/trials")[1]["items"][0]["state"] in ("complete", "running")
    assert site.stop() == 0, site.tail()
    return None


def a_dataset_made_read_only_is_read_on():
    if no_namespaces():
        return no_namespaces()
    os.makedirs("fixed", exist_ok=True)
    site = Service(dataset="fixed/d.db", wrapper=in_a_namespace("mount -t tmpfs -o size=30m none fixed")).start()
    session = site.open_session(budget={"trials": 50})
    assert complete_one(site, session) == 200
    folder = os.path.join(os.getcwd(), "fixed")
    # Files that are open for writing keep a mount from becoming read-only, so that it is the files that refuse.
    inside(site, "sh", "-c", f"chattr +i {folder}/d.db {folder}/d.db-wal 2>/dev/null || mount -o remount,ro {folder} || true")
    changed = [complete_one(site, session) for _ in range(3)]
    assert all(status in (200, 500, 507) for status in changed), changed
    assert site.ask("GET", session)[0] == 200 and site.ask("GET", "/api/v1/models/toy")[0] == 200
    assert site.alive() and site.stop() in (0, 1)
    return None
