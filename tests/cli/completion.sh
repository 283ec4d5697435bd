#!/bin/bash
# What the command tables are made into: completion for bash and zsh, manual pages. Each must have every command and every
# option that --help has; what TAB offers is looked at in real shells.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Once: it is the shells' time.
# Plan: 63
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/help.bash
out=${OUT:-build/release}
syncopate=$PWD/$out/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

say() { # NAME WHAT-IS-WRONG: right when there is nothing
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $(head -c 400 <<<"$2" | tr '\n' ' ')"; fi
}

# ---- what there is ----
"$syncopate" completion bash >bash.script 2>err || cat err
"$syncopate" completion zsh >zsh.script 2>err || cat err
mkdir pages
"$syncopate" manual --out pages 2>err || cat err
check completion_of_another_shell 2 'none of bash, zsh' "$syncopate" completion fish
check page_of_no_command 2 'no page syncopate-tnue' "$syncopate" manual tnue
check pages_into_no_folder 1 'nowhere/syncopate.1' "$syncopate" manual --out nowhere
check pages_of_one_command_into_a_folder 2 'give no command' "$syncopate" manual tune --out pages
check page_on_standard_output 0 '.TH "SYNCOPATE\-DATASET\-QUERY" 1' "$syncopate" manual dataset query

# command|option|argument of everything that --help tells; commands without options of their own have --help still.
all_commands "" >commands
while IFS= read -r command; do
    "$syncopate" $command --help | sed -n 's/^  --\([a-z-]*\) *\( [^ ]*\)\?.*/\1/p' | sed "s/^/$command|/"
done <commands >wanted
[ "$(wc -l <commands)" -gt 45 ] && [ "$(wc -l <wanted)" -gt 300 ] && grep -q '^serve token create|role$' wanted
say help_is_walked "$([ $? = 0 ] || wc -l commands wanted)"

source ./bash.script
_syncopate_command ''
while IFS= read -r command; do
    commands= options= arguments=
    _syncopate_command "$command"
    for option in $options; do option=${option%%=*} && echo "$command|${option#--}"; done
done <commands >bash.options
say bash_knows_every_option "$(diff <(sort wanted) <(sort bash.options))"

while IFS= read -r command; do
    page=pages/syncopate${command:+-${command// /-}}.1
    [ -f "$page" ] || continue
    sed -n '/^\.TP/{n;s/^\\fB\\-\\-\([a-z\\-]*\)\\fR.*/\1/p}' "$page" | sed "s/[\\]//g; s/^/$command|/"
done <commands | sort >page.options
while IFS= read -r command; do # a group of commands has no option but --help, which its page leaves out
    grep -q "^$command|" page.options || grep "^$command|" wanted
done <commands >bare
say pages_have_every_option "$(diff <(sort wanted) <(sort page.options bare))"
say every_command_has_a_page "$(diff <(ls pages) <(sed 's/ /-/g; s/^./-&/; s/.*/syncopate&.1/' commands | sort))"
say only_groups_have_no_options "$(grep -v '|help$' bare)"

# ---- manual pages ----
say pages_refer_to_pages "$(cat pages/* | grep -o 'syncopate[a-z\\-]*\\fR(1)' | sed 's/[\\]fR(1)/.1/; s/[\\]//g' | sort -u |
    while read -r page; do [ -f "pages/$page" ] || echo "$page"; done)"
say pages_have_their_sections "$(grep -L '^\.SH EXIT STATUS' pages/*; grep -L '^\.SH DESCRIPTION' pages/*; grep -c '^\.SH NAME' pages/* | grep -v ':1$')"
if command -v mandoc >/dev/null; then
    say pages_are_clean_for_mandoc "$(mandoc -Tlint pages/*.1 2>&1)"
else
    echo "skip pages_are_clean_for_mandoc: needs mandoc"
fi
if command -v man >/dev/null && man --warnings -l -Tutf8 -Z pages/syncopate.1 >/dev/null 2>&1; then
    say pages_are_clean_for_groff "$(for page in pages/*; do MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null; done)"
    say page_names_are_found "$(for page in pages/*.1; do name=${page#pages/}; lexgrog "$page" | grep -q "\"${name%.1} - " || echo "$page"; done)"
else
    echo "skip pages_are_clean_for_groff: needs man-db and groff"
fi

