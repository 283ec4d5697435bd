#!/bin/bash
# The flows of server plans under SimGrid's max-min model: each ends when the timeline says. Each ok line also says how
# long both took. Needs OUT and, to do anything, Debian's libsimgrid-dev; prints ok, not ok and skip lines.
# Once: the timeline is the same under sanitizers.
# Computes: it waits for nothing.
# Plan: 6
set -u
cd "$(dirname "$0")/../.." || exit 1
out=${OUT:-build/release} dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cases="resnet18=lab-8x500m=ps resnet18=lab-8x500m=ps-load-balanced resnet18=lab-mixed=byteps resnet18=lab-mixed=p3
bert-base=lab-8x500m=ps-load-balanced transformer-small=lab-8x500m=bytescheduler-ps"
name_of() { echo "flows_of_$1_end_as_in_simgrid" | tr -- '=' '_'; }
if [ ! -e /usr/include/simgrid/engine.h ]; then
    for case in $cases; do echo "skip $(name_of "$case"): needs libsimgrid-dev"; done
    exit 0
fi
${CC:-cc} -std=c17 -D_GNU_SOURCE -Wall -Wextra -O2 -I. -o "$dir/simgrid" tests/simgrid/simgrid.c -Wl,--start-group \
    "$out"/lib/lib{simulator,featurize,strategy,base}.a -Wl,--end-group -lcjson -lcrypto -lopenblas -lxgboost -lm -lsimgrid ||
    exit 1
for case in $cases; do
    IFS='=' read -r model cluster baseline <<<"$case"
    said=$("$dir/simgrid" "examples/models/$model.json" "examples/clusters/$cluster.json" "$baseline" 2>&1) || said="$said: failed"
    awk -v name="$(name_of "$case")" '
        NF == 4 && $2 < 1e-9 {
            printf "ok %s: %d flows within %.0e of an iteration; %.1f ms, SimGrid %.0f ms, %.0f times as long\n",
                name, $1, $2, $3 / 1e3, $4 / 1e3, $4 / $3
            next
        }
        { print "not ok " name ": " $0 }' <<<"$said"
done
