"""What docs/operations.md tells whoever runs the service: its commands, its figures, the alerts (alerts.py), the systemd unit,
proxies."""
import http.client
import os
import re
import shutil
import ssl
import subprocess
import time

import alerts
import guide
from service import PROGRAM, Service, free_port, report, run


def fenced(language):
    return re.search(rf"^```{language}\n(.*?)^```$", alerts.text_of("operations.md"), re.M | re.S).group(1)


# ---- figures ----

def limits_are_those_of_the_options():
    told = {option: row[1] for row in alerts.table("Limits") for option in re.findall(r"`--([a-z-]+)`", row[0])}
    there = {name: re.sub(r"^(\d+)s$", r"\1 s", default) for name, default in
             re.findall(r"^  --([a-z-]+) (?:(?!^  --).)*?\(default: ([^;)]*)", run("serve", "--help").stdout, re.M | re.S)}
    assert set(told) == {"connections", "connections-per-address", "threads", "workers", "computers", "compute",
                         "memory", "drain", "team-sessions", "team-rows", "team-bytes"}, told
    assert not [(n, v, there.get(n)) for n, v in told.items() if there.get(n) != v], (told, there)


def what_is_over_a_limit_gets_the_status_that_is_told():
    site = Service(dataset="limits.db").start()
    session = site.open_session(budget={"trials": 3})
    named = {"model": "toy", "cluster": "four"}
    trial = {**named, "strategy": "none", "proposer": "p", "runner": "r", "iterations_us": [1]}
    assert site.ask("POST", "/api/v1/predictions", {**named, "baselines": ["horovod"] * 10001})[0] == 422
    assert site.ask("POST", "/api/v1/records:batchCreate", {"records": [trial] * 1001})[0] == 422
    head = ("POST /api/v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {(16 << 20) + 1}\r\n\r\n")
    with site.raw(head.encode()) as connection:
        assert connection.recv(64).startswith(b"HTTP/1.1 413 ")
    assert site.ask("GET", "/api/v1/models?name=" + "x" * (16 << 10))[0] == 431
    assert site.ask("GET", "/api/v1/models?page_size=1001")[0] == 400
    assert site.ask("GET", "/api/v1/models?page_size=1000")[0] == 200
    assert site.ask("POST", session + "/trials:suggest", {"client": "c", "lease_s": 86401})[0] == 422
    assert site.ask("POST", session + "/trials:suggest", {"client": "c", "lease_s": 86400})[1]["trials"][0]["lease_s"] == 86400
    site.stop()


def a_trial_is_offered_three_times_in_all():
    site = Service(dataset="lost.db").start()
    session = site.open_session(budget={"trials": 3})
    attempts = []
    while True:
        offer = site.ask("POST", session + "/trials:suggest", {"client": "c", "lease_s": 1})[1]["trials"][0]
        if offer["number"] != 1:
            break
        attempts.append(offer["attempt"])
        time.sleep(1.5)
    first = site.ask("GET", session + "/trials/1")[1]
    assert attempts == [1, 2, 3] and first["state"] == "cancelled" and "lost" in first["reason"], (attempts, first)
    site.stop()


# ---- the unit ----

def unit_with_our_program():
    """The unit and the drop-in for TLS. No manual page is installed where it is tested."""
    unit = alerts.text_of("syncopate.service").replace("/usr/local/bin/syncopate", PROGRAM)
    drop_in = re.search(r"^# cat \S+/(syncopate.service.d)/(\w+.conf)\n(.*?)^```$", alerts.text_of("operations.md"), re.M | re.S)
    os.mkdir(drop_in.group(1))
    with open("syncopate.service", "w", encoding="utf-8") as file:
        file.write(re.sub(r"^Documentation=.*\n", "", unit, flags=re.M))
    with open("/".join(drop_in.group(1, 2)), "w", encoding="utf-8") as file:
        file.write(drop_in.group(3))


