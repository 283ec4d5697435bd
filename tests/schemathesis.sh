#!/bin/bash
# Requests that another's tool, schemathesis, makes from /openapi.json, for SECONDS_OF_IT (60) seconds: no 5xx, and no status, media type,
# header or body that is not described (make schemathesis). SYNCOPATE_TEST_SEED gives other requests. Needs OUT; prints
# what schemathesis prints, and then ok, not ok and skip lines (tests/README.md).
set -u
cd "$(dirname "$0")/.."
root=$PWD
st=$root/build/schemathesis/bin/st
[ -x "$st" ] || { echo "skip schemathesis: it is not there (.ci/schemathesis)"; exit 0; }
syncopate=$root/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
service=
trap '[ -z "$service" ] || kill "$service" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 2
umask 077
"$syncopate" serve token create st --role admin --dataset d.db >token || exit 2
"$syncopate" serve --listen 127.0.0.1:0 --dataset d.db --no-access-log >out 2>err &
service=$!
for _ in $(seq 200); do [ -s out ] && break; sleep 0.1; done
url=$(awk '{ print $NF }' out)
token="Authorization: Bearer $(cat token)"

# put WHAT: the id of what is made of standard input.
put() { curl -s -H "$token" --json @- "$url/api/v1/$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'; }
# What there is to be found is called "0", which is what the tool says first where a text is asked for.
model=$(sed 's/"name": *"mlp-small"/"name":"0"/' "$root/examples/models/mlp-small.json" | put models)
cluster=$(sed 's/"name": *"lab-4x1g"/"name":"0"/' "$root/examples/clusters/lab-4x1g.json" | put clusters)
strategy=$(echo '{"model":"0","cluster":"0","baseline":"wfbp"}' | put strategies)
session=$(echo '{"model":"0","cluster":"0","trial_us":30000}' | put sessions)
curl -s -H "$token" --json '{"client":"0","lease_s":3600}' "$url/api/v1/sessions/$session/trials:suggest" >taken
uid=$(curl -s -H "$token" "$url/api/v1/sessions/$session/trials" | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["uid"])')
cat >schemathesis.toml <<END
[parameters]
session = "$session"
number = "1"
uid = "$uid"
END
for kind in model cluster strategy; do
    [ $kind = strategy ] && kinds=strategies || kinds=${kind}s
    printf '[[operations]]\ninclude-path-regex = "^/api/v1/%s/"\nparameters = { id = "%s" }\n' "$kinds" "${!kind}" >>schemathesis.toml
done

# Left out: what a valid request may still be refused for, and which wrong ones are taken, is no part of the description; and
# a session without trials has no "best" yet.
"$st" run "$url/openapi.json" --header "$token" --checks all --exclude-checks positive_data_acceptance,negative_data_rejection,ensure_resource_availability \
    --continue-on-failure --suppress-health-check all --max-time "${SECONDS_OF_IT:-60}" --seed "${SYNCOPATE_TEST_SEED:-20261121}"
status=$?
if [ $status = 0 ] && kill -0 $service; then
    echo "ok schemathesis_finds_nothing"
else
    echo "not ok schemathesis_finds_nothing: exit status $status, $(tail -n 3 err)"
fi
