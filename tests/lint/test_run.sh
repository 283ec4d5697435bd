#!/bin/bash
# What tests/run.sh makes of scripts that pass, fail, crash, say nothing, or say less than they promise.
# Once: it runs nothing that is built.
# Computes: it waits for nothing and times nothing.
# Plan: 9
set -u
run=$(cd "$(dirname "$0")/.." && pwd)/run.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests/a"
cp "$run" "$work/tests/run.sh"

# expect NAME COUNTS PLAN BODY [TEXT]: a script of that plan and body adds up to COUNTS; the report has TEXT.
expect() {
    local out
    printf '#!/bin/bash\n%s\n%s\n' "$3" "$4" >"$work/tests/a/t.sh"
    chmod +x "$work/tests/a/t.sh"
    out=$(TEST_TIMES= TMPDIR=$work OUT=$work/release "$work/tests/run.sh" 2>&1)
    if [ "$(tail -n 1 <<<"$out")" = "$2" ] && [[ $out == *"${5-}"* ]]; then
        echo "ok $1"
    else
        echo "not ok $1: $(tr '\n' ' ' <<<"$out")"
    fi
}

expect "what passes is counted" "2 passed, 0 failed, 0 skipped" "# Plan: 2" "echo ok a; echo ok b"
expect "what fails is counted" "1 passed, 1 failed, 0 skipped" "# Plan: 2" "echo ok a; echo not ok b: why" "not ok b: why"
expect "a check that vanishes is a failure" "1 passed, 1 failed, 0 skipped" "# Plan: 2" "echo ok a" "1 planned, and no result"
expect "so is one that nobody planned" "2 passed, 1 failed, 0 skipped" "# Plan: 1" "echo ok a; echo ok b" "1 more results than planned"
expect "what is skipped stands for the rest" "1 passed, 0 failed, 3 skipped" "# Plan: 4" "echo ok a; echo skip b: no tool" \
    "not tested: a/t.sh: skip b: no tool"
expect "a script that says nothing fails" "0 passed, 1 failed, 0 skipped" "# Plan: 1" ":"
expect "a bad exit fails" "1 passed, 1 failed, 0 skipped" "# Plan: 1" "echo ok a; exit 3" "(exit status 3)"
expect "a crash fails" "1 passed, 1 failed, 0 skipped" "# Plan: 1" 'echo ok a; kill -SEGV $$' "(segmentation fault)"
expect "without a plan results are only counted" "1 passed, 0 failed, 0 skipped" "" "echo ok a"
