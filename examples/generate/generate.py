#!/usr/bin/env python3
"""Write examples/models/*.json and the tables of examples/README.md, or check that they are what would be written.

generate.py                              write everything
generate.py --check                      exit 1 and name each file that differs
generate.py --print NAME [--device D] [--batch N]   one model to stdout, on another device or with another batch
generate.py --compare FOLDER             our times against measured profiles in FOLDER (espresso/*.csv, pipedream/*.txt)
"""

import argparse
import csv
import json
import re
import sys
from math import prod
from pathlib import Path

import cnn
import llama
import recommender
import recurrent
import small
import transformer
from device import DEVICES
from graph import WIDTHS, Graph

EXAMPLES = Path(__file__).resolve().parent.parent
TORCHVISION = "torchvision model table"
HUGGINGFACE = "HuggingFace, sum over parameters()"

# file: (build, device, batch, published count, where it is from); a rounded count is the range that rounds to it.
MODELS = {
    "vgg16": (cnn.vgg16, "v100", 32, 138357544, TORCHVISION),
    "googlenet": (cnn.googlenet, "v100", 64, 6624904, TORCHVISION),
    "googlenet-k80": (cnn.googlenet, "k80", 64, 6624904, TORCHVISION),
    "inception-v3": (cnn.inception_v3, "v100", 32, 27161264 - 3326696, TORCHVISION + ", less the auxiliary head"),
    "resnet18": (cnn.resnet18, "v100", 64, 11689512, TORCHVISION),
    "resnet50": (cnn.resnet50, "v100", 32, 25557032, TORCHVISION),
    "resnet50-k80": (cnn.resnet50, "k80", 32, 25557032, TORCHVISION),
    "resnet101": (cnn.resnet101, "v100", 32, 44549160, TORCHVISION),
    "resnet152": (cnn.resnet152, "v100", 32, 60192808, TORCHVISION),
    "densenet121": (cnn.densenet121, "v100", 32, 7978856, TORCHVISION),
    "densenet201": (cnn.densenet201, "v100", 64, 20013928, TORCHVISION),
    "bert-3l": (transformer.bert_3l, "v100", 32, 109482240 - 9 * 7087872, "bert-base, less nine layers"),
    "bert-base": (transformer.bert_base, "v100", 32, 109482240, HUGGINGFACE),
    "bert-large": (transformer.bert_large, "v100", 8, 335141888, HUGGINGFACE),
    "gpt2-small": (transformer.gpt2_small, "v100", 4, 124439808, HUGGINGFACE),
    "ncf": (recommender.ncf, "v100", 65536, (122e6, 123e6), "AutoSync: 122M in 10 variables"),
    "ncf-sparse": (recommender.ncf_sparse, "v100", 65536, (122e6, 123e6), "as ncf"),
    "seq2seq": (recurrent.seq2seq, "v100", 128, (67.15e6, 67.25e6), "PACE: 67.2 M in 32 tensors"),
    "transformer": (transformer.transformer, "v100", 64, (91.75e6, 91.85e6), "PACE: 91.8 M in 164 tensors"),
    "llama-135m": (llama.llama_135m(2048), "h100-bf16", 16, 134515008, HUGGINGFACE + ": SmolLM-135M"),
    "llama-1b": (llama.llama_1b(8192), "h100-bf16", 2, 1235814400, HUGGINGFACE + ": Llama 3.2 1B"),
    "llama-8b": (llama.llama_8b(8192), "h100-bf16", 2, 8030261248, HUGGINGFACE + ": Llama 3 8B"),
    "llama-8b-checkpointing": (llama.llama_8b(8192, True), "h100-bf16", 2, 8030261248, "as llama-8b"),
    "llama-135m-v100": (llama.llama_135m(2048), "v100-f16", 8, 134515008, "as llama-135m"),
    "llama-1b-v100": (llama.llama_1b(2048), "v100-f16", 2, 1235814400, "as llama-1b"),
    "llama-8b-v100": (llama.llama_8b(2048), "v100-f16", 1, 8030261248, "as llama-8b"),
    "llama-8b-checkpointing-v100": (llama.llama_8b(2048, True), "v100-f16", 1, 8030261248, "as llama-8b"),
    "mlp-small": (small.mlp_small, "slow", 640, None, "ours"),
    "cnn-small": (small.cnn_small, "slow", 16, None, "ours"),
    "transformer-small": (small.transformer_small, "slow", 4, None, "ours"),
}

