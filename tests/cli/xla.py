"""What XLA makes of collectives: how it combines them in a compiled program. Its compiler for GPUs runs without one, for the
H100 that GPU describes, where the package jax-cuda12-plugin is.

    xla.py flags         start with the XLA_FLAGS of the environment
    xla.py gpu           end with 0 if programs for GPUs can be compiled here
    xla.py cpu           ok and not ok lines, of programs for four emulated devices of the CPU
    xla.py combine SEED  ok and not ok lines, of programs for four GPUs
    xla.py apply FLAGS OPERATION
                         elements of each input, a line; how many bytes each of these collectives has under these flags
"""
import os
import random
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
if sys.argv[1] == "cpu":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MIB, MOST, DEFAULT = 1 << 20, 256, 30 * (1 << 20) + 7
GPU = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
 shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072 shared_memory_per_block_optin: 232448
 cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 8 } device_description_str: "NVIDIA H100 80GB HBM3" """
STEPS = {"all_reduce": lambda x: jax.lax.psum(x, "d"),
         "all_gather": lambda x: jax.lax.all_gather(x, "d", tiled=True),
         "reduce_scatter": lambda x: jax.lax.psum_scatter(x, "d", tiled=True)}


def gpus():
    from jax._src import xla_bridge
    if "cuda" not in xla_bridge._topology_factories:
        xla_bridge.discover_pjrt_plugins()
    make = xla_bridge._topology_factories["cuda"]
    return topologies.TopologyDescription(make("four", target_config=GPU, topology="1x1x4")._make_compile_only_devices()).devices


def combined(devices, inputs, operation="all_reduce", flags=None):
    """Of each collective of the compiled program, [(type, elements)] of its outputs. `inputs` are of these, on each device."""
    mesh, every = Mesh(devices, ("d",)), PartitionSpec()
    types = {"f32": jnp.float32, "s32": jnp.int32}

    def step(*xs):
        return tuple(STEPS[operation](x * 2) for x in xs)

    split = PartitionSpec("d") if operation == "reduce_scatter" else every
    program = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=every, out_specs=split, check_vma=False))
    shapes = (jax.ShapeDtypeStruct((n,), types[t], sharding=NamedSharding(mesh, every)) for t, n in inputs)
    text = program.lower(*shapes).compile(flags).as_text()
    word = operation.replace("_", "-")
    found = []
    for said, start in re.findall(rf"= (.*?) {word}(-start)?\(", text):
        shapes = [(t, int(n)) for t, n in re.findall(r"(\w+)\[(\d+)\]", said)]
        inputs_too = start and operation != "all_reduce"
        found.append(shapes[len(shapes) // 2 * bool(inputs_too):])
    return found


def bytes_of(collectives):
    """XLA joins what is combined into one piece, so of a group the sum is seen."""
    return sorted(4 * sum(n for _, n in c) for c in collectives)


def rule(sizes, threshold):
    """The sums of the groups, read from CollectiveCombiner's source: one above the threshold is left alone."""
    out, group = [], []
    for size in sizes:
        if size > threshold:
            out.append(size)
            continue
        if group and (sum(group) + size > threshold or len(group) == MOST):
            out.append(sum(group))
            group = []
        group.append(size)
    return sorted(out + ([sum(group)] if group else []))


def verdict(name, got, want):
    print(f"ok {name}" if got == want else f"not ok {name}: {str(got)[:300]}, not {str(want)[:300]}")


def cpu():
    many = [("f32", 16 + i) for i in range(600)]
    verdict("at_most_256_are_combined_in_the_program_s_order", combined(jax.devices(), many),
            [many[:MOST], many[MOST:2 * MOST], many[2 * MOST:]])
    mixed = [(("f32", "s32")[i % 3 == 0], 100 + i) for i in range(30)]
    verdict("each_type_is_combined_by_itself", sorted(combined(jax.devices(), mixed)),
            sorted([m for m in mixed if m[0] == kind] for kind in ("f32", "s32")))


def combine(seed):
    draw, devices = random.Random(seed), gpus()
    print(f"# seed {seed}")
    # Of each operation: how many bytes of output an input of one byte has on each device.
    for operation, factor in (("all_reduce", 1), ("all_gather", 4), ("reduce_scatter", 0.25)):
        got, want = [], []
        for _ in range(6):
            elements = [4 * draw.randrange(1, 1 << draw.randrange(8, 18)) for _ in range(draw.randrange(3, 14))]
            sizes = [int(4 * n * factor) for n in elements]
            threshold = draw.choice((max(sizes), max(sizes) // 2, sum(sizes) // 2, sum(sizes[:3]), sum(sizes[:3]) - 1, 1))
            flags = {f"xla_gpu_{operation}_combine_threshold_bytes": threshold}
            got.append(bytes_of(combined(devices, [("f32", n) for n in elements], operation, flags)))
            want.append(rule(sizes, threshold))
        verdict(f"{operation}_s_are_combined_by_the_rule", got, want)
    mixed = [(("f32", "s32")[i % 3 == 0], 400 + 4 * i) for i in range(12)]
    made = [len(combined(devices, mixed, operation, {f"xla_gpu_{operation}_combine_threshold_bytes": MIB})) for operation in STEPS]
    verdict("only_all_gathers_of_different_types_go_together", made, [2, 1, 2])
    sizes = [10 * MIB, 10 * MIB, 10 * MIB, 9 * MIB, 31 * MIB, MIB]
    verdict("without_a_flag_up_to_30_MiB_and_7_bytes", bytes_of(combined(devices, [("f32", s // 4) for s in sizes])),
            rule(sizes, DEFAULT))


def apply(path, operation):
    with open(path, encoding="utf-8") as file:
        flags = {name: int(value) for name, value in re.findall(r"--(\w+)=(\d+)", file.read())}
    print(*bytes_of(combined(gpus(), [("f32", int(line)) for line in sys.stdin], operation, flags)))


if sys.argv[1] == "flags":
    print(jax.__version__, jax.devices())
elif sys.argv[1] == "gpu":
    gpus()
elif sys.argv[1] == "cpu":
    cpu()
elif sys.argv[1] == "combine":
    combine(int(sys.argv[2]))
else:
    apply(sys.argv[2], sys.argv[3])
