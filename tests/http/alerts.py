"""docs/alerts.yml: strictly read, held against the metrics of a live service, explained in docs/operations.md, and, where there
is a promtool, made to fire (alerts_test.yml)."""
import json
import re
import shutil
import subprocess

import prometheus
import yaml_subset
from service import ROOT, Service

DURATION = r"\d+[smhd]"
GROUPING = re.compile(r"\b(?:by|without|on|ignoring) \(([^)]*)\)")
SELECTOR = re.compile(r"(?<![\w.])([a-zA-Z_:][\w:]*)\b(?!\s*\()(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"(\d+)"')  # texts have been put away under a number
PROMETHEUS_LABELS = {"job", "instance", "le"}  # which it adds itself, or a histogram has


def text_of(name):
    with open(f"{ROOT}/docs/{name}", encoding="utf-8") as file:
        return file.read()


def table(heading):
    """The rows of the table below a heading of operations.md, as lists of cells."""
    part = text_of("operations.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.split("\n") if line.startswith("|")][2:]


def rules():
    groups = yaml_subset.read(text_of("alerts.yml"))
    assert list(groups) == ["groups"]
    for group in groups["groups"]:
        assert list(group) == ["name", "rules"], group
        yield from group["rules"]


def every_alert_is_whole_and_explained():
    explained = [row[0] for row in table("Monitoring")]
    with open(ROOT + "/tests/http/alerts_test.yml", encoding="utf-8") as file:
        tried = set(re.findall(r"alertname: (\w+)", file.read()))
    assert tried == set(explained), tried ^ set(explained)
    assert [rule["alert"] for rule in rules()] == explained, explained
    for rule in rules():
        assert list(rule) in (["alert", "expr", "for", "labels", "annotations"], ["alert", "expr", "labels", "annotations"]), rule
        assert re.fullmatch(r"Syncopate[A-Z]\w+", rule["alert"]) and re.fullmatch(DURATION, rule.get("for", "0s")), rule
        assert list(rule["labels"]) == ["severity"] and rule["labels"]["severity"] in ("page", "ticket"), rule
        summary = rule["annotations"]["summary"]
        assert "{{ $labels.instance }}" in summary and summary.count("{{") == summary.count("}}"), rule


def selectors(expression):
    """(metric, [(label, operator, value)]) of each selector, and the labels that it is summed by."""
    texts = []

    def put_away(match):
        texts.append(json.loads(match.group()))
        return f'"{len(texts) - 1}"'
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', put_away, expression)
    bare = re.sub(r"\[[^\]]*\]", lambda m: "" if re.fullmatch(rf"\[{DURATION}\]", m.group()) else m.group(), bare)
    assert "[" not in bare and all(bare.count(a) == bare.count(b) for a, b in ("()", "{}")), expression
    summed = [label.strip() for labels in GROUPING.findall(bare) for label in labels.split(",")]
    found = [(name, [(label, operator, texts[int(place)]) for label, operator, place in MATCHER.findall(matchers)])
             for name, matchers in SELECTOR.findall(GROUPING.sub("", bare)) if name not in ("and", "or", "unless")]
    return found, summed


def live_metrics():
    """({metric: {label names}}, the values that route and status can have) of a service that was asked a few things."""
    site = Service(dataset="metrics.db").start()
    session = site.open_session(budget={"trials": 2})
    site.ask("POST", session + "/trials:suggest", {"client": "c"})
    document = site.ask("GET", "/openapi.json")[1]
    samples = prometheus.read(site.ask("GET", "/metrics")[1].decode())
    site.stop()
    names = {metric: {label for labels in series for label in re.findall(r'([a-z_]+)="', labels)}
             for metric, series in samples.items()}
    values = {(metric, label): {value for labels in series for value in re.findall(rf'\b{label}="([^"]*)"', labels)}
              for metric, series in samples.items() for label in names[metric]}
    routes = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    statuses = {str(problem["status"]) for problem in document["x-problems"]}
    whole = {"route": routes, "status": statuses}
    return names, {key: whole.get(key[1], seen) for key, seen in values.items()}


def every_alert_asks_for_metrics_and_labels_that_there_are():
    names, values = live_metrics()
    for rule in rules():
        found, summed = selectors(rule["expr"])
        assert found, rule
        for metric, matchers in found:
            if metric == "up":
                continue
            assert metric in names, (rule["alert"], metric)
            assert ("job", "=", "syncopate") in matchers, (rule["alert"], metric)
            for label, operator, value in matchers:
                if label in PROMETHEUS_LABELS:
                    continue
                assert label in names[metric], (rule["alert"], metric, label)
                can = values[metric, label]
                hit = [v for v in can if (re.fullmatch(value, v) if "~" in operator else v == value)]
                assert hit and len(hit) < len(can), (rule["alert"], label, value, sorted(can))
        known = PROMETHEUS_LABELS.union(*(names.get(metric, ()) for metric, _ in found))
        assert set(summed) <= known, (rule, summed)


def prometheus_takes_the_alerts():
    if not shutil.which("promtool"):
        return "no promtool"
    for arguments in (["check", "rules", ROOT + "/docs/alerts.yml"], ["test", "rules", ROOT + "/tests/http/alerts_test.yml"]):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr
    return None


TESTS = [every_alert_is_whole_and_explained, every_alert_asks_for_metrics_and_labels_that_there_are, prometheus_takes_the_alerts]