# ---- bash ----
check bash_reads_its_script 0 '' bash -n bash.script
say bash_completes_without_a_process_of_ours "$(grep -v '^ *#' bash.script | grep -nE '\$\([^(]|`|\| *syncopate')"
cat >tab.bash <<'TAB'
# tab LINE: what TAB offers at its end. Bash hands over words, which it splits at '=' and ':' as well.
source ./bash.script
tab() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=() COMPREPLY=()
    local rest=$1 word
    while [[ $rest =~ ^[[:space:]]*([=:]|[^=:[:space:]]+) ]]; do
        COMP_WORDS+=("${BASH_REMATCH[1]}")
        rest=${rest:${#BASH_REMATCH[0]}}
    done
    [[ $1 == *[[:space:]] ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _syncopate
    echo "${COMPREPLY[*]}"
}
TAB
source ./tab.bash
offers() { # NAME LINE WANTED: all that is offered
    local got
    got=$(tab "$2" 2>&1)
    say "$1" "$([ "$got" = "$3" ] || echo "\"$got\" for \"$2\"")"
}
touch best.json 'two words.json'
offers bash_completes_commands 'syncopate tr' 'trial train-ranker'
offers bash_completes_subcommands 'syncopate dataset ex' 'export'
offers bash_completes_commands_of_commands 'syncopate serve token ' 'create list revoke'
offers bash_offers_a_group_beside_options 'syncopate serve ' 'token'
offers bash_completes_options 'syncopate tune resnet50 lab-4x1g --tri' '--trials --trial-time'
offers bash_completes_options_of_subcommands 'syncopate dataset query --de' '--descending'
offers bash_completes_models 'syncopate tune resnet5' 'resnet50-k80 resnet50'
offers bash_completes_clusters_second 'syncopate simulate resnet50 v1' 'v100-16x10g'
offers bash_completes_values 'syncopate tune resnet50 lab-4x1g --runner l' 'lab local'
offers bash_completes_values_behind_equals 'syncopate tune resnet50 lab-4x1g --runner=lo' 'local'
offers bash_completes_nothing_typed_behind_equals 'syncopate dataset export --format=' 'jsonl csv'
offers bash_completes_lists 'syncopate simulate resnet50 v100-16x10g --baseline wfbp,pace-' 'wfbp,pace-makespan'
offers bash_completes_lists_of_models 'syncopate compare vgg16,resnet1' 'vgg16,resnet101 vgg16,resnet152 vgg16,resnet18'
offers bash_completes_files 'syncopate strategy show resnet50 lab-4x1g --strategy be' 'best.json'
offers bash_completes_files_with_blanks 'syncopate trial resnet50 lab-4x1g --strategy two' 'two words.json'
offers bash_completes_a_strategy_by_either 'syncopate strategy diff resnet50 lab-4x1g wfbp be' 'best.json'
offers bash_repeats_the_last_argument 'syncopate rank resnet50 lab-4x1g wfbp single mg-' 'mg-wfbp'
offers bash_skips_values_of_options 'syncopate tune --trials 30 --runner lab ncf-' 'ncf-sparse'
offers bash_skips_the_service_before_the_command 'syncopate --server http://127.0.0.1:8642 tune gp' 'gpt2-small'
offers bash_offers_nothing_for_a_number 'syncopate tune resnet50 lab-4x1g --trials ' ''
offers bash_offers_nothing_past_the_end 'syncopate bench lab-4x1g ' ''
offers bash_completes_shells 'syncopate completion ' 'bash zsh'
offers bash_completes_everywhere_the_log_level 'syncopate lab status --log w' 'warn'
COMP_WORDBREAKS_WITHOUT_EQUALS=$(
    COMP_LINE='syncopate tune m c --runner=la' COMP_POINT=30 COMP_WORDS=(syncopate tune m c --runner=la) COMP_CWORD=4
    _syncopate
    echo "${COMPREPLY[*]}"
)
say bash_keeps_the_option_where_equals_breaks_no_word "$([ "$COMP_WORDBREAKS_WITHOUT_EQUALS" = --runner=lab ] || echo "$COMP_WORDBREAKS_WITHOUT_EQUALS")"
say bash_works_under_nounset "$(bash -uc 'source ./tab.bash; tab "syncopate tune resnet18 lab-m"; tab "syncopate x --y=z"' 2>&1 | grep -vx 'lab-mixed' | grep .)"

# An interactive bash, since only that shows what bash itself makes of the answers.
if command -v script >/dev/null; then
    echo 'source ./bash.script; syncopate() { echo "$@"; }' >rc
    { sleep 0.5; printf 'syncopate dataset exp\t--form\tcs\t >typed\n'; sleep 0.5; printf 'exit\n'; } |
        PATH=$dir:$PATH HISTFILE=/dev/null INPUTRC=/dev/null TERM=dumb SHELL=/bin/sh timeout 20 \
            script -qec 'bash --noprofile --rcfile rc' /dev/null >terminal 2>&1
    say bash_completes_as_one_types "$([ "$(cat typed 2>&1)" = 'dataset export --format csv' ] || tail -n 5 terminal)"
else
    echo "skip bash_completes_as_one_types: needs script"
fi

# ---- the values that are offered are those that are taken ----
refused() { # COMMAND...: says so when one of the values behind -- is refused as such
    local words=() value
    while [ "$1" != -- ]; do words+=("$1") && shift; done
    shift
    for value; do
        "$syncopate" "${words[@]}" "$value" 2>&1 >/dev/null | grep -E "none of|there is no|unknown" | sed "s/^/$value: /"
    done
}
values_of() { # COMMAND OPTION
    _syncopate_command "$1"
    _syncopate_value_of "--$2"
    echo "${kind//|/ }"
}
small="mlp-small lab-4x1g"
say algorithms_are_taken "$(refused simulate $small --sweep workers=2..4x2 --baseline wfbp --all-reduce -- $(values_of simulate all-reduce))"
say measures_are_taken "$(refused simulate $small --sweep workers=2..4x2 --baseline wfbp --y -- $(values_of simulate y))"
say predictors_are_taken "$(refused simulate $small --baseline wfbp --model -- $(values_of simulate model))"
say log_levels_are_taken "$(refused simulate $small --baseline wfbp --log -- $(values_of simulate log))"
printf '' | "$syncopate" dataset import - --dataset empty.db >one 2>&1
say states_are_taken "$(refused dataset query --dataset empty.db --state -- $(values_of "dataset query" state))"
say orders_are_taken "$(refused dataset query --dataset empty.db --order -- $(values_of "dataset query" order))"
say formats_are_taken "$(refused dataset export --dataset empty.db --format -- $(values_of "dataset export" format))"
say a_value_that_is_none_is_refused "$([ "$(refused dataset query --dataset empty.db --state -- complete finished | cut -d: -f1)" = finished ] || echo "it is not")"

# ---- the examples of --help ----
# Each command of an example exists, and so does each of its options.
examples_of() { # COMMAND: a command a line, continued lines joined, separate ones apart
    "$syncopate" $1 --help | sed -n '/^Examples:/,/^$/p' | sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' -e 's/&&\|[|(]/\n/g' |
        sed -n 's/^ *\(syncopate .*\)/\1/p'
}
while IFS= read -r command; do examples_of "$command"; done <commands >examples
say examples_are_read_from_help "$([ "$(wc -l <examples)" -gt 25 ] || wc -l examples)"
say examples_are_of_commands_and_options_that_exist "$(while read -ra words; do
    path='' given=''
    _syncopate_command ''
    for word in "${words[@]:1}"; do
        [[ $word == --* ]] && given=yes && [[ ! " $options " =~ " $word"[\ =] ]] && echo "$word in: ${words[*]}"
        if [[ " $commands " == *" $word "* ]]; then
            path+=${path:+ }$word
            _syncopate_command "$path"
        fi
    done
    [ "$path" ] || echo "no command in: ${words[*]}"
done <examples)"

# ---- zsh ----
if command -v zsh >/dev/null; then
    check zsh_reads_its_script 0 '' zsh -n zsh.script
    check zsh_takes_it_from_a_pipe 0 _syncopate zsh -fc \
        'autoload -Uz compinit; compinit -D -u; source <(cat zsh.script); print ${_comps[syncopate]}'
    mkdir functions
    cp zsh.script functions/_syncopate
    cat >tab.zsh <<'TAB'
# Type $1 and a TAB into a zsh on a terminal of its own, and return; end when $2 is on the terminal or in the file typed.
zmodload zsh/zpty
zpty -b shell zsh -f
zpty -w shell 'PS1=; stty -echo columns 120; fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D -u; syncopate() { print -r -- "ran: $*" >typed; }; print ready-$((1+1))'
text=
await() {
    repeat 400; do
        zpty -rt shell part && text+=$part || sleep 0.02
        [[ $text == *$1* || -s typed && "$(<typed)" == *$1* ]] && return
    done
}
await ready-2
zpty -wn shell "$1"$'\t'
[[ $3 == list ]] || zpty -wn shell $'\n'
await "$2"
print -rn -- "$text"
zpty -d shell
TAB
    zsh_inserts() { # NAME LINE WANTED: what runs after TAB and return
        rm -f typed
        zsh -f tab.zsh "$2" "ran: $3" run >terminal 2>&1 </dev/null
        say "$1" "$([ "$(cat typed 2>&1)" = "ran: $3" ] || { cat typed; tail -c 300 terminal; } 2>&1)"
    }
    zsh_lists() { # NAME LINE PART
        rm -f typed
        zsh -f tab.zsh "$2" "$3" list >terminal 2>&1 </dev/null
        say "$1" "$(grep -qF -- "$3" terminal || tail -c 300 terminal)"
    }
    zsh_inserts zsh_completes_commands 'syncopate bas' 'baselines'
    zsh_inserts zsh_completes_subcommands 'syncopate dataset exp' 'dataset export'
    zsh_inserts zsh_completes_models 'syncopate tune gp' 'tune gpt2-small'
    zsh_inserts zsh_completes_values 'syncopate dataset export --format c' 'dataset export --format csv'
    zsh_inserts zsh_completes_lists 'syncopate compare vgg16,resnet152 k80-8x10g,auto' 'compare vgg16,resnet152 k80-8x10g,autosync-'
    zsh_inserts zsh_skips_the_service_before_the_command 'syncopate --server http://h:1 serve token cr' '--server http://h:1 serve token create'
    zsh_lists zsh_describes_commands 'syncopate s' 'predict the iteration time of strategies and baselines'
    zsh_lists zsh_describes_options 'syncopate serve --connections' 'how many connections an address may have'
else
    echo "skip zsh_completes: needs zsh"
fi
