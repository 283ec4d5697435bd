#!/bin/bash
# `make install` and `make uninstall`: which files, where, whether what is installed works there, and that nothing stays.
# The packages themselves are tested by tests/deb.sh.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Once: it looks at files.
# Plan: 19
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
out=${OUT:-build/release}
here=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
say() { # NAME WHAT-IS-WRONG: right when there is nothing
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $(head -c 400 <<<"$2" | tr '\n' ' ')"; fi
}
make_quietly() { # TARGET [VARIABLE=VALUE...]: with what is built already, by the mode that OUT names
    MAKEFLAGS='' make --no-print-directory -C "$here" BUILD="${out%/*}" MODE="${out##*/}" "$@" >"$dir/log" 2>&1 || { tail -n 5 "$dir/log" && false; }
}

# ---- what is installed ----
umask 077 # whoever installs may have any; what is installed is for all
say it_installs_under_destdir "$(make_quietly install DESTDIR="$dir/root" PREFIX=/opt/sync)"
cd "$dir/root/opt/sync" || exit 1
{
    echo bin/syncopate
    [ ! -e "$here/$out/bin/syncopate-worker-mpi" ] || echo bin/syncopate-worker-mpi
    [ ! -e "$here/$out/bin/syncopate-worker-nccl" ] || echo bin/syncopate-worker-nccl
    (cd "$here/$out" && ls lib/*.so 2>/dev/null)
    (cd "$here/examples" && ls models/*.json clusters/*.json launchers.json) | sed 's|^|share/syncopate/|'
    (cd "$here/interop/pytorch" && ls syncopate_torch/*.py) | sed 's|^|share/syncopate/python/|'
    echo share/syncopate/python/syncopate_client.py
    bin/syncopate --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/share\/man\/man1\/syncopate-\1.1/p'
    echo share/man/man1/syncopate.1
    echo share/bash-completion/completions/syncopate
    echo share/zsh/site-functions/_syncopate
    (cd "$here/docs" && ls *.md alerts.yml 2>/dev/null) | sed 's|^|share/doc/syncopate/|'
    (cd "$here/docs" && ls *.service 2>/dev/null) | sed 's|^|lib/systemd/system/|'
} | sort >"$dir/wanted"
groups=$(bin/syncopate completion bash | sed -n "s/^    '\([a-z-]*\) .*/\1/p" | sort -u | paste -sd '|')
find . -type f | sed 's|^\./||' | sort >"$dir/got"
say it_installs_exactly_its_files "$(diff "$dir/wanted" <(grep -vE "man1/syncopate-($groups)-" "$dir/got"))"
say subcommands_have_pages_too "$([ "$(grep -cE "man1/syncopate-($groups)-" "$dir/got")" -gt 20 ] || echo "pages of: $groups")"
say all_is_readable_and_only_programs_are_executable "$(find . -type f ! -path './bin/*' ! -perm 644; find bin -type f ! -perm 755; find . -type d ! -perm 755)"
say no_path_of_the_build_is_in_it "$(grep -rlF "$here/" share lib/systemd 2>/dev/null; grep -rlF "$dir" . )"
say the_unit_starts_the_installed_program "$(for unit in lib/systemd/system/*.service; do
    [ ! -e "$unit" ] || grep -qE '^ExecStart=/opt/sync/bin/syncopate serve' "$unit" || grep ExecStart "$unit"; done)"
say pages_are_those_of_the_program "$(bin/syncopate manual tune | diff - share/man/man1/syncopate-tune.1)"
say completion_is_that_of_the_program "$(for shell in bash zsh; do bin/syncopate completion $shell; done | diff - <(cat share/bash-completion/completions/syncopate share/zsh/site-functions/_syncopate))"
mapfile -t patterns < <(sed 's/ .*//' "$here"/debian/*.install)
say one_debian_package_takes_each_of_them "$(grep -vxF bin/syncopate-worker-nccl "$dir/got" | while read -r file; do
    taken=0
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2053
        [[ usr/$file != $pattern && usr/$file != $pattern/* ]] || taken=$((taken + 1))
    done
    [ $taken = 1 ] || echo "$file: $taken packages"; done)"

# ---- what is installed works, from anywhere ----
cd "$dir"
mv root/opt/sync moved
check it_finds_its_examples 0 resnet50 moved/bin/syncopate simulate resnet50 v100-16x10g --baseline wfbp --json
check it_finds_all_of_them 0 vgg16 moved/bin/syncopate compare all lab-4x1g
ln -s "$dir/moved/bin/syncopate" linked
check it_finds_them_through_a_link 0 resnet50 ./linked simulate resnet50 v100-16x10g --baseline wfbp --json
if command -v mpirun >/dev/null; then
    check it_finds_its_worker 0 iteration moved/bin/syncopate trial mlp-small lab-4x1g --baseline wfbp --runner local --iterations 3
else
    echo "skip it_finds_its_worker: needs mpirun"
fi
if [ -r /usr/share/bash-completion/bash_completion ]; then
    check bash_completion_loads_it 0 'complete -F _syncopate syncopate' env XDG_DATA_DIRS="$dir/moved/share" bash -c \
        'PATH=$PWD/moved/bin:$PATH; source /usr/share/bash-completion/bash_completion; _completion_loader syncopate; complete -p syncopate'
else
    echo "skip bash_completion_loads_it: needs bash-completion"
fi
if command -v man >/dev/null && man -w man >/dev/null 2>&1; then
    check man_finds_its_pages 0 moved/share/man/man1/syncopate-dataset-query.1 man -M "$dir/moved/share/man" -w syncopate-dataset-query
else
    echo "skip man_finds_its_pages: needs man-db"
fi

# ---- and is taken away ----
mv moved root/opt/sync
touch root/opt/sync/bin/syncopate-of-another root/opt/sync/share/man/man1/sync.1
say it_uninstalls "$(make_quietly uninstall DESTDIR="$dir/root" PREFIX=/opt/sync)"
say nothing_of_it_stays "$(find root -type f ! -name syncopate-of-another ! -name sync.1; find root -type d -name syncopate)"
say what_others_installed_stays "$(ls root/opt/sync/bin/syncopate-of-another root/opt/sync/share/man/man1/sync.1 2>&1 >/dev/null)"
say uninstalling_twice_is_no_error "$(make_quietly uninstall DESTDIR="$dir/root" PREFIX=/opt/sync)"
