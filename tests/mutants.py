#!/usr/bin/env python3
"""Whether tests notice when a source file is changed: each change is a mutant, and one that all tests pass is a hole.

    tests/mutants.py FILE TEST... [--line N] [--most N] [--out build/release]

FILE is a source of ours, TEST the name of a test as `unit/base/test_units` or `cli/session.sh`. Every change of one line (a
comparison, a sum, a constant, a condition, a call or an assignment left out) is built in a copy of the project and tried;
of many, --most (30) drawn by SYNCOPATE_TEST_SEED. What survives is printed as a difference; some are equivalent, which a
person has to see. Exit status 1 when any survives. A mutant that runs over three times as long as the tests did before
counts as noticed."""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

SWAPS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "), (" && ", " || "),
         (" || ", " && "), (" + ", " - "), (" - ", " + "), (" * ", " / "), ("++", "--"), ("fmin(", "fmax("), ("fmax(", "fmin("),
         (" + 1", ""), (" - 1", ""))
STATEMENT = re.compile(r"^\s+(?!return\b|goto\b|break;|continue;|else\b|const\b|enum\b|struct\b|static\b|unsigned\b|double\b|size_t\b|int\b|bool\b|char\b)"
                       r"[\w*(\[>.&\]-]+.*;\s*(/\*.*\*/)?$")


def code_lines(text):
    """Numbers and texts of the lines that are code, from 0: no comments, no preprocessor."""
    inside = False
    for number, line in enumerate(text.split("\n")):
        bare = line.strip()
        starts = bare.startswith("/*")
        if not inside and not starts and not bare.startswith(("#", "//", "*")) and bare:
            yield number, line
        inside = (inside or starts) and "*/" not in bare


def changes(text):
    """Pairs of a line's number and what stands there instead."""
    for number, line in code_lines(text):
        code = line.split("/*")[0]
        for old, new in SWAPS:
            for at in re.finditer(re.escape(old), code):
                yield number, line[:at.start()] + new + line[at.end():]
        condition = re.match(r"^(\s*(?:} else )?if )\((.*)\)( \{)?$", code.rstrip())
        if condition:
            yield number, f"{condition[1]}(!({condition[2]})){condition[3] or ''}"
        if STATEMENT.match(code) and code.count("(") == code.count(")"):
            yield number, re.match(r"\s*", line)[0] + ";"


def run(command, folder, limit, out=subprocess.DEVNULL):
    """The exit status; None when it took too long."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return None


def passes(folder, out, tests, limit):
    with tempfile.TemporaryDirectory() as temporary:
        os.chmod(temporary, 0o711)
        for test in tests:
            script = test.endswith(".sh")
            command = [f"tests/{test}"] if script else [f"{out}/tests/{test}"]
            said = os.path.join(temporary, "said")
            with open(said, "w", encoding="utf-8") as file:
                status = run(["env", f"TMPDIR={temporary}", f"OUT={out}", *command], folder, limit, file)
            if status != 0 or (script and not is_whole(f"{folder}/tests/{test}", said)):
                return False
    return True


def is_whole(script, said):
    """A script says what failed in words: as many good results as its head promises, and no others."""
    with open(script, encoding="utf-8") as file:
        plan = re.search(r"^# Plan: (\d+)$", file.read(), re.M)
    with open(said, encoding="utf-8", errors="replace") as file:
        lines = file.read().split("\n")
    results = [line.split(" ")[0] for line in lines if re.match(r"(ok|not ok|skip) ", line)]
    return set(results) == {"ok"} and (not plan or len(results) == int(plan[1]))


def build(folder, out, tests):
    wanted = [f"{out}/tests/{test}" for test in tests if not test.endswith(".sh")] + (["all"] if any(t.endswith(".sh") for t in tests) else [])
    return run(["make", f"MODE={os.path.basename(out)}", *wanted], folder, 900) == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--line", type=int, help="changes of this line alone")
    parser.add_argument("--most", type=int, default=30)
    parser.add_argument("--out", default="build/release")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        text = file.read()
    mutants = [m for m in changes(text) if options.line in (None, m[0] + 1)]
    seed = int(os.environ.get("SYNCOPATE_TEST_SEED", "1"))
    tried = sorted(random.Random(seed).sample(mutants, min(options.most, len(mutants))))
    survived, no_program = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.join(temporary, "main")
        shutil.copytree(".", folder, symlinks=True, ignore=shutil.ignore_patterns(".git", "asan", "tsan", "coverage", "venv"))
        if os.path.isdir("../shared"):
            os.symlink(os.path.abspath("../shared"), os.path.join(temporary, "shared"))
        begun = time.monotonic()
        if not build(folder, options.out, options.tests):
            sys.exit("mutants: the project as it is cannot be built")
        begun = time.monotonic()
        if not passes(folder, options.out, options.tests, 900):
            sys.exit("mutants: the tests fail on the project as it is")
        limit = 10 + 3 * (time.monotonic() - begun)
        print(f"# seed {seed}: {len(tried)} of {len(mutants)} mutants of {options.file}", flush=True)
        lines = text.split("\n")
        for number, line in tried:
            with open(os.path.join(folder, options.file), "w", encoding="utf-8") as file:
                file.write("\n".join([*lines[:number], line, *lines[number + 1:]]))
            if not build(folder, options.out, options.tests):
                no_program += 1
            elif passes(folder, options.out, options.tests, limit):
                survived.append(number)
                print(f"{options.file}:{number + 1}: survives\n  - {lines[number].strip()}\n  + {line.strip()}", flush=True)
    print(f"{len(tried) - len(survived) - no_program} noticed, {len(survived)} survived, {no_program} do not compile")
    sys.exit(bool(survived))


if __name__ == "__main__":
    main()
