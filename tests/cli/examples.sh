#!/bin/sh
# The example models and clusters: what generate.py writes is what is checked in, totals are the published ones (a
# second list, kept apart from the generator's own), and every description is well formed. Prints ok / not ok / skip
# lines. With $OUT/bin/syncopate, the program must also accept each of them.
# Once: what reads descriptions has unit tests and fuzzers, which sanitizers see.
# Computes: it waits for nothing and times nothing.
# Plan: 82
cd "$(dirname "$0")/../.." || exit 1

if ! command -v python3 >/dev/null; then
    echo "skip examples: python3 is not installed"
    exit 0
fi

failed=0
if why=$(PYTHONDONTWRITEBYTECODE=1 python3 examples/generate/generate.py --check 2>&1); then
    echo "ok examples_are_what_the_generator_writes"
else
    echo "not ok examples_are_what_the_generator_writes: $(echo "$why" | tail -n 1)"
    failed=1
fi

python3 - <<'PYTHON' || failed=1
import json
import sys
from math import prod
from pathlib import Path

# file: (parameters, tensors); a count of 0 is not published. ncf: 2,215,888 users and 855,808 items x 40, and 2,761.
PUBLISHED = {
    "vgg16": (138357544, 32), "googlenet": (6624904, 173), "googlenet-k80": (6624904, 173), "resnet18": (11689512, 62),
    "resnet50": (25557032, 161), "resnet50-k80": (25557032, 161), "resnet152": (60192808, 467),
    "densenet121": (7978856, 364), "densenet201": (20013928, 604), "bert-base": (109482240, 199),
    "bert-large": (335141888, 391), "bert-3l": (45691392, 55), "inception-v3": (23834568, 284),
    "resnet101": (44549160, 314),
    "gpt2-small": (124439808, 148), "ncf": (122870601, 10), "ncf-sparse": (122870601, 10), "seq2seq": (67.2, 32),
    "transformer": (91.8, 164), "llama-135m": (134515008, 272), "llama-1b": (1235814400, 146), "llama-8b": (8030261248, 291),
    "llama-135m-v100": (134515008, 272), "llama-1b-v100": (1235814400, 146), "llama-8b-v100": (8030261248, 291),
    "llama-8b-checkpointing": (8030261248, 291), "llama-8b-checkpointing-v100": (8030261248, 291),
    "mlp-small": (0, 8), "cnn-small": (0, 40), "transformer-small": (0, 64),
}
NODE = {"name", "count", "devices", "device", "nic_gbit_per_s", "nic_latency_us", "device_link_gbyte_per_s",
        "compute_scale"}
CLUSTERS = {"lab-4x1g": (4, 4), "lab-4x1g-weather": (4, 4), "lab-8x500m": (8, 8), "lab-mixed": (6, 6), "v100-16x10g": (4, 16),
            "autosync-a": (11, 11), "autosync-b": (4, 16), "k80-8x10g": (8, 16), "h100-64x8": (64, 512),
            "h100-64x8-bf16": (64, 512)}


def require(condition, why):
    if not condition:
        raise ValueError(why)


def same_count(found, published):
    """An exact count, or millions to one decimal."""
    return round(found / 1e6, 1) == published if isinstance(published, float) else found == published or published == 0


def check_order(operators):
    """Names are unique, edges lead to earlier rows (so the graph is acyclic), forward never waits for backward."""
    seen = {}
    for op in operators:
        require(op["name"] not in seen, f"{op['name']} appears twice")
        for name in op["after"]:
            require(name in seen, f"{op['name']} comes after {name}, which is not earlier")
            require(op["phase"] == "backward" or seen[name] == "forward", f"{op['name']} waits for a gradient")
        require(op["time_us"] > 0, f"{op['name']} takes no time")
        seen[op["name"]] = op["phase"]


def check_model(model):
    parameters, tensors = PUBLISHED[model["name"]]
    variables = [v["name"] for v in model["variables"]]
    found = sum(prod(v["shape"]) for v in model["variables"])
    require(same_count(found, parameters), f"{found} parameters, published {parameters}")
    require(len(set(variables)) == tensors == len(variables), f"{len(variables)} variables, expected {tensors}")
    check_order(model["operators"])
    produced = [v for op in model["operators"] for v in op.get("produces", []) if op["phase"] == "backward"]
    read = {v for op in model["operators"] for v in op.get("reads", []) if op["phase"] == "forward"}
    require(sorted(produced) == sorted(variables), "some variable is not produced exactly once")
    require(read == set(variables), "some variable is never read")


