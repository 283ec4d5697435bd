"""A cluster file from the ranks that run: their hosts and devices. The rates of NICs and of links between devices are what
the largest all-reduce reached, so they are no higher than the true ones."""

import os
import socket

import torch
import torch.distributed as dist


LONGEST = 256  # bytes of a name


def gathered(text, device):
    """The text of each rank. all_gather_object would need NumPy."""
    own = torch.tensor(list(text.encode()[:LONGEST].ljust(LONGEST)), dtype=torch.uint8, device=device)
    every = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(every, own)
    return [bytes(name.tolist()).decode(errors="ignore").rstrip() for name in every]


def described(device):
    """A description whose rates are missing. All ranks must call this."""
    what = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    nodes = {}
    for host, kind in zip(gathered(socket.gethostname(), device), gathered(what, device)):
        nodes.setdefault(host, {"name": host, "devices": 0, "device": kind})["devices"] += 1
    name = os.environ.get("SLURM_JOB_NAME", next(iter(nodes)))
    return {"schema": "syncopate.cluster/1", "name": name, "nodes": list(nodes.values())}


def fill_rates(description, measurements):
    """Each rank sends and receives 2 (n - 1) / n times the bytes of an all-reduce of n ranks, whichever good algorithm it
    is done by. Returns the rate in GB/s."""
    largest, ranks = measurements[-1], sum(node["devices"] for node in description["nodes"])
    gbyte_per_s = 2 * (ranks - 1) / ranks * largest["bytes"] / largest["time_us"] / 1e3
    for node in description["nodes"]:
        node["nic_gbit_per_s"] = max(round(8 * gbyte_per_s, 3), 0.001)
        node["device_link_gbyte_per_s"] = max(round(gbyte_per_s, 3), 0.001)
    return gbyte_per_s
