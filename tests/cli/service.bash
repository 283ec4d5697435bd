# Sourced by the scripts of this folder that need a service, after check.bash and in a folder of their own; they set
# $syncopate.
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SYNCOPATE_SERVER SYNCOPATE_TOKEN
export SYNCOPATE_BENCH=0s # agents begin with a trial, unless a script says otherwise
service=

# start LISTEN OPTIONS...: a service; $url is where, $service its process.
start() {
    local listen=$1
    shift
    rm -f serve.out
    "$syncopate" serve --listen "$listen" --dataset d.db --no-access-log "$@" >serve.out 2>>serve.err &
    service=$!
    for _ in $(seq 200); do
        [ -s serve.out ] && break
        sleep 0.05
    done
    url=$(awk '{ print $NF }' serve.out)
}

# quiet_port: one that nobody listens on, and that the kernel gives to nobody: it is free again when a service comes back.
quiet_port() {
    local port=$((20000 + RANDOM % 10000))
    while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    echo $port
}

stop() {
    kill "$service" 2>/dev/null
    wait "$service" 2>/dev/null
    service=
}

# until_true SECONDS COMMAND...
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

session_of() { sed -n 's/^session \([^ :]*\).*/\1/p' "$1" | head -n 1; }

trials() { # SESSION: number attempt state of each
    "$syncopate" dataset query --server "$url" --session "$1" --order number --json 2>/dev/null |
        python3 -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(r["number"], r["attempt"], r["state"])'
}
