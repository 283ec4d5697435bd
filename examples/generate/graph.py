"""Shapes, FLOPs, bytes and edges of one training iteration, so that an architecture file reads like its paper.

A Graph records forward operators as an architecture calls it. model() then derives the backward pass as automatic
differentiation would: the same operators in reverse, `x.grad` after the gradients of everything that consumed x's
output.
- An operator has a backward one if it reads a variable or if one of its inputs needs a gradient.
- A convolution or matrix product costs its forward FLOPs again for each gradient: one for the weights, one for the
  data, and the network's input needs no data gradient. One backward operator covers both.
- A value with k consumers gets k gradients, which are added: (k - 1) passes over memory, charged to its producer.
- A variable read in several places (tied) is complete when the last contribution is: the operator that runs last in the
  backward pass produces it, after the others.
- What a forward operator keeps for its backward one is told where the architecture tells it (`keeps`, and the optimizer).
  A value that two operators keep is counted once: by the one whose backward operator runs last.
Values and variables have the device's dtype. Shapes are those of one sample; the batch multiplies FLOPs and bytes, never a
variable.
"""

from dataclasses import dataclass, field
from math import prod

WIDTHS = {"f32": 4, "bf16": 2, "f16": 2}
F32 = WIDTHS["f32"]


@dataclass
class Value:
    shape: tuple
    source: object = None  # the operator that makes it; None for the network's input
    grad: bool = False  # does anything upstream need its gradient?


@dataclass
class Operator:
    name: str
    inputs: list
    reads: list
    time_us: float
    grad_us: float
    keeps: float = None  # bytes of the whole batch, from its forward to its backward operator; None: nobody says
    again: tuple = ()  # (bytes, operator): what its backward operator computes again and leaves, and up to whose
    output: Value = None
    consumers: list = field(default_factory=list)