# Published single-device speeds that the constants of device.py were fitted to, or that check them.
# (model, device, batch, samples a second, what it counts, source)
PUBLISHED = [
    ("resnet50", "v100", 128, 380.44, "training", "NVIDIA DeepLearningExamples, PyTorch ResNet50, 19.10, V100 16 GB"),
    ("vgg16", "v100", 32, 215.3, "training", "apache/mxnet issue 8289, Gluon on p3.8xlarge"),
    ("bert-large", "v100", 8, 125.63, "forward", "NVIDIA DeepLearningExamples, TensorFlow BERT, 19.06, V100 16 GB"),
    ("bert-base", "v100", 8, 419.94, "forward", "NVIDIA DeepLearningExamples, TensorFlow BERT, 19.06, V100 16 GB"),
    ("llama-8b", "h100-bf16", 2, 6667 / 8192, "training",
     "torchtitan benchmarks, December 2024, FSDP and torch.compile, 8 H100"),
    ("resnet50", "k80", 32, 49.5, "training", "TensorFlow benchmarks page, May 2017, GCE"),
    ("resnet50", "k80", 64, 51.9, "training", "TensorFlow benchmarks page, May 2017, GCE"),
    ("resnet152", "k80", 32, 20.0, "training", "TensorFlow benchmarks page, May 2017, GCE"),
    ("vgg16", "k80", 32, 35.4, "training", "TensorFlow benchmarks page, May 2017, GCE"),
]


def build(name, device=None, batch=None):
    function, default_device, default_batch, _, _ = MODELS[name]
    graph = Graph(name, DEVICES[device or default_device], batch or default_batch)
    function(graph)
    return graph.model()


def parameters(model):
    return sum(prod(v["shape"]) for v in model["variables"])


def phase_ms(model, phase):
    return sum(op["time_us"] for op in model["operators"] if op["phase"] == phase) / 1e3


def iteration_ms(model):
    return phase_ms(model, "forward") + phase_ms(model, "backward")


def text(model):
    """One variable or operator a line."""
    def compact(value):
        return json.dumps(value, separators=(",", ":"))

    def rows(key):
        return compact(key) + ":[\n" + ",\n".join("  " + compact(row) for row in model[key]) + "]"

    head = ",".join(f"{compact(key)}:{compact(model[key])}" for key in model if key not in ("variables", "operators"))
    return "{" + head + ",\n " + rows("variables") + ",\n " + rows("operators") + "}\n"


# -- README ------------------------------------------------------------------------------------------------------------


