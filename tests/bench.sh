#!/bin/bash
# Build and run every tests/bench/bench_*.c against the libraries of $OUT.
set -eu
: "${OUT:=build/release}" "${CC:=cc}"
mkdir -p "$OUT/bench"
for source in tests/bench/bench_*.c; do
    program="$OUT/bench/$(basename "$source" .c)"
    "$CC" -std=c17 -D_GNU_SOURCE -Wall -Wextra -O2 -I. -o "$program" "$source" tests/bench/bench.c \
        tests/support/strategy/slots.c tests/support/strategy/dag.c \
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
        -Wl,--start-group "$OUT"/lib/*.a -Wl,--end-group -lcjson -lcrypto -lsqlite3 -llapacke -lnlopt -lopenblas \
        -lxgboost -lm
    "$program" examples/models/bert-large.json
done
