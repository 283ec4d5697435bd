#!/bin/bash
# Breaks every rule of lint.sh once, in a small project of its own, and expects exactly that finding.
# Once: it runs nothing that is built.
# Computes: it waits for nothing and times nothing.
# Plan: 38
set -u
lint=$(cd "$(dirname "$0")" && pwd)/lint.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fresh() { # a project without findings
    rm -rf "$work/p"
    mkdir -p "$work/p/low" "$work/p/high/worker" "$work/p/tests"
    cd "$work/p" || exit 2
    printf '/* Low. */\n#ifndef LOW_A_H\n#define LOW_A_H\nint a(void);\n#endif\n' >low/a.h
    printf '/* Low. */\n#include "low/a.h"\n' >low/a.c
    printf '/* High. */\n#include <stdio.h>\n\n#include "low/a.h"\n' >high/b.c
    printf '/* Tests may include anything. */\n#include <sqlite3.h>\n\n#include "low/a.h"\n' >tests/t.c
    echo "Low." >low/README.md
    echo "High." >high/README.md
    echo "Tests." >tests/README.md
}

run() {
    FOLDERS="low high absent" DEPS="low: high:low absent:low" "$lint" 2>/dev/null
}

# expect NAME TEXT: the project now has one finding, and it is TEXT.
expect() {
    local out
    if out=$(run); then
        echo "not ok $1: lint found nothing"
    elif [ "$(wc -l <<<"$out")" != 1 ] || [[ $out != *"$2"* ]]; then
        echo "not ok $1: expected one finding with '$2', got: $out" | tr '\n' ' '
        echo
    else
        echo "ok $1"
    fi
    fresh
}

# The same, where there is that folder as well.
expect_in() {
    local out folder=$1
    shift
    out=$(FOLDERS="low high $folder" DEPS="low: high:low $folder:low" "$lint" 2>/dev/null)
    if [ "$(wc -l <<<"$out")" = 1 ] && [[ $out == *"$2"* ]]; then echo "ok $1"; else echo "not ok $1: $out"; fi
    fresh
}

