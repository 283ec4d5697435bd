"""Profiler traces of a small network, for import.sh. `import_trace.py FOLDER` writes FOLDER/now.trace and FOLDER/early.trace
in the forms of today's and of early versions of Kineto, and FOLDER/plain.trace without shapes, as PyTorch exports it.
`import_trace.py FOLDER check` holds the imported FOLDER/now.json and FOLDER/early.json against the network; prints ok and
not ok lines. Debian's PyTorch has no Kineto: events, shapes and sequence numbers are those that its profiler recorded,
their writing is done here.
"""

import json
import sys

import torch

folder = sys.argv[1]
ITERATIONS = 5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 12)
        self.convolution = torch.nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.normalization = torch.nn.BatchNorm2d(4)
        self.hidden = torch.nn.Linear(4 * 10 * 12, 32)
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.out = torch.nn.Linear(32, 7, bias=False)

    def forward(self, x):
        h = self.embedding(x).unsqueeze(1)
        h = torch.relu(self.normalization(self.convolution(h)))
        return self.out(torch.relu(self.hidden(h.flatten(1))) * self.scale)


torch.manual_seed(0)
torch.set_num_threads(1)
net = Net().double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randint(0, 50, (4, 10)), torch.randint(0, 7, (4,))

# Who reads each parameter, in the order of the forward pass.
READERS = {
    "embedding.weight": "aten::embedding",
    "convolution.weight": "aten::conv2d",
    "normalization.weight": "aten::batch_norm",
    "normalization.bias": "aten::batch_norm",
    "hidden.weight": "aten::linear",
    "hidden.bias": "aten::linear",
    "scale": "aten::mul",
    "out.weight": "aten::linear",
}


def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()


def record():
    """(event, moment) or (label, moment, length); moments count from the first iteration."""
    events, moment = [], 0
    for number in range(ITERATIONS):
        with torch.profiler.profile(record_shapes=True) as profiler:
            step()
        if number == 0:
            profiler.export_chrome_trace(f"{folder}/plain.trace")
        begin = moment + 10
        for event in profiler.events():
            events.append((event, begin + event.time_range.start))
            moment = max(moment, begin + event.time_range.end)
        events.append((f"ProfilerStep#{number + 2}", begin, moment - begin + 5))
    return events


def written(event, offset, words):
    out = {"ph": "X", "pid": 7, "tid": 7, "ts": event[1] + offset, "args": {}}
    if isinstance(event[0], str):
        return out | {"cat": words["label"], "name": event[0], "dur": event[2]}
    e = event[0]
    if e.input_shapes:
        out["args"] = {words["dims"]: e.input_shapes, "Input type": ["double"] * len(e.input_shapes)}
    if e.sequence_nr >= 0:
        out["args"] |= {"Sequence number": e.sequence_nr, "Fwd thread id": e.fwd_thread or 0}
    category = words["label" if e.name.startswith("Optimizer.") else "operator"]
    return out | {"cat": category, "name": e.name, "dur": e.time_range.end - e.time_range.start}


def write(path, events, offset, words):
    around = [
        {"name": "process_name", "ph": "M", "ts": offset, "pid": 7, "tid": 0, "args": {"name": "python"}},
        {"ph": "s", "id": 1, "pid": 7, "tid": 7, "ts": offset, "cat": "fwdbwd", "name": "fwdbwd"},
    ]
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schemaVersion": 1, "traceEvents": around + [written(e, offset, words) for e in reversed(events)]}, out)


def check(path):
    with open(path, encoding="utf-8") as file:
        model = json.load(file)
    parameters = dict(net.named_parameters())
    # Gradients of one step of autograd may come in either order.
    shape = {v["name"]: (v["shape"], v["dtype"]) for v in model["variables"]}
    reads = [(o["name"].split(" ")[0], sorted(shape[v] for v in o["reads"])) for o in model["operators"] if "reads" in o]
    want = []
    for name, reader in READERS.items():
        kind = (list(parameters[name].shape), "f64")
        if name.endswith("bias") and want[-1][0] == reader:
            want[-1] = (reader, sorted(want[-1][1] + [kind]))
        else:
            want.append((reader, [kind]))
    assert reads == want, (reads, want)
    made = [v for o in model["operators"] for v in o.get("produces", [])]
    assert made == [v["name"] for v in reversed(model["variables"])], made
    assert all(o["time_us"] >= 0 for o in model["operators"])


if len(sys.argv) == 2:
    step()
    recorded = record()
    write(f"{folder}/now.trace", recorded, 0, {"operator": "cpu_op", "label": "user_annotation", "dims": "Input Dims"})
    early = {"operator": "Operator", "label": "Operator", "dims": "Input dims"}
    write(f"{folder}/early.trace", recorded, 1666149715000000, early)
else:
    for form in ("now", "early"):
        try:
            check(f"{folder}/{form}.json")
            print(f"ok torch_trace_of_{form}_is_the_network")
        except (AssertionError, OSError) as error:
            print(f"not ok torch_trace_of_{form}_is_the_network: {error}".replace("\n", " "))
