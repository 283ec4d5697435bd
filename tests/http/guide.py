"""Run a guide: every fenced `sh` block, in order, in one shell; hold what it prints against the block below it.

A `text` block right after is what it prints on both its outputs, without white space. `...` stands for anything, and between
commas for nothing too. Of what differs from run to run the kind must be the same: stamps, dates, ids of sessions, requests,
trials, operations and tokens, and numbers with a decimal point; a session that a guide names twice is one session. Everything
else is literal, also statuses, integers and the ids of models, clusters and strategies. No command of a block may fail. Port
8642 becomes a free one."""
import os
import re
import shutil
import signal
import subprocess

from service import ROOT, Service, free_port

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
BLOCK_SECONDS = 60
VARIES = [("session", r"\d{8}-\d{6}-(?:[0-9a-hjkmnp-tv-z]{16}|[0-9a-f]{4})"), ("stamp", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
          ("date", r"\d{4}-\d\d-\d\d"), ("token", r"syn_[0-9a-f]{12}_[\w-]{43}"), ("content", r"[0-9a-f]{64}"),
          ("uid", r"[0-9a-f]{32}"), ("request", r"[0-9a-f]{16}"), ("short", r"(?=[0-9]*[a-f])[0-9a-f]{12}"),
          ("number", r"\d+\.\d+")]
SPLIT = re.compile("|".join(f"(?P<{kind}>(?<![0-9A-Za-z_.]){form}(?![0-9A-Za-z_]))" for kind, form in VARIES) +
                   r"|(?P<any>(?<=,)\.\.\.,|\.\.\.)")
# Without white space a number may touch the word before it, so what is searched for has no borders. The shortest form of
# a number has no decimal point where nothing follows it; an id may by chance be all digits.
FORMS = {**dict(VARIES), "number": r"\d+(?:\.\d+)?(?:e-?\d+)?", "short": r"[0-9a-f]{12}"}


def pattern(expected, sessions):
    """The regular expression that `expected` is. `sessions` maps ids in the guide to those of this run."""
    parts, last, groups = [], 0, {}
    for match in SPLIT.finditer(expected):
        parts.append(re.escape("".join(expected[last:match.start()].split())))
        text, kind, last = match.group(), match.lastgroup, match.end()
        if kind == "any":
            parts.append("(?:.*?,)?" if text.endswith(",") else ".*?")
        elif kind == "content":
            parts.append(text)
        elif kind != "session":
            parts.append(FORMS[kind])
        elif text in sessions:
            parts.append(sessions[text])
        elif text in groups:
            parts.append(f"(?P={groups[text]})")
        else:
            groups[text] = f"s{len(groups)}"
            parts.append(f"(?P<{groups[text]}>{FORMS[kind]})")
    parts.append(re.escape("".join(expected[last:].split())))
    return re.compile("".join(parts), re.S), groups


def first_difference(expected, printed, sessions):
    """The longest beginning of `expected`, by pieces between `...`, that `printed` still has, and what follows."""
    pieces = expected.split("...")
    for n in range(len(pieces), 0, -1):
        found = pattern("...".join(pieces[:n]), sessions)[0].match(printed)
        if found:
            break
    else:
        n, found = 0, re.match("", printed)
    return f"expected {''.join(pieces[min(n, len(pieces) - 1)].split())[:160]!r} and found {printed[found.end():][:160]!r}"


class Shell:
    def __init__(self, environment):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True)
        self.process.stdin.write("set -o pipefail -E\ntrap 'guide_status=$?' ERR\n")

    def run(self, block):
        """(exit status, what it printed)"""
        mark = "guide-block-ended"
        with open("block.sh", "w", encoding="utf-8") as file:
            file.write(block)
        self.process.stdin.write(f"guide_status=0; source ./block.sh </dev/null; printf '\\n{mark} %d\\n' $guide_status\n")
        self.process.stdin.flush()
        lines = []
        signal.alarm(BLOCK_SECONDS)
        try:
            for line in self.process.stdout:
                if line.startswith(mark):
                    return int(line.split()[1]), "".join(lines)
                lines.append(line)
        except TimeoutError:
            lines.append(f"... and went on for over {BLOCK_SECONDS} s")
        finally:
            signal.alarm(0)
        return -1, "".join(lines)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # the shell and what it started
        except ProcessLookupError:
            pass
        self.process.wait(20)


