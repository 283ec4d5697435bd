"""A model file for syncopate from a PyTorch training job that runs, on a CPU or a GPU.

    import syncopate_torch
    syncopate_torch.profile(model, "model.json")

Training goes on as it is; after some iterations the file is written and the hooks are gone. bench.py measures the
cluster's all-reduces, hook.py trains by an exported strategy.
"""

from .profile import Profile, profile

__all__ = ["Profile", "profile"]