# expect_all NAME TEXT [NAME TEXT]...: the project now has these findings, each once, and no others.
expect_all() {
    local out rest
    out=$(run)
    rest=$out
    while [ $# -gt 0 ]; do
        if [ "$(grep -cF "$2" <<<"$out")" = 1 ]; then echo "ok $1"; else echo "not ok $1: expected one finding with '$2', got: ${out//$'\n'/ }"; fi
        rest=$(grep -vF "$2" <<<"$rest")
        shift 2
    done
    [ -z "$rest" ] || echo "not ok nothing else is found: ${rest//$'\n'/ }"
    fresh
}

fresh
if out=$(run) && [ -z "$out" ]; then echo "ok a clean project has no findings"; else echo "not ok a clean project has no findings: $out"; fi

printf '#include "high/b.h"\n' >>low/a.c
expect "a lower folder must not include a higher one" "low/a.c:3: low/ must not include high/"
printf '#include "a.h"\n' >>low/a.c
expect "includes are written from the root" 'low/a.c:3: includes "a.h"'
printf '/* Private. */\n' >low/a_internal.h
printf '#include "low/a_internal.h"\n' >>high/b.c
expect "private headers stay in their folder" "high/b.c:5: includes the private header"
printf '/* Private. */\n' >high/worker/w_internal.h
printf '#include "high/worker/w_internal.h"\n' >>high/b.c
expect "and in the inner folder that has them" "high/b.c:5: includes the private header"
printf '/* Of the worker. */\n#include "high/e.h"\n' >high/worker/w.h
printf '/* Of high. */\n#include "high/worker/w.h"\n' >high/d.c
printf '/* Of high. */\n' >high/e.h
expect "inner folders use each other in one direction" "high high/worker: these folders use each other in a circle"
printf '#include "low/c.h"\n' >>low/a.h
printf '/* Of low. */\n' >low/c.h
printf '/* Of low. */\n#include "low/a.h"\n' >low/c.c
expect "source files include each other in one direction" "low/a:1: includes itself by way of low/c"
mkdir tests/lint
printf '#include "low/c.h"\n' >>low/a.h
printf '/* Of low. */\n' >low/c.h
printf '/* Of low. */\n#include "low/a.h"\n' >low/c.c
printf '# Why.\nlow/c low/a: a reason\n' >tests/lint/circles.allowed
if out=$(run) && [ -z "$out" ]; then echo "ok a circle may stay with a reason"; else echo "not ok a circle may stay with a reason: $out"; fi
rm low/c.c
expect "a circle that is gone has no reason to stay" "tests/lint/circles.allowed:2: low/a low/c is no such circle any more"
printf '#include "low/e.h"\n' >>low/a.c
printf '/* Of low. */\n#include "low/d_internal.h"\n' >low/e.h
printf '/* Of low. */\n#include "low/a.h"\n' >low/d_internal.h
expect "also through a third, and a private one" "low/a:1: includes itself by way of low/d_internal low/e"
printf '#include "tests/t.h"\n' >>high/b.c
expect "the program must not include tests" "high/b.c:5: the program must not include tests/"
findings=()
for header in sqlite3.h libpq-fe.h mpi.h nccl.h cuda_runtime.h microhttpd.h gnutls/abstract.h curl/curl.h lapacke.h nlopt.h xgboost/c_api.h yaml.h; do
    printf '#include <%s>\n' "$header" >>high/b.c
    findings+=("$header has one home" "high/b.c:$((5 + ${#findings[@]} / 2)): <$header> belongs in")
done
expect_all "${findings[@]}"
printf '/* Uses what it does not include. */\nsize_t f(void);\n' >low/c.h
expect "a header compiles alone" "low/c.h:1: does not compile alone"
printf 'int x;\t\nint x; \nint x;\r\n/* %0120d */\n' 0 >>low/a.c
printf '/* %s later */\n' "TO""DO" "FIX""ME" "XXX" >>tests/t.c
expect_all "tabs are found" "low/a.c:3: a tab" \
    "blanks at line ends are found" "low/a.c:4: blanks at the end" \
    "carriage returns are found" "low/a.c:5: a carriage return" \
    "long lines are found" "low/a.c:6: is longer" \
    "the word TO""DO is found" "tests/t.c:5: a note" \
    "the word FIX""ME is found" "tests/t.c:6: a note" \
    "the word XXX is found" "tests/t.c:7: a note"
printf '/* %s%0100d */\n' "$(printf 'µ%.0s' {1..14})" 0 >>low/a.c
if out=$(run); then echo "ok columns are characters, not bytes"; else echo "not ok columns are characters, not bytes: $out"; fi
fresh
printf 'int x;\n' >low/d.c
expect "a file starts with a comment" "low/d.c:1: does not start"
printf 'bool good = f() == ST_OK;\n' >>low/a.c
expect "statuses are checked in one way" "low/a.c:3: compares a status with ST_OK"
mkdir -p cli
printf '/* Prints. */\nvoid f(const char *name) {\n    printf("%%s", name);\n}\n' >cli/f.c
echo "Commands." >cli/README.md
expect_in cli "what others wrote is printed safely" "cli/f.c:3: prints what a terminal may obey"
mkdir dataset
printf '/* Adds. */\nconst char *const add = "INSERT INTO trials (uid) VALUES (1)";\n' >dataset/a.c
echo "Dataset." >dataset/README.md
expect_in dataset "who adds trials is known" "dataset/a.c:2: adds trials"
mkdir -p tests/cli
printf '#!/bin/bash\necho ok a\n' >tests/cli/a.sh
chmod +x tests/cli/a.sh
expect "a script says how much it tests" "tests/cli/a.sh:1: does not say how many results it has"
rm high/README.md
expect "a folder has a README" "high/README.md:1: is missing"
