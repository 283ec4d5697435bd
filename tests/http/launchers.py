"""Which clusters a service runs trials on itself (--launchers): those that its administrator means, whatever submitters call
theirs. A program in mpirun's place writes down what it is told. Prints TAP-like lines."""
import json
import os
import re
import stat
import subprocess
import time

from service import PROGRAM, Service, example, report, run

HOME = os.getcwd()


def cluster(*nodes, latency_us=50):
    return {"schema": "syncopate.cluster/1", "name": "pair",
            "nodes": [{"name": n, "nic_gbit_per_s": 1, "nic_latency_us": latency_us} for n in nodes]}


GOOD, EVIL = cluster("good1", "good2"), cluster("-oProxyCommand=touch pwned", "evil2")


def install_mpirun():
    os.makedirs("bin", exist_ok=True)
    for name in ("mpirun", "ssh"):
        with open(f"bin/{name}", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nprintf "%s\\n" "$0" "$@" >>{HOME}/called\nexit 1\n')
        os.chmod(f"bin/{name}", 0o755)
    os.environ.update(PATH=f"{HOME}/bin:{os.environ['PATH']}", SYNCOPATE_WORKER="/bin/true")


def write(name, *launchers):
    with open(name, "w", encoding="utf-8") as file:
        json.dump({"launchers": list(launchers)}, file)


class Site(Service):
    """A service with two teams, A and B, that may run sessions."""

    def __init__(self, dataset, launchers):
        super().__init__("--launchers", launchers, dataset=dataset, log=dataset + ".err")
        self.command.remove("--open")
        self.tokens = {}
        if not os.path.exists(dataset + ".tokens"):
            for team in "AB":
                with open(f"{dataset}.{team}", "w", encoding="utf-8") as file:
                    file.write(run("serve", "token", "create", team, "--role", "run", "--team", team, "--dataset", dataset).stdout)
        for team in "AB":
            with open(f"{dataset}.{team}", encoding="utf-8") as file:
                self.tokens[team] = {"Authorization": "Bearer " + file.read().strip()}

    def put(self, team, what):
        status, body = self.ask("POST", "/api/v1/clusters", what, self.tokens[team])[:2]
        assert status in (200, 201), body
        return body["id"]

    def open_own(self, team, id_):
        assert self.ask("POST", "/api/v1/models", example("models", "mlp-small"), self.tokens[team])[0] in (200, 201)
        return self.ask("POST", "/api/v1/sessions",
                        {"model": "mlp-small", "cluster": id_, "mode": "own", "ranker": "none", "budget": {"trials": 1}},
                        self.tokens[team])[0]

    def said(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()


def hosts_called(seconds=20):
    """What mpirun was told behind --host, once it was called."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.path.exists("called"):
            with open("called", encoding="utf-8") as file:
                words = file.read().split("\n")
            if "--host" in words and words[-1] == "":
                return words[words.index("--host") + 1]
        time.sleep(0.05)
    return None


def forget_calls():
    if os.path.exists("called"):
        os.remove("called")


def a_name_is_the_cluster_that_it_was_when_it_was_first_registered():
    forget_calls()
    site = prepare("pinned.db", GOOD)
    write("pinned.json", {"cluster": "pair", "runner": "mpirun"})
    site = Site("pinned.db", "pinned.json").start()
    good = site.put("A", GOOD)
    assert re.search(f'"pair" is cluster {good}', site.said()), site.said()
    assert stat.S_IMODE(os.stat("pinned.db.launchers").st_mode) == 0o600
    evil = site.put("B", EVIL)
    site.stop()
    site = Site("pinned.db", "pinned.json").start()
    assert site.open_own("A", good) == 201
    assert hosts_called() == "good1:1,good2:1"
    assert site.open_own("B", evil) == 409
    assert re.search(f"{evil} is called \"pair\" too", site.said()), site.said()
    site.stop()


def prepare(dataset, *clusters):
    """A dataset into which submitters have put clusters. They came while the service had no launchers."""
    write("none.json")
    site = Site(dataset, "none.json").start()
    for each in clusters:
        site.put("A" if each is GOOD else "B", each)
    site.stop()
    return site


def a_name_that_several_clusters_have_is_refused():
    prepare("several.db", GOOD, EVIL)
    write("several.json", {"cluster": "pair", "runner": "mpirun"})
    site = Site("several.db", "several.json").start(wait=False)
    assert site.process.wait(20) == 2
    assert 'several clusters are called "pair"' in site.said() and len(re.findall("[0-9a-f]{64}", site.said())) == 2, site.said()
    assert not os.path.exists("several.db.launchers")


def a_whole_id_is_that_cluster():
    forget_calls()
    prepare("whole.db", GOOD, EVIL)
    good = cluster_id("good", GOOD)
    write("whole.json", {"cluster": good, "runner": "mpirun"})
    site = Site("whole.db", "whole.json").start()
    assert not os.path.exists("whole.db.launchers")
    assert site.open_own("A", good) == 201
    assert hosts_called() == "good1:1,good2:1"
    site.stop()
    write("unknown.json", {"cluster": "0" * 64, "runner": "mpirun"})
    site = Site("whole.db", "unknown.json").start(wait=False)
    assert site.process.wait(20) == 2 and "no cluster " + "0" * 12 in site.said(), site.said()


def cluster_id(name, what):
    """The id that a description gets in any dataset."""
    write_json(f"{name}.cluster.json", what)
    site = Service(dataset=f"{name}.id.db", log="id.err").start()
    answer = site.ask("POST", "/api/v1/clusters", what)[1]["id"]
    site.stop()
    return answer


def write_json(name, what):
    with open(name, "w", encoding="utf-8") as file:
        json.dump(what, file)


def a_file_is_the_cluster_that_it_describes():
    forget_calls()
    os.makedirs("etc", exist_ok=True)
    write_json("etc/pair.json", GOOD)
    write("etc/launchers.json", {"file": "pair.json", "runner": "mpirun"})
    prepare("file.db", EVIL)
    site = Site("file.db", "etc/launchers.json").start()
    good = cluster_id("good", GOOD)
    assert site.open_own("A", good) == 201
    assert hosts_called() == "good1:1,good2:1"
    site.stop()
    write("both.json", {"file": "etc/pair.json", "cluster": "pair", "runner": "mpirun"})
    write("neither.json", {"runner": "mpirun"})
    for name in ("both.json", "neither.json"):
        site = Site("file.db", name).start(wait=False)
        assert site.process.wait(20) == 2 and '"cluster" or "file"' in site.said(), site.said()


def a_launcher_whose_nodes_are_no_hosts_is_refused():
    forget_calls()
    write_json("evil.json", EVIL)
    write("evil-launchers.json", {"file": "evil.json", "runner": "mpirun"})
    prepare("evil.db")
    site = Site("evil.db", "evil-launchers.json").start(wait=False)
    assert site.process.wait(20) == 2 and "is no name of a host" in site.said(), site.said()
    assert not os.path.exists("called") and not os.path.exists("pwned")


def a_damaged_file_of_pins_is_told():
    prepare("damaged.db", GOOD)
    write("damaged.json", {"cluster": "pair", "runner": "mpirun"})
    for text, mode in (("{", 0o600), ('{"schema":"syncopate.launchers/1","pins":[{"name":"pair","cluster":"12"}]}', 0o600),
                       ('{"schema":"syncopate.launchers/1","pins":[]}', 0o622)):
        with open("damaged.db.launchers", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod("damaged.db.launchers", mode)
        site = Site("damaged.db", "damaged.json").start(wait=False)
        assert site.process.wait(20) == 2 and "damaged.db.launchers" in site.said(), site.said()


install_mpirun()
report([a_name_is_the_cluster_that_it_was_when_it_was_first_registered, a_name_that_several_clusters_have_is_refused,
        a_whole_id_is_that_cluster, a_file_is_the_cluster_that_it_describes, a_launcher_whose_nodes_are_no_hosts_is_refused,
        a_damaged_file_of_pins_is_told])
