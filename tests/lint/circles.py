#!/usr/bin/env python3
"""Source files that include each other in a circle; lint.sh calls it in the project's root with the folders to look at.

A node is a name without its ending: x.c and x.h are one, x_internal.h is another. The circles are the strongly connected
components of what includes what (Tarjan 1972), printed as findings. tests/lint/circles.allowed lists those that remain, a
line each: the nodes, a colon, the reason. A line there that is no circle any more is a finding too, so the list only shrinks."""

import os
import re
import sys

ALLOWED = "tests/lint/circles.allowed"
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def includes(folders):
    """{node: the nodes that it includes}."""
    graph = {}
    for folder in folders:
        for home, _, files in os.walk(folder):
            for name in files:
                stem, ending = os.path.splitext(name)
                if ending not in (".c", ".h"):
                    continue
                seen = graph.setdefault(os.path.join(home, stem), set())
                with open(os.path.join(home, name), encoding="utf-8", errors="replace") as source:
                    targets = [found[1] for found in map(INCLUDE.match, source) if found]
                seen.update(os.path.splitext(target)[0] for target in targets if os.path.exists(target))
    return {node: {to for to in seen if to in graph and to != node} for node, seen in graph.items()}


def circles(graph):
    """The strongly connected components of two nodes and more."""
    found, order, lowest, path = [], {}, {}, []

    def visit(node):
        order[node] = lowest[node] = len(order)
        path.append(node)
        for to in sorted(graph[node]):
            if to not in order:
                visit(to)
            if to in path:
                lowest[node] = min(lowest[node], lowest[to])
        if lowest[node] == order[node]:
            component = path[path.index(node):]
            del path[path.index(node):]
            if len(component) > 1:
                found.append(frozenset(component))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


def allowed():
    """{nodes: line number}."""
    if not os.path.exists(ALLOWED):
        return {}
    with open(ALLOWED, encoding="utf-8") as lines:
        return {frozenset(line.partition(":")[0].split()): number
                for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")}


def main():
    known = allowed()
    found = circles(includes(sys.argv[1:]))
    for circle in found:
        if circle not in known:
            first, *others = sorted(circle)
            print(f"{first}:1: includes itself by way of {' '.join(others)}; move what they share below them")
    for circle, number in known.items():
        if circle not in found:
            print(f"{ALLOWED}:{number}: {' '.join(sorted(circle))} is no such circle any more; remove the line")


main()
