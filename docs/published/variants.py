#!/usr/bin/env python3
"""Models and strategies that the published experiments need and the examples do not have, one JSON file on stdout.

    variants.py googlenet59 [MILLION_PARAMETERS]    googlenet-k80 with the tensors of MG-WFBP's table 4
    variants.py horovod MODEL SCALE CYCLE_MS MIB    Horovod with other than today's defaults, as a strategy

googlenet59: torchvision's GoogLeNet has 173 tensors, of which 114 belong to its batch normalizations; without them it
has the 59 of the paper, whose 13 million parameters (ours: 6.6) are then reached by scaling every tensor alike.

horovod: gradients that become ready within the same cycle, on devices SCALE times slower than the model's, are fused
up to MIB MiB, as strategy/baselines/horovod.c does for one dtype, and all-reduced over rings. Until 0.21 (November
2020) the defaults were 5 ms and 64 MiB; MODEL's operators must form a chain in the order in which they are listed, as
the generated examples do.
"""
import json
import os
import sys

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "models")


def read_model(name):
    path = name if name.endswith(".json") else os.path.join(EXAMPLES, name + ".json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def elements(variable):
    count = 1
    for length in variable["shape"]:
        count *= length
    return count


def googlenet59(million_parameters):
    model = read_model("googlenet-k80")
    dropped = {v["name"] for v in model["variables"] if ".bn." in v["name"]}
    model["variables"] = [v for v in model["variables"] if v["name"] not in dropped]
    factor = million_parameters * 1e6 / sum(map(elements, model["variables"])) if million_parameters else 1
    for variable in model["variables"]:
        variable["shape"][0] = round(variable["shape"][0] * factor)
    for operator in model["operators"]:
        for role in ("reads", "produces"):
            names = [n for n in operator.pop(role, []) if n not in dropped]
            if names:
                operator[role] = names
    model["name"] = "googlenet-59-tensors"
    return model


def horovod(name, scale, cycle_us, most_bytes):
    model = read_model(name)
    size = {v["name"]: 4 * elements(v) for v in model["variables"]}
    group, filled, cycle_of_group, sync = -1, 0, None, {}
    backward = [o for o in model["operators"] if o["phase"] == "backward"]
    now = sum(o["time_us"] for o in model["operators"] if o["phase"] == "forward") * scale
    for operator in backward:
        now += operator["time_us"] * scale
        for variable in operator.get("produces", []):
            if int(now / cycle_us) != cycle_of_group or filled + size[variable] > most_bytes:
                group, filled, cycle_of_group = group + 1, 0, int(now / cycle_us)
            filled += size[variable]
            sync[variable] = group
    return {
        "schema": "syncopate.strategy/1",
        "name": f"horovod {cycle_us / 1000:g} ms {most_bytes >> 20} MiB",
        "schedule": {"policy": "fifo", "credit_bytes": 0, "cross_iteration": False},
        "groups": [{"id": g, "algorithm": "ring"} for g in range(group + 1)],
        "variables": [{"name": name, "sync": {"kind": "all_reduce", "group": sync[name]}} for name in size],
    }


def main(arguments):
    if arguments[:1] == ["googlenet59"] and len(arguments) <= 2:
        result = googlenet59(float(arguments[1]) if len(arguments) == 2 else None)
    elif arguments[:1] == ["horovod"] and len(arguments) == 5:
        result = horovod(arguments[1], float(arguments[2]), float(arguments[3]) * 1000, int(arguments[4]) << 20)
    else:
        sys.exit(__doc__)
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