def check_gradients_wait_for_every_reader(model):
    """A tied variable is complete only after each reader's gradient: the producer must come after all of them."""
    ops = {op["name"]: op for op in model["operators"]}
    ancestors = {}
    for op in model["operators"]:
        ancestors[op["name"]] = set(op["after"]).union(*(ancestors[a] for a in op["after"]))
    producer = {v: op["name"] for op in ops.values() for v in op.get("produces", [])}
    for op in ops.values():
        for v in op.get("reads", []):
            grad = op["name"] + ".grad"
            require(grad == producer[v] or grad in ancestors[producer[v]], f"{v} is produced before {grad}")


# name: width, width of keys, hidden, layers, heads, vocabulary, tokens of a device
LLAMAS = {"llama-135m": (576, 192, 1536, 30, 9, 49152, 16 * 2048), "llama-1b": (2048, 512, 8192, 16, 32, 128256, 2 * 8192),
          "llama-8b": (4096, 1024, 14336, 32, 32, 128256, 2 * 8192), "llama-135m-v100": (576, 192, 1536, 30, 9, 49152, 8 * 2048),
          "llama-1b-v100": (2048, 512, 8192, 16, 32, 128256, 2 * 2048), "llama-8b-v100": (4096, 1024, 14336, 32, 32, 128256, 2048)}


def check_activations(model):
    """What the forward pass leaves: the sum of generate/llama.py's text, and the inputs of layers alone when checkpointing;
    then what the backward pass makes again is one layer of the sum, without its input."""
    if "llama" not in model["name"]:
        return
    width, keys, hidden, layers, heads, vocabulary, tokens = LLAMAS[model["name"].replace("-checkpointing", "")]
    layer = 12 * width + 4 * keys + 6 * hidden + 4 * heads + 2 * 4
    ends = 2 * width + 4 + 2 * width + 4 * vocabulary
    again = "checkpointing" in model["name"]
    left = [sum(op.get("activation_bytes", 0) for op in model["operators"] if op["phase"] == phase)
            for phase in ("forward", "backward")]
    expected = [tokens * (layers * (2 * width if again else layer) + ends), tokens * layers * (layer - 2 * width) * again]
    require(left == expected, f"leaves {left}, not {expected}")


def check_cluster(cluster):
    for node in cluster["nodes"]:
        require(set(node) <= NODE, f"unknown field in {node['name']}")
        require(min(node["nic_gbit_per_s"], node["compute_scale"], node["device_link_gbyte_per_s"]) > 0, "not positive")
    counts = sum(n["count"] for n in cluster["nodes"]), sum(n["count"] * n["devices"] for n in cluster["nodes"])
    require(counts == CLUSTERS[cluster["name"]], f"nodes and devices are {counts}")


def run(name, path, checks):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        require(content["name"] == path.stem, "name is not the file's")
        for check in checks:
            check(content)
    except (OSError, ValueError, KeyError) as error:
        print(f"not ok {name}: {error}")
        return False
    print(f"ok {name}")
    return True


examples = Path("examples")
model_checks = [check_model, check_gradients_wait_for_every_reader, check_activations]
good = [run(f"example_model_{m}", examples / "models" / f"{m}.json", model_checks) for m in PUBLISHED]
good += [run(f"example_cluster_{c}", examples / "clusters" / f"{c}.json", [check_cluster]) for c in CLUSTERS]
known = {p.stem for folder in ("models", "clusters") for p in (examples / folder).glob("*.json")}
extra = sorted(known - set(PUBLISHED) - set(CLUSTERS))
print(f"not ok examples_are_all_checked: {' '.join(extra)}" if extra else "ok examples_are_all_checked")
sys.exit(0 if all(good) and not extra else 1)
PYTHON

syncopate=${OUT:-build/release}/bin/syncopate
if [ ! -x "$syncopate" ]; then
    echo "skip examples_load: $syncopate is not built"
    exit $failed
fi
loads() { # NAME MODEL CLUSTER
    set -- "$1" "examples/models/$2.json" "examples/clusters/$3.json"
    if why=$("$syncopate" simulate "$2" "$3" --baseline wfbp 2>&1 >/dev/null); then
        echo "ok $1"
    else
        echo "not ok $1: $(echo "$why" | tail -n 1)"
        failed=1
    fi
}
for path in examples/models/*.json; do
    model=$(basename "$path" .json)
    loads "example_model_${model}_simulates" "$model" v100-16x10g
done
for path in examples/clusters/*.json; do
    cluster=$(basename "$path" .json)
    loads "example_cluster_${cluster}_simulates" resnet18 "$cluster"
done
exit $failed
