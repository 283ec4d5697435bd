"""A strict reader of Prometheus' text exposition format 0.0.4, and the rules that promtool checks names by."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"^({NAME})(?:\{{((?:{LABEL})(?:,(?:{LABEL}))*)\}})? (-?[0-9.eE+-]+|\+Inf|-Inf|NaN)$")
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}


def read(text):
    """{name: {labels: value}}; ValueError at the first line that is wrong."""
    types, helps, samples, current, closed = {}, set(), {}, None, set()
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        def no(why):
            raise ValueError(f"line {number}: {why}: {line}")
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            word, name, rest = line[2:].split(" ", 2)
            if not re.fullmatch(NAME, name) or not rest:
                no("bad name or no text")
            if name != current:
                if current:
                    closed.add(current)
                if name in closed:
                    no("a metric's lines must stand together")
                current = name
            if word == "HELP":
                if name in helps or name in types:
                    no("HELP comes once and first")
                helps.add(name)
            else:
                if name in types or name in samples or rest not in TYPES:
                    no("TYPE comes once, before the samples")
                types[name] = rest
                if (rest == "counter") != name.endswith("_total"):
                    no("counters, and only they, end in _total")
            continue
        match = SAMPLE.match(line)
        if not match:
            no("no sample")
        name, labels, value = match.group(1), match.group(2) or "", float(match.group(3))
        base = current
        suffix = name[len(base):] if base and name.startswith(base) else None
        if suffix is None or suffix not in (("_bucket", "_sum", "_count") if types.get(base) == "histogram" else ("",)):
            no("a sample without its TYPE before it")
        if base not in helps:
            no("no HELP")
        if types[base] in ("counter", "histogram") and value < 0:
            no("negative")
        if labels in samples.setdefault(name, {}):
            no("twice")
        samples[name][labels] = value
    for name, kind in types.items():
        if kind == "histogram":
            check_histogram(name, samples)
    return samples


def check_histogram(name, samples):
    series = {}
    for labels, value in samples.get(name + "_bucket", {}).items():
        rest, bound = re.fullmatch(r'(.*?),?le="([^"]+)"', labels).groups()
        series.setdefault(rest, []).append((float(bound.replace("+Inf", "inf")), value))
    for rest, buckets in series.items():
        if buckets != sorted(buckets) or [v for _, v in buckets] != sorted(v for _, v in buckets):
            raise ValueError(f"{name}{{{rest}}}: buckets do not rise")
        if buckets[-1][0] != float("inf") or buckets[-1][1] != samples[name + "_count"][rest]:
            raise ValueError(f"{name}{{{rest}}}: +Inf is not the count")
        if rest not in samples[name + "_sum"]:
            raise ValueError(f"{name}{{{rest}}}: no sum")
