"""export_consumers.py SYNCOPATE FOLDER...: what the frameworks themselves make of exported files. Each FOLDER has a
strategy in every form that is not refused. Prints ok, not ok and skip lines; a framework that is not here is a skip."""
import glob
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from types import SimpleNamespace

syncopate, folders = sys.argv[1], sys.argv[2:]


def result(name, check):
    try:
        check()
        print(f"ok {name}", flush=True)
    except Exception as error:  # noqa: BLE001: whatever goes wrong is the result
        print(f"not ok {name}: {type(error).__name__}: {str(error)[:200]}".replace("\n", " "), flush=True)


def needs(name, *modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        print(f"skip {name}: needs {', '.join(missing)} (build/venv/bin/pip install; .ci/torch)", flush=True)
    return not missing


def files(name):
    found = [path for folder in folders for path in glob.glob(f"{folder}/*/{name}")]
    assert len(found) > 20, f"{len(found)} files {name}"
    return found


# ---- torchtitan ----

def torchtitan_tables():
    said = set()
    for path in files("torchtitan.toml"):
        with open(path, "rb") as file:
            table = tomllib.load(file)
        assert set(table) <= {"parallelism", "training"}, path
        parallelism, training = table["parallelism"], table.get("training", {})
        sharded = "fsdp_reshard_after_forward" in parallelism  # torchtitan gathers as bf16 where nothing is said
        assert training.pop("mixed_precision_param", None) in (["float32", "bfloat16"] if sharded else [None]), path
        assert training.pop("mixed_precision_reduce", None) == ("float32" if sharded else None), path
        assert set(training) <= {"local_batch_size", "global_batch_size"}, path
        said.add(parallelism.pop("fsdp_reshard_after_forward", None))
        assert sorted(parallelism) == ["data_parallel_replicate_degree", "data_parallel_shard_degree"], path
    assert "default" in said and None in said and said <= {"default", "always", "never", None}, said


# ---- DeepSpeed ----

def deepspeed_settings():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # it warns where it has to find out
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
    stages = set()
    for path in files("deepspeed.json"):
        with open(path, encoding="utf-8") as file:
            zero = json.load(file)["zero_optimization"]
        read = DeepSpeedZeroConfig(**zero)  # refuses what it does not know
        names = {"stage3_" + n: n for n in ("prefetch_bucket_size", "max_live_parameters", "max_reuse_distance")}
        names["stage3_param_persistence_threshold"] = "param_persistence_threshold"
        for key, value in zero.items():
            assert getattr(read, names.get(key, key)) == value, (path, key)
        stages.add(zero.get("stage"))
    assert stages == {None, 1, 2, 3}, stages


# ---- Accelerate ----

def launched(path):
    """The environment that accelerate launch gives a process."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_multi_gpu_env
    args = launch_command_parser().parse_args(["--config_file", path, "train.py"])
    args, _, _ = _validate_launch_command(args)
    return args, {k: v for k, v in prepare_multi_gpu_env(args).items() if "FSDP" in k}


def accelerate_files():
    kinds = set()
    for path in files("accelerate.yaml"):
        args, _ = launched(path)
        assert args.use_fsdp != args.multi_gpu and args.num_machines > 0 and args.num_processes > 0, path
        assert not args.use_fsdp or args.fsdp_version == 2, path
        kinds.add(args.use_fsdp)
    assert kinds == {True, False}, kinds


def decoder(tied):
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj, self.norm = nn.Linear(8, 8, bias=False), nn.LayerNorm(8)

    class Decoder(nn.Module):
        _no_split_modules = ["Block"]

        def __init__(self):
            super().__init__()
            self.embed_tokens, self.layers = nn.Embedding(16, 8), nn.ModuleList(Block() for _ in range(3))
            self.norm, self.lm_head = nn.LayerNorm(8), nn.Linear(8, 16, bias=False)
            self.tie_weights()

        def tie_weights(self):  # Accelerate calls it again once it has the model on the meta device
            if tied:
                self.lm_head.weight = self.embed_tokens.weight

        def get_input_embeddings(self):
            return self.embed_tokens

        def get_output_embeddings(self):
            return self.lm_head

    return Decoder()


def describe(module, tied):
    """Its model for syncopate: forward through the modules in order, backward in the opposite order."""
    parameters = dict(module.named_parameters())
    steps = ["embed_tokens", "layers.0", "layers.1", "layers.2", "norm", "lm_head"]
    owned = {s: [n for n in parameters if n.startswith(s + ".")] for s in steps}
    reads = dict(owned, lm_head=["embed_tokens.weight"]) if tied else owned
    forward = [{"name": s, "phase": "forward", "time_us": 1, "reads": reads[s]} for s in steps]
    backward = [{"name": s + ".grad", "phase": "backward", "time_us": 1, "after": [], "produces": owned[s]}
                for s in reversed(steps)]
    return {"schema": "syncopate.model/1", "name": "decoder",
            "variables": [{"name": n, "shape": list(p.shape)} for n, p in parameters.items()],
            "operators": forward + backward}


def wrapped(module, environment):
    """The groups that Accelerate makes, each as its variables and whether it reshards after the forward pass."""
    import torch
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model
    os.environ.update(environment)
    accelerator = SimpleNamespace(state=SimpleNamespace(fsdp_plugin=FullyShardedDataParallelPlugin()),
                                  mixed_precision="no", torch_device_mesh=None, is_main_process=True,
                                  device=torch.device("cpu"))
    module = fsdp2_prepare_model(accelerator, module)
    names = {id(p): n for n, p in module.named_parameters()}
    groups = set()
    for part in module.modules():
        group = part._get_fsdp_state()._fsdp_param_group if hasattr(part, "_get_fsdp_state") else None
        if group:
            members = frozenset(names[id(p.sharded_param)] for p in group.fsdp_params)
            groups.add((members, group.post_forward_mesh_info is not None))
    return groups


def accelerate_wraps_as_the_strategy_says():
    import torch.distributed as dist
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    for tied in (False, True):
        for reshard in (True, False):
            module = decoder(tied)
            with open("decoder.json", "w", encoding="utf-8") as file:
                json.dump(describe(module, tied), file)
            shown = subprocess.run([syncopate, "strategy", "show", "decoder.json", "v100-16x10g", "--baseline",
                                    "torchtitan", "--json"], check=True, capture_output=True, text=True).stdout
            strategy = json.loads(shown)
            for group in strategy["groups"]:
                if not reshard:
                    group["reshard_after_forward"] = False
            with open("strategy.json", "w", encoding="utf-8") as file:
                json.dump(strategy, file)
            subprocess.run([syncopate, "strategy", "export", "strategy.json", "--model", "decoder.json", "--cluster",
                            "v100-16x10g", "--to", "accelerate", "--strict", "--out", "accelerate.yaml"], check=True)
            want = {(frozenset(v["name"] for v in strategy["variables"] if v["sync"]["group"] == g["id"]),
                     g.get("reshard_after_forward", True)) for g in strategy["groups"]}
            got = wrapped(module, launched("accelerate.yaml")[1])
            assert got == want, (tied, reshard, got ^ want)


result("torchtitan_reads_its_table", torchtitan_tables)
if needs("deepspeed_reads_its_settings", "deepspeed"):
    result("deepspeed_reads_its_settings", deepspeed_settings)
if needs("accelerate_reads_its_file", "accelerate", "torch"):
    result("accelerate_reads_its_file", accelerate_files)
if needs("accelerate_wraps_as_the_strategy_says", "accelerate", "torch"):
    result("accelerate_wraps_as_the_strategy_says", accelerate_wraps_as_the_strategy_says)
sys.stdout.flush()
os._exit(0)  # DeepSpeed's threads may still be there when the interpreter goes, which would abort then
