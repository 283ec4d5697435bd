#!/bin/bash
# The Debian packages: built from a clean copy, then installed, used, upgraded, removed and purged in a Debian of their own.
#
#   make test-deb
#
# It is no part of `make test`: it compiles the program once more, and loads some 300 MB of Debian (SOURCES: where from, the
# machine's own by default). It needs root, mmdebstrap and Debian 12, and systemd-nspawn for the service, which runs under a
# systemd of that Debian. It prints ok, not ok and skip lines (tests/README.md).
# Plan: 28
set -u
cd "$(dirname "$0")/.."
here=$PWD
deb=$here/${BUILD:-build}/deb
SOURCES=${SOURCES:-$(ls /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)}
[ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null || { echo "skip packages: needs root and mmdebstrap"; exit 0; }
# Mounts and processes of their own: whatever happens, none stays.
[ "${1-}" = --apart ] || exec unshare --mount --pid --fork --kill-child --mount-proc "$here/tests/deb.sh" --apart
work=$(mktemp -d)
root=$work/root
trap 'kill ${nspawn-} 2>/dev/null; wait; umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
say() { # NAME WHAT-IS-WRONG: right when there is nothing
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $(head -c 600 <<<"$2" | tr '\n' ' ')"; fi
}
verdict() { # NAME STATUS: 0 is good
    if [ "$2" = 0 ]; then echo "ok $1"; else echo "not ok $1: $(tail -n 5 "$work/log" | tr '\n' ' ')"; fi
}
within() {
    env -u TMPDIR LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}
as_service() {
    within runuser -u syncopate -- sh -c 'cd /var/lib/syncopate && exec "$@"' sh "$@"
}
apt() {
    within apt-get -o Dpkg::Options::=--force-confold -y --no-install-recommends "$@" >"$work/log" 2>&1 </dev/null
}

# ---- the packages ----
before=$(git status --porcelain 2>/dev/null)
make deb >"$work/log" 2>&1
verdict they_are_built_and_lintian_finds_no_error $?
grep -E '^[EWI]: ' "$work/log"
say nothing_is_written_outside_the_build_folder "$(diff <(echo "$before") <(echo "$(git status --porcelain 2>/dev/null)"))"
version=$(sed -n 's/^#define SYNCOPATE_VERSION *"\(.*\)"$/\1/p' base/version.h)
architecture=$(dpkg --print-architecture)
program=syncopate_${version}_$architecture.deb
others=(syncopate-worker_"${version}_$architecture.deb" {syncopate-service,python3-syncopate}_"${version}_all.deb")
say they_have_the_programs_version "$(for package in "$program" "${others[@]}"; do
    [ "$(dpkg-deb -f "$deb/$package" Version)" = "$version" ] || echo "$package"; done)"
say libraries_are_depended_on "$(depends=$(dpkg-deb -f "$deb/$program" Depends)
    for library in libc6 libcjson1 libcurl4 libmicrohttpd12 libpq5 libsqlite3-0 libssl3 libyaml-0-2; do
        grep -qE "(^|, )$library( |,|$)" <<<"$depends" || echo "$library"; done)"

# ---- installed ----
mmdebstrap --quiet --variant=apt "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" "$SOURCES" >"$work/log" 2>&1 ||
    { verdict a_debian_of_their_own 1; exit 1; }
