"""Networks for the emulated device (`device.py`): six kinds of gradients, 5 to 24 MB, that train on a tiny batch.

Each is NAME: (a function that makes the module, a function that draws a batch). Copies are alike on all ranks if the seed
is; the batches are of each rank. The loss of all of them is cross_entropy().
"""

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1, stride=2, bias=False)

    def forward(self, x):
        y = functional.relu(self.norm1(self.first(x)))
        return functional.relu(self.norm2(self.second(y)) + self.short(x))


def plain():
    """Convolutions as in VGG, and a classifier with hidden layers."""
    layers, inside = [], 3
    for outside, pool in ((32, True), (64, True), (128, False), (128, True), (256, False), (256, True)):
        layers += [nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU()] + [nn.MaxPool2d(2)] * pool
        inside = outside
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 10))


def batchnorm():
    """Residual blocks with BatchNorm, whose running statistics DDP broadcasts before each forward pass."""
    stem = [nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    blocks = [Residual(a, b) for a, b in ((32, 64), (64, 128), (128, 256))]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


class Recurrent(nn.Module):
    """A language model: embedding, two LSTM layers, a projection to all words."""

    def __init__(self, words=2000, width=128, hidden=256):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lower, self.upper = nn.LSTM(width, hidden, batch_first=True), nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, words)

    def forward(self, tokens):
        return self.head(self.upper(self.lower(self.words(tokens))[0])[0])


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """A language model: embedding, blocks, an output layer."""

    def __init__(self, words=2000, width=192, blocks=12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.words(tokens))))


class Tied(Transformer):
    """One whose embedding is its output layer too: one gradient from both ends of the backward pass."""

    def __init__(self):
        super().__init__(blocks=3)
        self.head.weight = self.words.weight


class Sparse(nn.Module):
    """Users and items in embeddings of sparse gradients, and a dense network above them, as in NCF."""

    def __init__(self, users=20000, items=10000, width=64):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width, sparse=True), nn.Embedding(items, width, sparse=True)
        hidden = [nn.Linear(2 * width, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256)]
        self.dense = nn.Sequential(*hidden, nn.ReLU(), nn.Linear(256, 2))

    def forward(self, pairs):
        return self.dense(torch.cat([self.users(pairs[:, 0]), self.items(pairs[:, 1])], 1))


def images(count):
    def draw(generator):
        x = torch.randn(count, 3, 16, 16, generator=generator)
        return x, (x.mean(dim=(2, 3)) @ torch.ones(3, 10).cumsum(1)).argmax(1)

    return draw


def sentences(length):
    def draw(generator):
        tokens = torch.randint(2000, (1, length), generator=generator)
        return tokens, (tokens * 7 + 1) % 2000

    return draw


def pairs(generator):
    ids = torch.randint(10000, (64, 2), generator=generator)
    return ids, ids.sum(1) % 2


def cross_entropy(output, wanted):
    return functional.cross_entropy(output.flatten(0, -2), wanted.flatten())


NETWORKS = {
    "plain": (plain, images(1)),
    "batchnorm": (batchnorm, images(2)),
    "recurrent": (Recurrent, sentences(8)),
    "tied": (Tied, sentences(8)),
    "transformer": (Transformer, sentences(16)),
    "sparse": (Sparse, pairs),
}
