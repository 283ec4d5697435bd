
# The names that come with syncopate, and files where those may stand instead; a comma behind the kind says that values
# stand in a list. The arguments before the kind are for compadd.
_syncopate_value() {
    local kind=${@[-1]} names found=1
    [[ $kind == *, ]] && compset -P '*,'
    _syncopate_names ${kind%,}
    if [[ -n $names ]]; then
        compadd "${(@)@[1,-2]}" -- ${=names} && found=0
    fi
    case $kind in
    file|model*|cluster*|strategy*) _files && found=0 ;;
    program) _command_names -e && found=0 ;;
    esac
    return $found
}

_syncopate() {
    local curcontext=$curcontext state line name=
    typeset -A opt_args
    local -a commands specs
    while true; do
        _syncopate_command "$name"
        if (( ! $#commands )); then
            _arguments -S : $specs
            return
        fi
        state=
        _arguments -C -S : $specs '1: :->command' '*:: :->rest'
        case $state in
        command) _describe -t commands command commands; return ;;
        rest) name+=${name:+ }$words[1] ;;
        *) return ;;
        esac
    done
}

if [[ $funcstack[1] == _syncopate ]]; then
    _syncopate "$@"
else
    compdef _syncopate syncopate
fi
