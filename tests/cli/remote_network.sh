#!/bin/bash
# Certificates and proxies as users of curl expect them, and what a client says of a network that is in the way: one line,
# with a status of its own. Needs OUT, openssl and python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 27
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/service.bash
root=$PWD
syncopate=$root/${OUT:-build/release}/bin/syncopate
if ! command -v openssl >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip remote_network: needs openssl and python3"
    exit 0
fi
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2
list() { timeout 60 "$syncopate" models list "$@"; }
seen() { wc -l 2>/dev/null <proxy.log || echo 0; }

# A private authority, and a certificate of it for localhost.
key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
openssl req -x509 "${key[@]}" -keyout ca.key -out ca.pem -days 2 -subj "/CN=our own" 2>/dev/null
openssl req "${key[@]}" -keyout key.pem -out request.pem -subj /CN=localhost 2>/dev/null
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 \
    -extfile <(echo subjectAltName=DNS:localhost) 2>/dev/null
openssl req -x509 "${key[@]}" -keyout other.key -out other.pem -days 2 -subj "/CN=another" 2>/dev/null

start 127.0.0.1:0 --open --tls-cert cert.pem --tls-key key.pem
port=${url##*:}
export SYNCOPATE_SERVER=https://localhost:$port
"$syncopate" models add mlp-small --cacert ca.pem >/dev/null

# ---- certificates ----
check our_authority_is_trusted_when_named 0 mlp-small list --cacert ca.pem
check also_by_the_variable_of_curl 0 mlp-small env CURL_CA_BUNDLE=ca.pem "$syncopate" models list
check also_by_that_of_openssl 0 mlp-small env SSL_CERT_FILE=ca.pem "$syncopate" models list
check what_is_said_beats_the_environment 0 mlp-small env CURL_CA_BUNDLE=other.pem "$syncopate" models list --cacert ca.pem
check another_authority_is_refused 4 certificate list --cacert other.pem
check also_without_any 4 certificate env SSL_CERT_FILE=/dev/null "$syncopate" models list
check another_name_is_refused 4 'subject name' list --cacert ca.pem --server "https://127.0.0.1:$port"
check a_missing_file_is_said_so 4 nowhere.pem list --cacert nowhere.pem
check plain_http_to_tls 4 "http://localhost:$port" list --server "http://localhost:$port"
check an_agent_does_not_wait_for_a_certificate_to_change 4 certificate timeout 60 "$syncopate" agent --cluster x \
    --runner local --cacert other.pem

# ---- proxies ----
mkfifo open-end
python3 "$root/tests/cli/remote_network.py" proxy <open-end >proxy.port &
proxy=$!
exec 5>open-end
until_true 10 test -s proxy.port
via=http://127.0.0.1:$(cat proxy.port)
tunnel="CONNECT localhost:$port HTTP/1.1"
through() { [ "$(seen)" = "$1" ] && [ "$(tail -n 1 proxy.log)" = "$tunnel" ]; }
check a_proxy_is_said 0 mlp-small list --cacert ca.pem --proxy "$via"
through 1
verdict it_gets_a_tunnel $? "$(cat proxy.log)"
check the_environment_says_it 0 mlp-small env https_proxy="$via" "$syncopate" models list --cacert ca.pem
check also_in_capitals 0 mlp-small env HTTPS_PROXY="$via" "$syncopate" models list --cacert ca.pem
check also_for_all 0 mlp-small env ALL_PROXY="$via" "$syncopate" models list --cacert ca.pem
through 4
verdict each_time_it_was_asked $? "$(cat proxy.log)"
check hosts_may_be_left_out 0 mlp-small env https_proxy="$via" NO_PROXY=example.com,localhost "$syncopate" models list \
    --cacert ca.pem
check a_proxy_of_http_is_not_that_of_https 0 mlp-small env http_proxy="$via" "$syncopate" models list --cacert ca.pem
through 4
verdict then_it_is_not_asked $? "$(cat proxy.log)"
check what_is_said_beats_that_too 4 'port 1' env https_proxy="$via" "$syncopate" models list --cacert ca.pem \
    --proxy http://127.0.0.1:1
touch locked
check a_proxy_that_wants_a_password_is_told 4 407 list --cacert ca.pem --proxy "$via"
rm locked
stop
unset SYNCOPATE_SERVER
start 127.0.0.1:0 --open
check plain_http_goes_through_it_too 0 mlp-small env http_proxy="$via" "$syncopate" models list --server "$url"
tail -n 1 proxy.log | grep -q "^GET $url/api/v1/models"
verdict with_the_whole_url $? "$(tail -n 1 proxy.log)"
touch locked
check its_page_is_no_answer_of_ours 4 'HTTP status 407' env http_proxy="$via" "$syncopate" models list --server "$url"
stop
exec 5>&-
wait $proxy

# ---- what is no service ----
echo '<html>hello</html>' >index.html
mkdir -p api/v1 && echo '<html>models</html>' >api/v1/models
python3 -u -m http.server 0 --bind 127.0.0.1 >web.out 2>/dev/null &
service=$!
until_true 10 grep -q http: web.out
url=$(sed 's/.*(\(http:[^/]*\/\/[^/]*\)\/).*/\1/' web.out)
check a_page_is_no_answer 4 'is it a syncopate service' list --server "$url"
check nor_is_it_a_dataset 4 "$url" timeout 60 "$syncopate" dataset merge "$url" --dataset x.db
[ ! -e x.db ] && [ -z "$(ls x.db* 2>/dev/null)" ]
verdict nothing_is_left_of_it $? "$(ls)"
stop
