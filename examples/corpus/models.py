#!/usr/bin/env python3
"""Write the models of the recorded corpus, models/*.json, or with --check see that they are what would be written.

Six kinds of network at a size that a lab trial takes one or two seconds: 1 to 3 MB of gradients, 15 to 40 ms of
computing on the invented device "slow" of ../generate/device.py. Shapes are the common ones, sizes are ours.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "generate"))

from cnn import basic_conv  # noqa: E402
from device import DEVICES  # noqa: E402
from graph import Graph  # noqa: E402
from recurrent import fully_connected, lstm  # noqa: E402
from small import block, conv_relu  # noqa: E402
from transformer import gpt2  # noqa: E402


def perceptron(g):
    """Few variables, most bytes in two of them, the largest of them ready last."""
    x = g.input(784)
    for i, width in enumerate((384, 384, 256, 128)):
        x = g.activation(f"fc{i + 1}.relu", g.linear(f"fc{i + 1}", x, width))
    g.loss("loss", g.linear("fc5", x, 10))


def inception(g):
    """Branches: several gradients become ready at about one time."""
    x = g.pool("pool1", conv_relu(g, "conv1", g.input(3, 32, 32), 24, 3), 4, 4)
    for i, (one, reduced, three, pool) in enumerate(((32, 32, 64, 32), (64, 64, 96, 32), (96, 96, 160, 64))):
        x = block(g, f"block{i + 1}", x, one, reduced, three, pool)
    g.loss("loss", g.linear("fc", g.global_pool("avgpool", x), 100))


def residual(g):
    """Many small variables: a weight and two of batch normalization a layer, sizes growing with depth."""
    x = basic_conv(g, "conv1", g.input(3, 32, 32), 16, 3, 2, 1)
    for stage, width in enumerate((16, 48, 112)):
        for i in range(2):
            name, stride = f"layer{stage + 1}.{i}", 2 if stage and not i else 1
            y = basic_conv(g, name + ".1", x, width, 3, stride, 1)
            y = g.batch_norm(name + ".bn2", g.conv(name + ".conv2", y, width, 3, 1, 1))
            if x.shape != y.shape:
                x = g.batch_norm(name + ".down.bn", g.conv(name + ".down", x, width, 1, stride))
            x = g.activation(name + ".relu", g.add(name + ".add", y, x))
    g.loss("loss", g.linear("fc", g.global_pool("avgpool", x), 100))


def decoder(g):
    """A small language model: a large tied embedding that is ready last and needed first, and regular layers."""
    gpt2(g, layers=3, width=96, heads=4, vocabulary=2048, positions=32, length=32, drop=False)


def recurrent(g):
    """Dense embedding, two LSTM layers: large matrices early and late."""
    x = g.embedding("embed", g.input(16), 1500, 96)
    for i in range(2):
        x = lstm(g, f"lstm{i}_", x, 128)
    g.loss("loss", fully_connected(g, "output", x, 1500))


def recommender(g):
    """Sparse embeddings, of which a batch touches a part, and a small dense perceptron."""
    user = g.embedding("embedding_user", g.input(), 12000, 32, sparse=True)
    item = g.embedding("embedding_item", g.input(), 4000, 32, sparse=True)
    x = g.concat("concat", [user, item])
    for i, width in enumerate((384, 256, 128)):
        x = g.activation(f"layer{i + 1}.relu", g.linear(f"layer{i + 1}", x, width))
    g.loss("loss", g.linear("rating", x, 1))


MODELS = {perceptron: 320, inception: 8, residual: 12, decoder: 6, recurrent: 15, recommender: 1024}


def main():
    stale = 0
    for function, batch in MODELS.items():
        graph = Graph(function.__name__, DEVICES["slow"], batch)
        function(graph)
        text = json.dumps(graph.model(), separators=(",", ":")) + "\n"
        path = HERE / "models" / f"{function.__name__}.json"
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.name} is not what models.py would write")
            stale += 1
    sys.exit(bool(stale))


if __name__ == "__main__":
    main()
