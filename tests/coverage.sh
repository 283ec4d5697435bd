#!/bin/bash
# Line coverage of the last test run, by folder and file: tests/coverage.sh build/coverage
#
# Reads what gcov says of our own sources; a source that no test ran counts with none of its lines covered.
set -eu
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
find "$build/obj" -name '*.gcno' -not -path '*/obj/tests/*' -print0 |
    xargs -0 -r gcov -n 2>/dev/null |
    awk '
        /^File / { file = substr($2, 2, length($2) - 2); next }
        /^Lines executed:/ {
            split($0, a, /[:% ]+/)
            if (file ~ /^[a-z-]+\/.*\.c$/ && a[5] > most[file]) { most[file] = a[5]; share[file] = a[3] }
            file = ""
        }
        END { for (f in most) printf "%s %d %.0f\n", f, most[f], most[f] * share[f] / 100 }' | sort >"$work/files"
awk '{ split($1, a, "/"); n[a[1]] += $2; c[a[1]] += $3; N += $2; C += $3
       printf "  %-44s %6d lines %6.1f%%\n", $1, $2, $2 ? 100 * $3 / $2 : 0 }
     END { print ""
           for (f in n) printf "  %-44s %6d lines %6.1f%%\n", f "/", n[f], 100 * c[f] / n[f] | "sort"
           close("sort")
           if (!N) { print "coverage: nothing found; run make coverage"; exit 1 }
           printf "  %-44s %6d lines %6.1f%%\n", "all", N, 100 * C / N }' "$work/files"
