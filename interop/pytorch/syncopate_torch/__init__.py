"""A model file for syncopate from a PyTorch training job that runs, on a CPU or a GPU.

    import syncopate_torch
    syncopate_torch.profile(model, "model.json")

Training goes on as it is; after some iterations the file is written and the hooks are gone. bench.py measures the
cluster's all-reduces, hook.py trains by an exported strategy.
"""

import warnings

# `python3 -m syncopate_torch.profile` runs a module that this one has imported, and the interpreter would say so.
warnings.filterwarnings("ignore", "'syncopate_torch.profile' found in sys.modules", RuntimeWarning)

from .profile import Profile, profile  # noqa: E402

__all__ = ["Profile", "profile"]