mount -t proc proc "$root/proc"
mkdir "$root/packages" "$root/newer"
cp "$deb"/*.deb "$root/packages/"
apt update
apt install "/packages/$program"
verdict the_program_alone_is_installed $?
say which_brings_no_service_and_no_mpi "$(within dpkg -l | grep -oE '^ii +(syncopate-service|libopenmpi3|systemd) ')"
apt install "${others[@]/#//packages/}"
verdict the_others_are_installed $?
[ -e "$root/usr/bin/syncopate" ] && [ -e "$root/lib/systemd/system/syncopate.service" ] || exit 1
listed() { # PACKAGE: its files
    within dpkg -L "$1" | while read -r file; do [ -d "$root$file" ] || echo "$file"; done | sort
}
document() { # PACKAGE
    printf '/usr/share/doc/%s\n' "$1/changelog.gz" "$1/copyright"
}
say the_program_has_its_files "$(diff <({
    document syncopate
    printf '%s\n' /usr/bin/syncopate /usr/share/bash-completion/completions/syncopate /usr/share/zsh/vendor-completions/_syncopate
    (cd examples && ls models/*.json clusters/*.json launchers.json) | sed 's|^|/usr/share/syncopate/|'
    (cd docs && ls ./*.md alerts.yml) | sed 's|^\(\./\)*|/usr/share/doc/syncopate/|'
    mkdir "$root/tmp/pages"
    within syncopate manual --out /tmp/pages >/dev/null
    ls "$root/tmp/pages" | sed 's|.*|/usr/share/man/man1/&.gz|'
    rm -r "$root/tmp/pages"
} | sort) <(listed syncopate | sed -E '/share\/doc/s/\.(md|yml)\.gz$/.\1/'))"
say the_worker_has_its_files "$(diff <({
    document syncopate-worker
    printf '%s\n' /usr/bin/syncopate-worker-mpi /usr/lib/syncopate/libnccl-tuner-syncopate.so /usr/share/man/man1/syncopate-worker-mpi.1.gz
} | sort) <(listed syncopate-worker))"
say the_service_has_its_files "$(diff <({
    document syncopate-service
    printf '%s\n' /etc/syncopate/serve.env /lib/systemd/system/syncopate.service /usr/lib/sysusers.d/syncopate-service.conf \
        /usr/share/doc/syncopate-service/README.Debian
} | sort) <(listed syncopate-service))"
say the_python_modules_have_their_files "$(diff <({
    document python3-syncopate
    (cd interop/pytorch && ls syncopate_torch/*.py && cd ../client && ls ./*.py | cut -c3-) | sed 's|^|/usr/lib/python3/dist-packages/|'
} | sort) <(listed python3-syncopate))"

# ---- used ----
within syncopate simulate resnet50 v100-16x10g --baseline wfbp --json >"$work/log" 2>&1 && grep -q resnet50 "$work/log"
verdict the_program_predicts $?
within sh -c 'cd /tmp && syncopate trial mlp-small lab-4x1g --baseline wfbp --runner local --iterations 3' >"$work/log" 2>&1
verdict the_program_finds_the_worker $?
within python3 -c 'import importlib.util as u; assert u.find_spec("syncopate_torch").origin.startswith("/usr/lib/python3")' >"$work/log" 2>&1
verdict python_finds_the_module $?
within systemd-analyze verify /lib/systemd/system/syncopate.service >"$work/log" 2>&1
say systemd_understands_the_unit "$(grep -F syncopate "$work/log" | grep -v "Command 'man ")"

# ---- the service under systemd, by the commands of README.Debian ----
command -v systemd-nspawn >/dev/null || { echo "skip the_service: needs systemd-nspawn (systemd-container)"; exit 0; }
apt purge syncopate-service
umount "$root/proc"
systemd-nspawn --quiet --boot --directory="$root" --register=no --keep-unit --private-network --console=pipe >"$work/boot" 2>&1 </dev/null &
nspawn=$!
within() { # what follows runs in that machine
    nsenter --target "$leader" --all env -u TMPDIR LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
for _ in $(seq 300); do
    leader=$(pgrep --parent $nspawn)
    [ -z "$leader" ] || ! within systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded' || break
    sleep 0.2
done
apt install "/packages/${others[1]}"
verdict it_is_installed_on_a_running_system $?
say it_waits_for_a_token "$(within systemctl is-enabled syncopate | grep -v disabled; within systemctl is-active syncopate | grep -v inactive)"
edited=SYNCOPATE_LISTEN=127.0.0.1:9876
echo "$edited" >>"$root/etc/syncopate/serve.env"
token=$(as_service syncopate serve token create you --role admin --dataset team.db 2>"$work/log")
ask() { # PATH [curl's options]
    nsenter --target "$leader" --net curl -sf --retry 50 --retry-connrefused --retry-delay 0 --retry-max-time 20 \
        -H "Authorization: Bearer $token" "${@:2}" "http://127.0.0.1:9876$1"
}
main() {
    within systemctl show --property MainPID --value syncopate
}
within systemctl enable --now syncopate >>"$work/log" 2>&1 && ask /readyz >>"$work/log" &&
    ask /api/v1/models --json "@$here/examples/models/mlp-small.json" >>"$work/log"
verdict it_answers $?
first=$(main)
status=$(within grep -E "^(Uid|CapEff|NoNewPrivs|Seccomp):" "/proc/$first/status" | tr -s '\t\n' '  ')
user=$(within id -u syncopate)
say it_runs_as_its_user_without_rights "$(grep -qE "^Uid: ($user ){4}CapEff: 0+ NoNewPrivs: 1 Seccomp: 2 $" <<<"$status" || echo "user $user: $status")"
say nobody_else_reads_its_data "$(find "$root/var/lib/syncopate" \( -perm /077 -o ! -uid "$user" \) 2>&1
    [ -e "$root/var/lib/syncopate/team.db" ] || echo it has no dataset)"

# ---- upgraded while it runs: the same programs under a newer number, with newer settings ----
newer=$version+1
for package in "$program" "${others[@]}"; do
    rm -rf "$work/package"
    dpkg-deb -R "$deb/$package" "$work/package"
    sed -i -E "/^(Version|Depends):/s/\b${version//./\\.}(\.0~)?\b/$newer\1/g" "$work/package/DEBIAN/control"
    [ ! -e "$work/package/etc" ] || echo '# newer' >>"$work/package/etc/syncopate/serve.env"
    dpkg-deb --root-owner-group -b "$work/package" "$root/newer/$package" >/dev/null
done
apt install "/newer/$program" "${others[@]/#//newer/}"
verdict an_upgrade_succeeds $?
say and_is_one "$(within dpkg-query -W 'syncopate*' python3-syncopate | grep -v "$newer\$")"
second=$(main)
say it_restarts_the_service "$([ "$second" -gt 0 ] && [ "$first" != "$second" ] || echo "$first, then $second")"
say its_certificate_can_be_read_again "$(within systemctl reload syncopate 2>&1; [ "$(main)" = "$second" ] || echo it was restarted)"
say it_keeps_the_dataset_and_the_token "$(ask '/api/v1/models?page_size=5' | grep -q '"name":"mlp-small"' ||
    within journalctl -u syncopate -n 3)"
say it_keeps_the_administrators_settings "$(grep -qxF "$edited" "$root/etc/syncopate/serve.env" && [ -e "$root/etc/syncopate/serve.env.dpkg-dist" ] ||
    ls "$root/etc/syncopate")"

# ---- removed ----
apt remove syncopate-service
say removing_stops_it_and_keeps_its_data "$(within test ! -e "/proc/$second" || echo it runs
    ls "$root/var/lib/syncopate/team.db" "$root/etc/syncopate/serve.env" 2>&1 >/dev/null)"
apt purge syncopate-service syncopate syncopate-worker python3-syncopate
say purging_leaves_nothing_but_the_user "$(tail -n 3 "$work/log" | grep -E '^E:|rror'
    within id syncopate 2>&1 >/dev/null
    find "$root" -xdev -name '*syncopate*' ! -path "$root/packages/*" ! -path "$root/newer/*" ! -path "$root/var/cache/apt/*")"
