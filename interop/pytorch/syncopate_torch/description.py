"""From names and times to a file of schema syncopate.model/1, and how files are read and written here: what is wrong with
one is said in the words of the command `syncopate`."""

import errno
import json
import os
import tempfile

import torch


def words(problem):
    """What an error says, in one line: "FILE: No such file or directory"."""
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem).strip().split("\n")[0]


def read(path):
    """What a JSON file holds. Raises OSError, or a ValueError that begins with the file's name."""
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except (ValueError, RecursionError) as problem:
            raise ValueError(f"{path}: {problem}") from problem


def read_groups(strategy, form):
    """A strategy and what to call it. It is a path, or has been parsed; `form` is the one that it was exported to."""
    name = "the strategy"
    if not isinstance(strategy, dict):
        name = strategy
        strategy = read(strategy)
    groups = strategy.get("groups") if isinstance(strategy, dict) else None
    if not isinstance(groups, list) or not groups or not all(isinstance(g, dict) and g.get("variables") for g in groups):
        raise ValueError(f"{name}: no groups of variables; syncopate strategy export --to {form} writes them")
    return strategy, name


def check_writable(path):
    """Before much is measured for it. Raises OSError."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise OSError(errno.EISDIR, "is a directory; name a file in it", path)
    if not os.access(folder, os.W_OK):
        number = errno.EACCES if os.path.isdir(folder) else errno.ENOENT
        raise OSError(number, f"cannot write into {folder}: {os.strerror(number)}", path)


DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float64: "f64",
}


def variable(name, parameter, sparse_rows):
    if parameter.dtype not in DTYPES:
        raise ValueError(f"{name}: gradients of {parameter.dtype} are not known to syncopate")
    out = {"name": name, "shape": list(parameter.shape), "dtype": DTYPES[parameter.dtype]}
    if sparse_rows:
        out["sparse_rows"] = sparse_rows
    return out


def forward_operators(times, reads):
    """A chain: what ended when; the loss ends it."""
    operators, before = [], 0.0
    for name, end in times.forward + [("loss", times.loss_end)]:
        operators.append(
            {
                "name": f"{name} forward",
                "phase": "forward",
                "time_us": round(max(end - before, 0), 3),
                "after": [operators[-1]["name"]] if operators else [],
                "reads": list(reads.get(name, [])),
            }
        )
        before = max(end, before)
    return operators


def backward_operators(times):
    """A chain in the order of readiness, and what is done after the last gradient."""
    operators, before = [], 0.0
    for name, ready in sorted(times.ready.items(), key=lambda item: item[1]) + [(None, times.backward_end)]:
        operator = {
            "name": f"{name} backward" if name else "end backward",
            "phase": "backward",
            "time_us": round(max(ready - before, 0), 3),
            "after": [operators[-1]["name"]] if operators else [],
        }
        if name:
            operator["produces"] = [name]
        operators.append(operator)
        before = max(ready, before)
    return operators


def add_unseen_reads(forward, names):
    """For parameters that a module uses but another module holds, as in nn.MultiheadAttention: take as the reader the
    operator whose name has most in common with the parameter's, or else the first operator."""
    seen = {n for o in forward for n in o["reads"]}
    for name in (n for n in names if n not in seen):
        parts = name.split(".")

        def common(operator):
            pairs = zip(parts, operator["name"].split(" ")[0].split("."))
            return next((i for i, (a, b) in enumerate(pairs) if a != b), len(parts))

        max(forward, key=common)["reads"].append(name)


def describe(name, batch, parameters, reads, sparse_rows, times):
    """The description as a dict. Variables are those whose gradients became ready, in the order of the model."""
    names = [n for n in parameters if n in times.ready]
    forward = forward_operators(times, {o: [n for n in r if n in times.ready] for o, r in reads.items()})
    add_unseen_reads(forward, names)
    out = {"schema": "syncopate.model/1", "name": name}
    if batch:
        out["batch_per_device"] = batch
    out["variables"] = [variable(n, parameters[n], sparse_rows.get(n)) for n in names]
    out["operators"] = forward + backward_operators(times)
    return out


def write(path, description):
    """Whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".syncopate-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(description, out, indent=1)
            out.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
