"""Small models for a lab of emulated nodes at 0.5 to 1 Gbit/s: about a tenth of a second an iteration.

Nobody published them; their shapes are the common ones (a perceptron, inception blocks, a decoder-only transformer)
and their sizes are such that computing and sending take about as long.
"""

from transformer import gpt2


def mlp_small(g):
    x = g.input(784)
    for i, width in enumerate((768, 384, 128)):
        x = g.activation(f"fc{i + 1}.relu", g.linear(f"fc{i + 1}", x, width))
    g.loss("loss", g.linear("fc4", x, 10))


def conv_relu(g, name, x, channels, kernel):
    return g.activation(name + ".relu", g.conv(name, x, channels, kernel, pad=kernel // 2, bias=True))


def block(g, name, x, one, reduced, three, pool):
    a = conv_relu(g, name + ".branch1", x, one, 1)
    b = conv_relu(g, name + ".branch2.1", conv_relu(g, name + ".branch2.0", x, reduced, 1), three, 3)
    c = conv_relu(g, name + ".branch3.1", g.pool(name + ".branch3.0", x, 3, 1, 1), pool, 1)
    return g.concat(name + ".concat", [a, b, c])


def cnn_small(g):
    x = g.pool("pool1", conv_relu(g, "conv1", g.input(3, 32, 32), 32, 3), 2, 2)
    x = g.pool("pool2", conv_relu(g, "conv2", x, 64, 3), 2, 2)
    x = block(g, "block1", x, 64, 64, 96, 32)
    x = block(g, "block2", x, 96, 96, 128, 32)
    x = g.pool("pool3", x, 2, 2)
    x = block(g, "block3", x, 144, 144, 224, 80)
    x = block(g, "block4", x, 176, 176, 304, 112)
    x = g.activation("fc1.relu", g.linear("fc1", g.global_pool("avgpool", x), 256))
    g.loss("loss", g.linear("fc2", x, 10))


def transformer_small(g):
    gpt2(g, layers=5, width=192, heads=6, vocabulary=4096, positions=64, length=48, drop=False)