def systemd_takes_the_unit_and_finds_it_as_tight_as_is_told():
    if not shutil.which("systemd-analyze"):
        return "no systemd-analyze"
    unit_with_our_program()
    done = subprocess.run(["systemd-analyze", "verify", "./syncopate.service"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "./syncopate.service"],
                          capture_output=True, text=True, check=False)
    exposure = re.search(r"exposure level for .*: ([\d.]+)", done.stdout)
    if not exposure:
        return "systemd-analyze cannot judge a file: " + done.stderr.strip()[:80]
    told = re.search(r"exposure at ([\d.]+) of 10", alerts.text_of("operations.md").replace("\n", " ")).group(1)
    assert abs(float(exposure.group(1)) - float(told)) < 0.35, (exposure.group(0), told)  # it weighs differently by version
    return None


def the_units_command_line_and_settings_are_understood():
    """Its ExecStart with another folder and port, and a setting of the environment as serve.env has them."""
    command = re.search(r"^ExecStart=(.*)$", alerts.text_of("syncopate.service"), re.M).group(1).split()
    assert command[:2] == ["/usr/local/bin/syncopate", "serve"], command
    arguments = [argument.replace("%S/syncopate", os.getcwd()) for argument in command[1:]]
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20, check=False,
                          env={**os.environ, "SYNCOPATE_LISTEN": "127.0.0.1:0"})
    assert done.returncode == 2 and "token create" in done.stderr, done  # and RestartPreventExitStatus=2
    for line in re.findall(r"^Environment=(.*)$|^(SYNCOPATE_.*)$", alerts.text_of("operations.md"), re.M):
        for setting in "".join(line).split():
            name, value = setting.split("=")
            option = name.removeprefix("SYNCOPATE_").lower().replace("_", "-")
            assert f"  --{option} " in run("serve", "--help").stdout and value, setting


