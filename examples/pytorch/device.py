"""A device without a GPU: layers that take the time of a GPU's queue, while the processors are free.

    device = Device(module, 250, *inputs)      # an iteration's forward and backward pass take 250 ms

What is real: the module, its forward and backward pass on a tiny batch, gradients of full size, DistributedDataParallel,
the hook, gloo, every byte on the network, the optimizer. What is not: the time that a layer's computation takes. A GPU
works through a queue that the host fills ahead of it. Here the queue is a number, the moment at which the device will
have done all that was launched (`busy_until`):
  - forward: a layer's time is launched when its real forward pass has run, and starts when the device is free. Nobody
    waits, as nobody does with CUDA. A layer whose parameters are still on their way is launched late: hook.py makes the
    host wait for them.
  - backward: the host is ahead, so a layer starts as soon as the one before is done. Before a gradient is handed on, the
    host sleeps until the device has done the layers that it comes from: gloo and the hook may send it then and no sooner.
So two processors can stand for several nodes with accelerators, as long as gloo, the tiny batch and the optimizer leave
them headroom; who measures prints their load.

With ahead=False the host waits for the device after each launch, as one does that computes by itself: for fully_shard,
which on a CPU begins to gather, and frees, at the host's moments. What the real pass takes of a processor is then part of
the layer's time, as far as that goes; a backward pass is taken for two forward passes.

A layer is a module with parameters of its own. Its share of the time follows from its multiplications; two thirds are
the backward pass. Activations, pooling and the loss take none.
"""

import time

import torch

FORWARD, BACKWARD = 1 / 3, 2 / 3


def first_tensor(output):
    return output[0] if isinstance(output, tuple) else output


def multiplications(layer, output):
    """Of a forward pass: a dense layer or a convolution uses each weight once for each position of its output, a
    recurrent layer once for each step; others touch each element of the output."""
    if isinstance(layer, (torch.nn.Linear, torch.nn.Conv2d)):
        return output.numel() * layer.weight[0].numel()
    if isinstance(layer, torch.nn.RNNBase):
        return output.numel() // output.shape[-1] * sum(p.numel() for p in layer.parameters())
    return output.numel()


def layers_of(module):
    return {n: m for n, m in module.named_modules() if any(True for _ in m.parameters(recurse=False))}


def shares(module, inputs):
    """The share of each layer in all multiplications of a forward pass; a layer that is called twice counts twice."""
    work = dict.fromkeys(layers_of(module), 0)

    def count(name):
        def add(layer, _, output):
            work[name] += multiplications(layer, first_tensor(output))

        return add

    handles = [layer.register_forward_hook(count(name)) for name, layer in layers_of(module).items()]
    training = module.training
    with torch.no_grad():
        module.eval()(*inputs)  # leaves running statistics alone
    module.train(training)
    for handle in handles:
        handle.remove()
    return {name: part / sum(work.values()) for name, part in work.items()}


class Device:
    """`iteration_ms` is what a forward and a backward pass of the module take. Make it before anything else hooks the
    module: what comes later then sees the device's time."""

    def __init__(self, module, iteration_ms, *inputs, ahead=True):
        self.busy_until = 0.0  # seconds of time.perf_counter()
        for name, share in shares(module, inputs).items():
            if ahead:
                layers_of(module)[name].register_forward_hook(self._launch(share * iteration_ms / 1e3))
            else:
                self._compute(layers_of(module)[name], share * iteration_ms / 1e3)
        for parameter in module.parameters() if ahead else ():
            parameter.register_hook(self._wait)

    def _launch(self, seconds):
        def forward(layer, inputs, output):
            self.busy_until = max(self.busy_until, time.perf_counter()) + seconds * FORWARD
            if first_tensor(output).requires_grad:
                first_tensor(output).register_hook(backward)

        def backward(gradient):
            self.busy_until += seconds * BACKWARD

        return forward

    def _compute(self, layer, seconds):
        """With the host, which waits."""
        began = real = 0.0

        def begin(layer, inputs):
            nonlocal began
            began = time.thread_time()

        def forward(layer, inputs, output):
            nonlocal real
            real = time.thread_time() - began
            time.sleep(max(seconds * FORWARD - real, 0))
            if first_tensor(output).requires_grad:
                first_tensor(output).register_hook(backward)

        def backward(gradient):
            time.sleep(max(seconds * BACKWARD - 2 * real, 0))

        layer.register_forward_pre_hook(begin)
        layer.register_forward_hook(forward)

    def _wait(self, gradient):
        """The hook of a parameter; it runs before the gradient is accumulated, and so before DDP knows of it."""
        time.sleep(max(self.busy_until - time.perf_counter(), 0))

    # ---- a clock for syncopate_torch.profile, as CudaClock is one ----

    def now(self):
        return max(self.busy_until, time.perf_counter()) * 1e6

    def wait(self):
        time.sleep(max(self.busy_until - time.perf_counter(), 0))

    def between_us(self, start, end):
        return end - start
