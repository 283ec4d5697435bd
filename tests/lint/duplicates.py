#!/usr/bin/env python3
"""Lists runs of six or more identical lines that stand in two product files, or twice in one: what is said twice should
be one function. Lines are compared without their blanks. Left out are blank lines, comments, includes, lone brackets,
tables, initialisers and texts: lines that begin with a quote, a bracket, a dot or X(, or end with a backslash.

    tests/lint/duplicates.py [LENGTH]     prints FILE:LINE and FILE:LINE of each run, the longest first; 6 without LENGTH
"""
import collections
import glob
import re
import sys

ROOMS = ["base", "strategy", "interop", "featurize", "simulator", "dataset", "trial-runner", "tuner", "report", "service", "cli"]
TABLE = re.compile(r'^(["\'{.]|/?\*|//|/\*|#|X\()|\\$')
INITIALISER = re.compile(r"^(static|const|struct|enum)[^;()]*=\{")
TRIVIAL = re.compile(r"^[{}();,]*$|^(else|break;|default:|return;|\}else\{)$|^va_")


def lines_of(path):
    """(number, text) of the lines that count, in order."""
    out, comment, table = [], False, False
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        text = re.sub(r"\s+", "", line)
        if comment:
            comment = "*/" not in text
            continue
        if text.startswith("/*") and "*/" not in text:
            comment = True
            continue
        if table or INITIALISER.search(text):
            table = not text.endswith("};")
            continue
        if text and not TABLE.search(text) and not TRIVIAL.match(text):
            out.append((number, text))
    return out


def runs(files, length):
    """(n lines, (file, line), (file, line)), each run once and whole."""
    lines = {f: lines_of(f) for f in files}
    places = collections.defaultdict(list)
    for f in files:
        for i in range(len(lines[f]) - length + 1):
            places[tuple(text for _, text in lines[f][i:i + length])].append((f, i))
    found = []
    for where in places.values():
        for k, (f, i) in enumerate(where):
            for g, j in where[k + 1:]:
                before = i > 0 and j > 0 and lines[f][i - 1][1] == lines[g][j - 1][1]
                if before or (f == g and j < i + length):
                    continue
                n = length
                while i + n < len(lines[f]) and j + n < len(lines[g]) and lines[f][i + n][1] == lines[g][j + n][1]:
                    n += 1
                found.append((n, (f, lines[f][i][0]), (g, lines[g][j][0])))
    return sorted(found, reverse=True)


def main():
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    files = sorted(f for room in ROOMS for f in glob.glob(f"{room}/**/*.[ch]", recursive=True))
    found = runs(files, length)
    for n, (f, i), (g, j) in found:
        print(f"{f}:{i}: {n} lines stand at {g}:{j} too")
    return 1 if found else 0


sys.exit(main())