def blocks(text):
    """(line number, commands, expected text or None) of each `sh` block."""
    fences = list(FENCE.finditer(text))
    for fence, after in zip(fences, fences[1:] + [None]):
        if fence.group(1) == "sh":
            follows = after and after.group(1) == "text" and not text[fence.end():after.start()].strip()
            yield text.count("\n", 0, fence.start()) + 1, fence.group(2), after.group(2) if follows else None


def check_block(shell, commands, expected, port, sessions):
    status, printed = shell.run(commands.replace("8642", port))
    printed = "".join(printed.replace(port, "8642").split())
    assert status == 0, f"exit status {status}, printed {printed[:200]!r} ... {printed[-200:]!r}"
    if expected is None:
        return
    wanted, groups = pattern(expected, sessions)
    found = wanted.fullmatch(printed)
    assert found, first_difference(expected, printed, sessions)
    sessions.update({text: found.group(group) for text, group in groups.items()})
    assert len(set(sessions.values())) == len(sessions), f"two sessions of the guide are one: {sessions}"


def run_guide(path, files):
    """A test a block; after a block that failed the rest is not run, since it builds on it. `files` are what its reader has
    in his folder."""
    name, port, sessions = os.path.splitext(os.path.basename(path))[0], str(free_port()), {}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    folder = f"{name}.work"
    os.mkdir(folder)
    for file in files:
        shutil.copy(file, folder)
    os.chdir(folder)
    os.symlink(ROOT + "/examples", "examples")
    os.symlink(ROOT + "/docs", "docs")
    programs = os.path.abspath(os.path.join(ROOT, os.environ["OUT"], "bin"))
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SYNCOPATE_") and not k.lower().endswith("_proxy")}
    shell = Shell({**clean, "PATH": programs + ":" + os.environ["PATH"], "COLUMNS": "120"})
    try:
        for line, commands, expected in blocks(text):
            try:
                check_block(shell, commands, expected, port, sessions)
                print(f"ok {name}_line_{line}")
            except AssertionError as error:
                print(f"not ok {name}_line_{line}: {error}")
                break
    finally:
        shell.close()
        os.chdir("..")


def check(name, wrong):
    print(f"not ok {name}: {wrong}" if wrong else f"ok {name}")


def the_guide_has_every_problem(service):
    """Its table of codes against those of the description."""
    _, document = service.ask("GET", "/openapi.json")
    with open(ROOT + "/docs/http.md", encoding="utf-8") as file:
        rows = re.findall(r"^\| ([\d, ]+) \| (`.*?`) \|", file.read(), re.M)
    told = {(int(status), code) for statuses, codes in rows for code in re.findall(r"`([a-z-]+)`", codes)
            for status in statuses.split(", ")}
    there = {(p["status"], p["code"]) for p in document["x-problems"]}
    wrong = sorted(there - told) + sorted(code for _, code in told if code not in {c for _, c in there})
    check("the_guide_has_every_problem", wrong)


def time_is_up(*_):
    raise TimeoutError


def main(guides, files=()):
    signal.signal(signal.SIGALRM, time_is_up)
    if not shutil.which("curl"):
        print("skip guides: no curl")
        return
    for guide in guides:
        run_guide(os.path.join(ROOT, guide), files)


if __name__ == "__main__":
    main(["docs/http.md"])
    site = Service(dataset="described.db").start()
    the_guide_has_every_problem(site)
    site.stop()
