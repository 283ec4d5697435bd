#!/bin/bash
# syncopate report on sessions of a few short real trials: a self-contained, well-formed file that says what tune said.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Plan: 10
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
tiny=$PWD/tests/cli/mlp-tiny.json
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

check help_of_report 0 "usage: syncopate report" "$syncopate" report --help
check no_dataset_says_how_to_name_one 2 'no such dataset; --dataset' "$syncopate" report some-session
[ -e syncopate.db ] && echo "not ok reporting_makes_no_dataset: syncopate.db was made" || echo "ok reporting_makes_no_dataset"
check a_report_is_about_one_session 2 'usage: syncopate report' "$syncopate" report

if ! command -v mpirun >/dev/null; then
    echo "skip a_session_as_a_page: needs mpirun"
    exit
fi
# Names that would be markup, were they not escaped.
cat >two.json <<'JSON'
{"schema":"syncopate.cluster/1","name":"<script>alert(1)</script>","nodes":[{"name":"a&b","count":2,"nic_gbit_per_s":1}]}
JSON
if ! "$syncopate" tune "$tiny" two.json --runner local --trials 10 --trial-time 10ms --dataset t.db --json >tuned 2>err; then
    echo "not ok a_session_to_report: $(head -c 300 err)"
    exit
fi
session=$(python3 -c 'import json; print(json.load(open("tuned"))["session"])')
check an_unknown_session_is_named 2 'dataset sessions' "$syncopate" report nobody --dataset t.db
check a_session_becomes_a_page 0 "report written to $session.html" "$syncopate" report "$session" --dataset t.db
check the_page_goes_to_standard_output 0 '<!DOCTYPE html>' "$syncopate" report "$session" --dataset t.db --out -
cmp -s out "$session.html" && echo "ok equal_sessions_give_equal_pages" || echo "not ok equal_sessions_give_equal_pages: they differ"
check a_folder_that_is_not_there 1 'nowhere/page.html' "$syncopate" report "$session" --dataset t.db --out nowhere/page.html

if why=$(python3 - "$session.html" 2>&1 <<'PYTHON'
import json, os, re, sys
import xml.etree.ElementTree as tree
text = open(sys.argv[1], encoding="utf-8").read()
tuned = json.load(open("tuned"))
assert text.startswith("<!DOCTYPE html>\n")
assert os.path.getsize(sys.argv[1]) < 200_000, os.path.getsize(sys.argv[1])
page = tree.fromstring(text.split("\n", 1)[1])
tags = {e.tag for e in page.iter()}
assert not tags & {"script", "img", "iframe", "object", "link", "base", "form"}, tags
for e in page.iter():
    for key, value in e.attrib.items():
        assert not key.startswith("on") and key not in ("style", "src", "href"), (e.tag, key)
assert "url(" not in text and "@import" not in text
ids = [e.get("id") for e in page.iter() if e.get("id")]
assert len(ids) == len(set(ids)), "an id is given twice"
for svg in page.iter("svg"):
    for part in svg.get("aria-labelledby").split():
        assert part in ids, part
    assert svg.find("title").text and svg.find("desc").text
words = "".join(page.itertext())
assert "<script>alert(1)</script>" in words and tuned["session"] in words
assert tuned["best"]["strategy"][:12] in words
for row in tuned["baselines"]:
    assert row["name"] in words, row
rows = [e for s in page.iter("section") if s.get("aria-labelledby") == "trials" for e in s.iter("tr")]
assert len(rows) == 1 + tuned["trials"], len(rows)
PYTHON
); then echo "ok the_page_is_well_formed_whole_and_says_what_tune_said"; else
    echo "not ok the_page_is_well_formed_whole_and_says_what_tune_said: $(echo "$why" | tail -n 1 | head -c 300)"
fi
