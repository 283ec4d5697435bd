"""Networks exported by torch.onnx, for import.sh: `import_onnx.py FOLDER` writes FOLDER/NAME.onnx with the shapes of all
activations, `import_onnx.py FOLDER check` holds the imported FOLDER/NAME.json against the modules themselves, their
parameters and a count of operations by hooks; prints ok and not ok lines.
"""

import json
import math
import sys

import onnx
import torch

folder = sys.argv[1]


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, 12, 3, groups=2, stride=2),
            torch.nn.ConvTranspose2d(12, 6, 2, stride=2),
            torch.nn.Flatten(),
            torch.nn.Linear(6 * 14 * 14, 10),
        )

    def forward(self, x):
        return self.layers(x)


class Tied(torch.nn.Module):
    """The last product reads the table of the first look-up."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(100, 16)
        self.hidden = torch.nn.Linear(16, 16)
        self.out = torch.nn.Linear(16, 100, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x):
        return self.out(torch.relu(self.hidden(self.table(x))))


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.nn.LSTM(12, 20)
        self.out = torch.nn.Linear(20, 4)

    def forward(self, x):
        return self.out(self.steps(x)[0])


NETWORKS = {
    "convolutions": (Convolutions, lambda: torch.randn(2, 3, 16, 16)),
    "tied": (Tied, lambda: torch.randint(0, 100, (4, 9))),
    "recurrent": (Recurrent, lambda: torch.randn(7, 3, 12)),
}


def operations(network, inputs):
    """2 for each multiplication and addition of a forward pass."""
    counted = []

    def count(module, given, result):
        x = given[0]
        if isinstance(module, torch.nn.ConvTranspose2d):
            counted.append(2 * x.numel() * module.weight[0].numel())
        elif isinstance(module, torch.nn.Conv2d):
            counted.append(2 * result.numel() * module.weight[0].numel())
        elif isinstance(module, torch.nn.Linear):
            counted.append(2 * result.numel() * module.in_features)
        elif isinstance(module, torch.nn.LSTM):
            counted.append(2 * x.shape[0] * x.shape[1] * 4 * module.hidden_size * (module.hidden_size + module.input_size))

    for module in network.modules():
        module.register_forward_hook(count)
    network(inputs)
    return sum(counted)


def without_weights(model):
    """As onnx.tools.replace_constants makes it: a ConstantOfShape of its shape in place of each large initializer."""
    graph, nodes = model.graph, []
    for tensor in [t for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT]:
        if math.prod(tensor.dims) < 30:
            continue
        shape = onnx.helper.make_tensor(f"{tensor.name}__SHAPE", onnx.TensorProto.INT64, [len(tensor.dims)], tensor.dims)
        value = onnx.helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [0.5])
        nodes.append(onnx.helper.make_node("ConstantOfShape", [shape.name], [tensor.name], value=value))
        graph.initializer.remove(tensor)
        graph.initializer.append(shape)
        for given in [i for i in graph.input if i.name == tensor.name]:
            graph.input.remove(given)
    nodes += graph.node
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def make(name, network, inputs):
    path = f"{folder}/{name}.onnx"
    torch.onnx.export(network, inputs, path, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True), path)
    if name == "convolutions":
        onnx.save(without_weights(onnx.load(path)), f"{folder}/light.onnx")
        onnx.save(onnx.load(path), f"{folder}/external.onnx", save_as_external_data=True, size_threshold=0, location="external.bin")


def check(name, network, inputs):
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        model = json.load(file)
    got = {v["name"]: v["shape"] for v in model["variables"]}
    want = {n: list(p.shape) for n, p in network.named_parameters()}
    assert got == want, (got, want)
    forward = sum(layer["forward_us"] for layer in model["layers"])
    assert abs(forward - operations(network, inputs) / 1000) < 1e-2, (forward, operations(network, inputs))


torch.manual_seed(0)
for name, (kind, inputs) in NETWORKS.items():
    torch.manual_seed(0)
    if len(sys.argv) == 2:
        make(name, kind(), inputs())
        continue
    try:
        check(name, kind(), inputs())
        if name == "convolutions":
            check("external", kind(), inputs())
            check("light", kind(), inputs())
        print(f"ok onnx_{name}_is_the_network")
    except (AssertionError, OSError) as error:
        print(f"not ok onnx_{name}_is_the_network: {error}".replace("\n", " "))