def it_serves_where_only_its_state_may_be_written():
    """What most of the unit's settings come to: another user without privileges, a file system that is read-only but for one
    folder, no devices that could be written, no memory that is both writable and executable."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        return "needs root and mount namespaces"
    state, program = os.path.join(os.getcwd(), "state"), os.path.join(os.getcwd(), "program")
    os.chmod(".", 0o711)
    os.mkdir(state)
    os.chown(state, 65534, 65534)
    shutil.copy(PROGRAM, program)
    prepare = f"mount --bind {state} {state} && mount -o remount,ro,bind / && cd {state} && umask 077 && exec \"$@\""
    apart = ["unshare", "-m", "--propagation", "private", "sh", "-c", prepare, "sh"]
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    site = Service(dataset=f"{state}/d.db", wrapper=[*apart, *drop])
    site.command[site.command.index(PROGRAM)] = program
    site.start()
    session = site.open_session(budget={"trials": 1})
    trial = site.ask("POST", session + "/trials:suggest", {"client": "c"})[1]["trials"][0]
    assert site.ask("POST", f"{session}/trials/{trial['number']}:complete",
                    {"client": "c", "attempt": 1, "iterations_us": [5]})[0] == 200
    with open(f"/proc/{site.process.pid}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    assert status["Uid"].split() == ["65534"] * 4 and int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1", status
    with open(f"/proc/{site.process.pid}/maps", encoding="utf-8") as file:
        assert not [line for line in file if " rwx" in line]
    files = os.listdir(state)
    assert {"d.db", "d.db.lock"} <= set(files), files
    assert not [name for name in files if os.stat(f"{state}/{name}").st_mode & 0o077], files
    assert site.stop() == 0, site.tail()
    return None


# ---- proxies ----

def adapt(text, *changes):
    for what, instead in changes:
        assert what in text, what
        text = text.replace(what, instead)
    return text


def start_nginx(port, backend):
    site = adapt(fenced("nginx"), ("listen 443", f"listen 127.0.0.1:{port}"), ("tuner.example;", "localhost;"),
                 ("127.0.0.1:8642", f"127.0.0.1:{backend}"),
                 ("/etc/letsencrypt/live/tuner.example/fullchain.pem", os.path.abspath("cert.pem")),
                 ("/etc/letsencrypt/live/tuner.example/privkey.pem", os.path.abspath("key.pem")))
    here = os.getcwd()
    folders = "".join(f"{kind}_temp_path {here}/nginx-{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open("nginx.conf", "w", encoding="utf-8") as file:
        file.write(f"daemon off; user root; pid {here}/nginx.pid; events {{}}\nhttp {{ access_log off;\n{folders}{site}}}\n")
    return subprocess.Popen(["nginx", "-c", os.path.abspath("nginx.conf"), "-e", os.path.abspath("nginx.err")])


def start_caddy(port, backend):
    site = adapt(fenced("caddy"), ("tuner.example {", f"https://localhost:{port} {{\n\ttls cert.pem key.pem"),
                 ("127.0.0.1:8642", f"127.0.0.1:{backend}"))
    with open("Caddyfile", "w", encoding="utf-8") as file:
        file.write("{\n\tadmin off\n\tauto_https off\n}\n" + site)
    folders = {name: os.getcwd() for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    with open("caddy.err", "w", encoding="utf-8") as log:
        return subprocess.Popen(["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"], stderr=log,
                                env={**os.environ, **folders})


def connect(port, context):
    """A connection through the proxy, once it answers for the service."""
    until = time.monotonic() + 10
    while True:
        try:
            connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return connection
        except OSError:
            pass
        assert time.monotonic() < until, "no answer through the proxy"
        time.sleep(0.1)


def sign_in_works(port, context, token):
    """The page's form: the service has to see the host that the browser sees, and the cookie is for TLS alone."""
    connection = connect(port, context)
    connection.request("POST", "/sign-in", "token=" + token, {
        "Origin": f"https://localhost:{port}", "Content-Type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    assert answer.status == 303 and "; Secure" in answer.getheader("Set-Cookie"), (answer.status, answer.getheaders())


def passes_on(program, start):
    """An open stream hears within two seconds of what happens, and the rest of what operations.md asks of a proxy."""
    if not shutil.which(program):
        return "no " + program
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    site, port = Service(dataset=program + ".db").start(), free_port()
    token = run("serve", "token", "create", "you", "--role", "admin", "--dataset", site.dataset).stdout.strip()
    time.sleep(1.2)  # the service looks for new tokens once a second
    session = site.open_session(budget={"trials": 1})
    proxy = start(port, site.port)
    try:
        context = ssl.create_default_context(cafile="cert.pem")
        connection = connect(port, context)
        connection.request("GET", session + "/events", headers={"Authorization": "Bearer " + token})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.getheader("Strict-Transport-Security"), (answer.status, answer.getheaders())
        while b"running" not in answer.fp.readline():
            pass
        begun = time.monotonic()
        assert site.ask("POST", session + ":stop")[0] == 200
        while b"stopped" not in answer.fp.readline():
            pass
        assert time.monotonic() - begun < 2, time.monotonic() - begun
        sign_in_works(port, context, token)
    finally:
        site.kill()  # and with it the stream, for whose end a proxy would wait
        proxy.terminate()
        proxy.wait(20)
    return None


def nginx_as_told_passes_events_on():
    return passes_on("nginx", start_nginx)


def caddy_as_told_passes_events_on():
    return passes_on("caddy", start_caddy)


guide.main(["docs/operations.md"])
report([limits_are_those_of_the_options, what_is_over_a_limit_gets_the_status_that_is_told, a_trial_is_offered_three_times_in_all,
        *alerts.TESTS, systemd_takes_the_unit_and_finds_it_as_tight_as_is_told, the_units_command_line_and_settings_are_understood,
        it_serves_where_only_its_state_may_be_written, nginx_as_told_passes_events_on, caddy_as_told_passes_events_on])
