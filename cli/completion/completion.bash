
# How a value's kind is completed: "a|b|c" are all the values, "model" and the like are names that come with syncopate,
# "file" a path; a comma behind the kind says that values stand in a list.
_syncopate_complete() { # KIND VALUE LEAD: LEAD goes before every completion
    local kind=$1 value=$2 lead=$3 names word
    if [[ $kind == *, && $value == *,* ]]; then
        lead+=${value%,*},
        value=${value##*,}
    fi
    case $kind in
    *'|'*) names=${kind//'|'/ } ;;
    *) _syncopate_names "${kind%,}" ;;
    esac
    for word in $names; do
        [[ $word == "$value"* ]] && COMPREPLY+=("$lead$word")
    done
    case $kind in
    file | model* | cluster* | strategy*)
        compopt -o filenames -o default 2>/dev/null
        while IFS= read -r word; do
            COMPREPLY+=("$lead$word")
        done < <(compgen -f -- "$value")
        ;;
    program) while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$value" | sort -u) ;;
    esac
}

# `kind` becomes that of the option's value; fails when there is no such option, or when it takes none.
_syncopate_value_of() {
    local word
    for word in $options; do
        if [[ $word == "$1="* ]]; then
            kind=${word#*=}
            return 0
        fi
    done
    return 1
}

# Words are split here, since bash splits them at '=' and ':' as well. `lead` is what bash takes for no part of the word
# to be completed.
_syncopate() {
    local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} last=${COMP_WORDS[COMP_CWORD]} path='' n=0 i value=
    local commands options arguments kind word lead=''
    local -a words kinds
    COMPREPLY=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    _syncopate_command ''
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        word=${words[i]}
        if [[ $word == -* ]]; then
            if _syncopate_value_of "$word"; then
                ((++i == ${#words[@]} - 1)) && value=yes
            fi
        elif ((n == 0)) && [[ " $commands " == *" $word "* ]]; then
            path+=${path:+ }$word
            _syncopate_command "$path"
        else
            n=$((n + 1))
        fi
    done
    word=${words[${#words[@]} - 1]}
    if [[ $value ]]; then
        _syncopate_complete "$kind" "$word" ''
    elif [[ $word == --*=* ]]; then
        [[ $last == --*=* ]] && lead=${word%%=*}=
        _syncopate_value_of "${word%%=*}" && _syncopate_complete "$kind" "${word#*=}" "$lead"
    elif [[ $word == -* ]]; then
        for line in $options; do
            [[ $line == "$word"* ]] && COMPREPLY+=("${line%%=*}")
        done
    else
        read -ra kinds <<<"$arguments"
        ((n == 0)) && _syncopate_complete "${commands// /|}|" "$word" ''
        if ((n >= ${#kinds[@]} && ${#kinds[@]} > 0)) && [[ ${kinds[${#kinds[@]} - 1]} == *... ]]; then
            n=$((${#kinds[@]} - 1))
        fi
        ((n < ${#kinds[@]})) && kind=${kinds[n]%...} && _syncopate_complete "${kind#-}" "$word" ''
    fi
    return 0
}

complete -F _syncopate syncopate
