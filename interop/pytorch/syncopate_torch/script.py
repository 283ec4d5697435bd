"""`python3 -m syncopate_torch.profile`: a training script as it is, with the profile of the first module that it trains.

The outermost module whose forward pass is called with gradients on is the one. Where that is a DistributedDataParallel, its
communication is switched off, since waits for other ranks are what is to be tuned: each rank trains alone from there on,
and its copies drift apart, so the script ends when the file is written.
"""

import argparse
import os
import runpy
import sys

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel

from .description import check_writable, words
from .profile import Profile, is_writer

OPTIMIZERS = ("sgd", "momentum", "adagrad", "rmsprop", "lion", "adam", "adamw", "lamb", "adafactor")
ABOUT = """Run a training script, watch some of its iterations, and write the model as `syncopate simulate` and
`syncopate tune` take it: gradients with their sizes, when each layer computes, what each leaves in memory for the
backward pass, and the optimizer. The script is not changed. It ends when the file is written, after 25 iterations unless
you say otherwise; nothing that it learned is of use.

The module whose forward pass the script calls first, with gradients on, is the one. In a DistributedDataParallel nothing
is sent meanwhile: waits for other ranks are what is to be tuned. A script that trains in another way (several modules in
turn, FSDP, pipelines) calls syncopate_torch.profile(model, FILE) itself, before its loop."""
AFTER = """Where is it started from?
  one process              python3 -m syncopate_torch.profile --out model.json train.py --epochs 1
  one node with 8 GPUs     torchrun --nproc_per_node 8 -m syncopate_torch.profile --out model.json train.py ...
  several nodes, Slurm     as the job, with `-m syncopate_torch.profile --out model.json` before the script's name;
                           one node is enough where ranks share nothing but the network
  python3 cannot find it   PYTHONPATH=PREFIX/share/syncopate/python (or interop/pytorch of the source)
On GPUs times are those of the stream. Ranks that share processors are to run at the same time, as in training. Rank 0
writes the file.

What comes next:
  torchrun ... -m syncopate_torch.bench --out measured.json        the cluster, by the same launcher
  syncopate simulate model.json measured.json --baseline pytorch-ddp --bucket-mib 1,5,10,50"""


def options_of_command():
    parser = argparse.ArgumentParser(
        prog="python3 -m syncopate_torch.profile",
        description=ABOUT,
        epilog=AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="where the model goes")
    parser.add_argument("--name", help="of the model (default: its class)")
    batch = "samples an iteration on one rank (default: the first size of the first tensor that the module gets)"
    parser.add_argument("--batch", type=int, metavar="N", help=batch)
    parser.add_argument("--warmup", type=int, metavar="N", default=5, help="iterations that do not count (default 5)")
    parser.add_argument("--iterations", type=int, metavar="N", default=20, help="iterations that count (default 20)")
    optimizer = f"""what updates the variables, for predictions of memory: {', '.join(OPTIMIZERS)}, or bytes that it keeps
    of each element (default: the optimizer that the script makes)"""
    parser.add_argument("--optimizer", metavar="NAME|BYTES", help=optimizer)
    parser.add_argument("script", metavar="SCRIPT", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what it is given")
    options = parser.parse_args()
    if options.iterations < 1 or options.warmup < 0:
        parser.error("--iterations must be at least 1 and --warmup at least 0")
    if options.optimizer and options.optimizer not in OPTIMIZERS:
        options.optimizer = {"bytes_per_element": bytes_or_refuse(options.optimizer)}
    return options


def bytes_or_refuse(text):
    try:
        size = float(text)
    except ValueError:
        size = -1
    if not 0 <= size < 1000:
        refuse(f"--optimizer {text}: none of {', '.join(OPTIMIZERS)}, and no number of bytes below 1000")
    return size


def refuse(why, status=2):
    if os.environ.get("RANK", "0") == "0":
        print(f"syncopate_torch.profile: error: {why}", file=sys.stderr, flush=True)
    raise SystemExit(status)


class Watch:
    """Waits for the module, profiles it, and ends the script."""

    def __init__(self, options):
        self.options, self.profile = options, None
        register_module_forward_pre_hook(self._before)

    def _before(self, module, inputs):
        if self.profile is None:
            if torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()):
                self._begin(module)
        elif self.profile.left == 0:
            raise SystemExit(1 if is_writer() and not self.profile.done else 0)

    def _begin(self, module):
        if isinstance(module, DistributedDataParallel):
            module.require_backward_grad_sync = module.require_forward_param_sync = False
        o = self.options
        self.profile = Profile(module, o.out, o.name, o.batch, o.warmup, o.iterations, optimizer=o.optimizer)


def run(options):
    watch = Watch(options)
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))  # as python3 SCRIPT has it
    runpy.run_path(options.script, run_name="__main__")
    if watch.profile is None:
        refuse(f"{options.script} ended and trained no module", 1)
    if watch.profile.left:
        seen = options.warmup + options.iterations - watch.profile.left
        refuse(f"{options.script} ended after {seen} iterations; give fewer by --iterations, or let it train longer", 1)


def main():
    options = options_of_command()
    try:
        if os.environ.get("RANK", "0") == "0":
            check_writable(options.out)
        with open(options.script, "rb"):
            pass
    except OSError as problem:
        refuse(words(problem))
    run(options)