def models_table(models):
    lines = ["| file | device | batch | variables | parameters | MB | operators | forward ms | backward ms | samples/s "
             "| count from |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    for name, model in models.items():
        _, device, batch, _, source = MODELS[name]
        count = parameters(model)
        forward, backward = (phase_ms(model, phase) for phase in ("forward", "backward"))
        lines.append(f"| {name} | {device} | {batch} | {len(model['variables'])} | {count:,} | {WIDTHS[DEVICES[device].dtype] * count / 1e6:.1f} "
                     f"| {len(model['operators'])} | {forward:.1f} | {backward:.1f} "
                     f"| {batch / iteration_ms(model) * 1e3:,.{0 if batch > iteration_ms(model) / 1e2 else 2}f} | {source} |")
    return lines


def published_table():
    lines = ["| model | device | batch | counts | published samples/s | ours | ours / published | source |",
             "|---|---|---:|---|---:|---:|---:|---|"]
    for name, device, batch, rate, what, source in PUBLISHED:
        model = build(name, device, batch)
        ms = phase_ms(model, "forward") if what == "forward" else iteration_ms(model)
        ours = batch / ms * 1e3
        digits = 1 if rate >= 10 else 3
        lines.append(f"| {name} | {device} | {batch} | {what} | {rate:.{digits}f} | {ours:.{digits}f} "
                     f"| {ours / rate:.2f} | {source} |")
    return lines


def device_table():
    lines = ["| device | peak TFLOP/s | GB/s | launch µs | winograd | conv | gemm | recurrent |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for d in DEVICES.values():
        kinds = " | ".join(f"{d.efficiency[k]:.2f}" if k in d.efficiency else ""
                           for k in ("winograd", "conv", "gemm", "recurrent"))
        lines.append(f"| {d.name} | {d.peak_tflops:g} | {d.bandwidth_gbyte_per_s:g} | {d.launch_us:g} | {kinds} |")
    return lines


def readme(models):
    """examples/README.md with the lines between its markers replaced."""
    content = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    tables = {"models": models_table(models), "devices": device_table(), "published": published_table()}
    for mark, lines in tables.items():
        pattern = re.compile(f"(<!-- {mark} -->\n).*?(<!-- end {mark} -->)", re.S)
        assert pattern.search(content), mark
        content = pattern.sub(lambda m, body="\n".join(lines): f"{m[1]}{body}\n{m[2]}", content)
    return content


# -- measured profiles -------------------------------------------------------------------------------------------------


def espresso_backward_ms(path):
    with open(path, encoding="utf-8") as file:
        return float(list(csv.DictReader(file))[-1]["ready_us"]) / 1e3


def pipedream_ms(path):
    """Forward and backward time of all layers but the input, whose forward time is data loading."""
    forward = backward = 0.0
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        found = re.search(r"-- (.*) -- forward_compute_time=([\d.]+), backward_compute_time=([\d.]+)", line)
        if found and not found[1].startswith("Input"):
            forward, backward = forward + float(found[2]), backward + float(found[3])
    return forward, backward


def compare(folder):
    print("| model | profile | their backward ms | ours | their backward / forward | ours |")
    print("|---|---|---:|---:|---:|---:|")
    for name, file in (("vgg16", "vgg16"), ("resnet50", "resnet50"), ("bert-base", "bert"), ("gpt2-small", "gpt2")):
        model = build(name)
        theirs = espresso_backward_ms(folder / "espresso" / (file + ".csv"))
        ours = phase_ms(model, "backward")
        print(f"| {name} (batch {model['batch_per_device']}) | espresso | {theirs:.1f} | {ours:.1f} | | |")
    for name, batch in (("vgg16", 64), ("resnet18", 256), ("resnet50", 128)):  # as their activation sizes tell
        theirs = pipedream_ms(folder / "pipedream" / (name + ".graph.txt"))
        model = build(name, batch=batch)
        ours = [phase_ms(model, phase) for phase in ("forward", "backward")]
        print(f"| {name} (batch {model['batch_per_device']}) | pipedream | {theirs[1]:.1f} | {ours[1]:.1f} "
              f"| {theirs[1] / theirs[0]:.2f} | {ours[1] / ours[0]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description="Generate the example models.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    parser.add_argument("--print", choices=MODELS, metavar="NAME", help="write one model to stdout")
    parser.add_argument("--device", choices=DEVICES, help="with --print")
    parser.add_argument("--batch", type=int, help="with --print")
    parser.add_argument("--compare", type=Path, metavar="FOLDER", help="compare with measured profiles")
    options = parser.parse_args()
    if options.print:
        sys.stdout.write(text(build(options.print, options.device, options.batch)))
        return 0
    if options.compare:
        compare(options.compare)
        return 0
    models = {name: build(name) for name in MODELS}
    for name, model in models.items():
        published = MODELS[name][3] or parameters(model)
        low, high = published if isinstance(published, tuple) else (published, published)
        assert low <= parameters(model) <= high, f"{name}: {parameters(model)} parameters, published {published}"
    files = {EXAMPLES / "models" / (name + ".json"): text(model) for name, model in models.items()}
    files[EXAMPLES / "README.md"] = readme(models)
    stale = [p for p, content in files.items() if not p.exists() or p.read_text(encoding="utf-8") != content]
    for path in stale:
        if options.check:
            print(f"{path.relative_to(EXAMPLES)} is not what generate.py writes", file=sys.stderr)
        else:
            path.write_text(files[path], encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
