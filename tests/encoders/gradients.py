#!/usr/bin/env python3
"""Write gradients of two networks that are being trained, a file of f32 for each parameter, and NETWORK.json, the profile
of each: gradients.py FOLDER [STEPS].

characters: a transformer of two layers that learns the next character of this project's documentation. templates: a
convolutional network that learns which of ten random pictures it sees through noise. Both have been trained for STEPS
(100) steps of Adam, with batches of 32, when their gradients are written: those of the last ten steps, the oldest first.
Needs PyTorch; seeds are fixed."""
import array
import os
import sys

import torch
from torch import nn

KEPT = 10
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, f"{ROOT}/interop/pytorch")
import syncopate_torch  # noqa: E402


class Characters(nn.Module):
    """A causal transformer over bytes."""

    def __init__(self, width=128, length=64):
        super().__init__()
        self.embedding = nn.Embedding(128, width)
        self.place = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 128)

    def forward(self, text):
        mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        x = self.embedding(text) + self.place(torch.arange(text.shape[1]))
        return self.head(self.layers(x, mask=mask, is_causal=True))


def characters():
    """The network, and a function that draws a batch and returns its loss."""
    names = sorted(name for name in os.listdir(f"{ROOT}/docs") if name.endswith(".md"))
    text = "".join(open(f"{ROOT}/docs/{name}", encoding="utf-8").read() for name in names)
    codes = torch.tensor([min(ord(c), 127) for c in text])
    network = Characters()

    def loss():
        at = torch.randint(0, len(codes) - 65, (32,))
        batch = torch.stack([codes[i:i + 65] for i in at])
        return nn.functional.cross_entropy(network(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    return network, loss


def templates():
    """The same of pictures."""
    pictures = torch.randn(10, 1, 28, 28)
    network = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(),
                            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10))

    def loss():
        which = torch.randint(0, 10, (32,))
        return nn.functional.cross_entropy(network(pictures[which] + 2 * torch.randn(32, 1, 28, 28)), which)
    return network, loss


def main():
    folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    for build in (characters, templates):
        torch.manual_seed(1)
        network, loss = build()
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        syncopate_torch.profile(network, f"{folder}/{build.__name__}.json", name=build.__name__, batch=32)
        kept = {name: array.array("f") for name, _ in network.named_parameters()}
        for step in range(steps):
            optimizer.zero_grad()
            error = loss()
            error.backward()
            for name, parameter in network.named_parameters() if step >= steps - KEPT else ():
                kept[name].extend(parameter.grad.flatten().tolist())
            optimizer.step()
        print(f"{build.__name__}: loss {error.item():.3f} after {steps} steps", file=sys.stderr)
        for name, parameter in network.named_parameters():
            shape = "x".join(str(n) for n in parameter.shape)
            with open(f"{folder}/{build.__name__}.{name}.{shape}.f32", "wb") as file:
                kept[name].tofile(file)


if __name__ == "__main__":
    main()