class Graph:
    def __init__(self, name, device, batch):
        self.name, self.device, self.batch = name, device, batch
        self.width = WIDTHS[device.dtype]  # bytes of an element
        self.optimizer = None  # what updates the variables; where it is told, activations are too
        self.variables = {}
        self.operators = []

    # -- building blocks -----------------------------------------------------------------------------------------------

    def input(self, *shape):
        return Value(tuple(shape))

    def view(self, x, *shape):
        """The same memory seen as another shape, or a part of it: no operator."""
        return Value(tuple(shape), x.source, x.grad)

    def variable(self, name, *shape, sparse_rows=None):
        entry = {"name": name, "shape": list(shape), "dtype": self.device.dtype}
        if sparse_rows:
            entry["sparse_rows"] = min(sparse_rows, shape[0])
        assert self.variables.setdefault(name, entry)["shape"] == entry["shape"], name
        return name

    def size(self, *names):
        return sum(prod(self.variables[n]["shape"]) for n in names)

    def operator(self, name, inputs, shape, reads=(), kind="memory", flops=0.0, traffic=0.0, grad_traffic=0.0, steps=1,
                 grad_flops=None, keeps=None):
        """flops: of one sample, forward. traffic: bytes of the whole batch, weights included. steps: launches, one
        after another, as in a recurrence over time. grad_flops: of one sample, where they are not the forward ones for
        each gradient. keeps: bytes of the whole batch."""
        gradients = bool(reads) + sum(v.grad for v in inputs)
        grad_flops = gradients * flops if grad_flops is None else grad_flops
        again = self.device.launch_us * (steps - 1)
        time = self.device.time_us(kind, self.batch * flops, traffic) + again
        grad_time = self.device.time_us(kind, self.batch * grad_flops, grad_traffic) + again if gradients else None
        op = Operator(name, list(inputs), list(reads), time, grad_time, keeps)
        for source in {id(v.source): v.source for v in inputs if v.source}.values():
            source.consumers.append(op)
        op.output = Value(tuple(shape), op, gradients > 0)
        self.operators.append(op)
        return op.output

    def bytes(self, *values):
        return sum(prod(v.shape) for v in values) * self.width * self.batch

    # -- operators -----------------------------------------------------------------------------------------------------

    def conv(self, name, x, channels, kernel, stride=1, pad=0, bias=False):
        """`kernel` and `pad` are one side, or height and width."""
        cin, *sides = x.shape
        kernels, pads = ((both, both) if isinstance(both, int) else both for both in (kernel, pad))
        out = (channels, *((side + 2 * p - k) // stride + 1 for side, k, p in zip(sides, kernels, pads)))
        reads = [self.variable(name + ".weight", channels, cin, *kernels)]
        if bias:
            reads.append(self.variable(name + ".bias", channels))
        traffic = self.bytes(x, Value(out)) + self.size(*reads) * self.width
        kind = "winograd" if kernel == 3 and stride == 1 else "conv"
        return self.operator(name, [x], out, reads, kind, 2.0 * prod(out) * cin * prod(kernels), traffic, 2 * traffic)

    def linear(self, name, x, width, bias=True, weight=None, reads=None):
        """x is (..., features). `weight`: a variable made elsewhere (tied)."""
        if reads is None:
            reads = [weight or self.variable(name + ".weight", width, x.shape[-1])]
            if bias:
                reads.append(self.variable(name + ".bias", width))
        out = x.shape[:-1] + (width,)
        traffic = self.bytes(x, Value(out)) + self.size(*reads) * self.width
        return self.operator(name, [x], out, reads, "gemm", 2.0 * prod(x.shape) * width, traffic, 2 * traffic,
                             keeps=self.bytes(x))

    def matmul(self, name, a, b, shape, depth):
        """A product of two activations, (..., depth) by (depth, ...), as in attention."""
        traffic = self.bytes(a, b, Value(shape))
        return self.operator(name, [a, b], shape, (), "gemm", 2.0 * prod(shape) * depth, traffic, 2 * traffic)

    def norm(self, name, x, width, suffixes):
        """Batch or layer normalization: statistics, then scaling; the gradient reads x and dy twice. It keeps x, and of
        each row a statistic in f32."""
        reads = [self.variable(name + suffix, width) for suffix in suffixes]
        rows = self.batch * prod(x.shape) // width
        return self.operator(name, [x], x.shape, reads, traffic=3 * self.bytes(x), grad_traffic=5 * self.bytes(x),
                             keeps=self.bytes(x) + F32 * rows)

    def batch_norm(self, name, x):
        return self.norm(name, x, x.shape[0], (".weight", ".bias"))

    def layer_norm(self, name, x, suffixes=(".weight", ".bias")):
        return self.norm(name, x, x.shape[-1], suffixes)

    def activation(self, name, x):
        return self.operator(name, [x], x.shape, traffic=2 * self.bytes(x), grad_traffic=3 * self.bytes(x))

    def dropout(self, name, x):
        return self.operator(name, [x], x.shape, traffic=2.25 * self.bytes(x), grad_traffic=2.25 * self.bytes(x))

    def softmax(self, name, x):
        return self.activation(name, x)

    def add(self, name, *values):
        """The gradient of a sum is the same tensor for each term: no traffic, only the launch."""
        return self.operator(name, values, values[0].shape, traffic=(len(values) + 1) * self.bytes(values[0]), keeps=0)

    def multiply(self, name, a, b):
        return self.operator(name, [a, b], a.shape, traffic=3 * self.bytes(a), grad_traffic=5 * self.bytes(a))

    def concat(self, name, values, axis=0):
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        traffic = 2 * self.bytes(*values)
        return self.operator(name, values, shape, traffic=traffic, grad_traffic=traffic)

    def select(self, name, x, shape):
        """A part of x: reading it is free beside clearing the gradient of the rest."""
        part = Value(tuple(shape))
        return self.operator(name, [x], shape, traffic=2 * self.bytes(part), grad_traffic=self.bytes(x, part))

    def pool(self, name, x, kernel, stride, pad=0, ceil=False):
        channels, height, width = x.shape
        extra = stride - 1 if ceil else 0
        out = (channels, *((side + 2 * pad - kernel + extra) // stride + 1 for side in (height, width)))
        traffic = self.bytes(x, Value(out))
        return self.operator(name, [x], out, traffic=traffic, grad_traffic=traffic + self.bytes(Value(out)))

    def global_pool(self, name, x, side=1):
        """To side x side, flattened."""
        out = Value((x.shape[0] * side * side,))
        return self.operator(name, [x], out.shape, traffic=self.bytes(x, out), grad_traffic=self.bytes(x, out))

    def embedding(self, name, tokens, rows, width, table=None, sparse=False):
        """A gather. Backward, a dense gradient is cleared and written in full, a sparse one only where touched. What it
        keeps is the batch's own tokens."""
        touched = prod(tokens.shape) * self.batch
        table = table or self.variable(name + ".weight", rows, width, sparse_rows=touched if sparse else None)
        out = Value(tokens.shape + (width,))
        dense = 0 if sparse else self.size(table) * self.width
        return self.operator(name, [tokens], out.shape, [table], traffic=2 * self.bytes(out),
                             grad_traffic=dense + 3 * self.bytes(out), keeps=0)

    def loss(self, name, x):
        """It keeps the logarithms of the probabilities, in f32."""
        return self.operator(name, [x], (1,), traffic=3 * self.bytes(x), grad_traffic=2 * self.bytes(x),
                             keeps=F32 * self.batch * prod(x.shape))

    def checkpoint(self, x, block):
        """Activation checkpointing: of the operators `block`, a part of self.operators that reads x, only x is kept. The
        backward pass computes the rest again, before the first gradient of one of the block's variables, because it needs
        the block's variables for it; and then has it up to the block's last gradient."""
        again = sum(op.keeps for op in block) - self.bytes(x)
        last = [op for op in block if op.reads][-1]
        last.grad_us += sum(op.time_us for op in block)
        last.again = (again, block[0])
        for op in block:
            op.keeps = self.bytes(x) if op is block[0] else 0

    # -- the iteration -------------------------------------------------------------------------------------------------

    def forward_rows(self):
        for op in self.operators:
            row = {"name": op.name, "phase": "forward", "time_us": round(op.time_us, 1), "after": sources(op)}
            if op.reads:
                row["reads"] = op.reads
            if self.optimizer:
                row |= kept(op.keeps, op)
            yield row

    def backward_rows(self):
        last = self.operators[-1]
        readers = {v: [op for op in self.operators if v in op.reads] for v in self.variables}
        for op in reversed(self.operators):
            if op.grad_us is None:
                continue
            after = [c.name + ".grad" for c in reversed(op.consumers)] or [last.name]
            produces = [v for v in op.reads if readers[v][0] is op]
            others = [r.name + ".grad" for v in produces for r in reversed(readers[v][1:])]
            sums = max(len(op.consumers) - 1, 0) * 3 * self.bytes(op.output) / (self.device.bandwidth_gbyte_per_s * 1e3)
            row = {"name": op.name + ".grad", "phase": "backward", "time_us": round(op.grad_us + sums, 1),
                   "after": list(dict.fromkeys(after + others))}
            if produces:
                row["produces"] = produces
            yield row | (kept(*op.again) if op.again else {})

    def model(self):
        assert all(op.consumers or op is self.operators[-1] for op in self.operators), "an output is never used"
        memory = {"optimizer": self.optimizer, "activations_estimated": True} if self.optimizer else {}
        return {"schema": "syncopate.model/1", "name": self.name, "batch_per_device": self.batch, **memory,
                "variables": list(self.variables.values()),
                "operators": list(self.forward_rows()) + list(self.backward_rows())}


def kept(nbytes, op):
    """The members of a row whose operator leaves so much up to op's backward operator."""
    return {"activation_bytes": int(nbytes)} | ({"kept_for": op.name + ".grad"} if nbytes else {})


def sources(op):
    return list(dict.fromkeys(v.source.name for v in op.inputs if v.source))
