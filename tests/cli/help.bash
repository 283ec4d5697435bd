# Sourced by scripts that read what --help says; $syncopate is the program.

# The commands that stand in the help of COMMAND ("": the program's own).
subcommands_of() { "$syncopate" $1 --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }

# COMMAND and all commands under it, a line each.
all_commands() {
    local command
    echo "$1"
    for command in $(subcommands_of "$1"); do all_commands "$1${1:+ }$command"; done
}
