"""The pages as people use them, in one browser and one story: a session is opened, its trials arrive, strategies are
looked at and compared, the dataset is asked. Prints TAP-like lines; pictures go to PICTURES."""
import http.client
import json
import os
import signal
import subprocess
import sys

import devtools
from service import report

ROOT, PICTURES = os.environ["ROOT"], os.environ["PICTURES"]
PROGRAM = os.path.join(ROOT, os.environ["OUT"], "bin/syncopate")
MOST_BYTES = 200 * 1024
AXE = f"{ROOT}/build/axe/node_modules/axe-core/axe.min.js"
KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37}


class Service:
    def __init__(self, *options, port=0):
        self.process = subprocess.Popen([PROGRAM, "serve", "--listen", f"127.0.0.1:{port}", *options],
                                        stdout=subprocess.PIPE, stderr=open("serve.err", "a"), text=True)
        line = self.process.stdout.readline().strip()
        self.url = line.split(" ")[-1]

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.url.split("//")[1], timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {} if body is None else {"Content-Type": "application/json"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        assert status < 300, (method, path, status, text[:300])
        return json.loads(text)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0


def example(kind, name):
    with open(f"{ROOT}/examples/{kind}/{name}.json", encoding="utf-8") as file:
        return json.load(file)


service = Service("--open", "--dataset", "browser.db")
browser = devtools.Browser()
session = {}


def press(key):
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key],
                     **(text if kind == "keyDown" else {}))


def go(path):
    weight = browser.go(service.url + path)
    assert 0 < weight < MOST_BYTES, (path, weight)


def clean():
    assert not browser.complaints, browser.complaints


def path():
    return browser.run("location.pathname + location.search")


def run_trials(n):
    """What a client does: take trials, and tell times near those predicted."""
    base = f"/api/v1/sessions/{session['id']}/trials"
    for i in range(n):
        got = service.ask("POST", base + ":suggest", {"client": "browser-test"})["trials"]
        assert got, "no trial on offer"
        for trial in got:
            us = trial["predicted_us"] * (1.05 + 0.01 * (trial["number"] % 7))
            times = [us * (1 + 0.002 * (k % 5)) for k in range(20)]
            service.ask("POST", f"{base}/{trial['number']}:complete",
                        {"client": "browser-test", "attempt": trial["attempt"], "iterations_us": times})


def an_empty_service_says_what_to_type():
    go("/")
    text = browser.run("document.body.innerText")
    assert "curl" in text and service.url + "/api/v1/models" in text, text
    assert not browser.run("document.querySelector('form')")
    clean()


def a_session_is_opened_with_the_form():
    for kind, name in (("models", "resnet18"), ("models", "mlp-small"), ("clusters", "lab-4x1g")):
        service.ask("POST", f"/api/v1/{kind}", example(kind, name))
    go("/")
    browser.run("""(() => { const f = document.querySelector('form[action="/sessions"]');
        const m = f.elements.model; m.value = [...m.options].find((o) => o.text === 'resnet18').value;
        f.elements.trials.value = 12; f.querySelector('button').click(); })()""")
    browser.wait("location.pathname.startsWith('/sessions/')")
    browser.settle()
    session["id"] = path().split("/")[-1]
    assert service.ask("GET", f"/api/v1/sessions/{session['id']}")["budget"]["trials"] == 12
    assert "resnet18 on lab-4x1g" in browser.run("document.querySelector('h1').innerText")
    assert "trials:suggest" in browser.run("document.body.innerText")
    clean()


def a_trial_arrives_while_the_page_is_open():
    browser.wait("document.getElementById('live-dot').textContent === 'live'")
    browser.run("window.loadedOnce = true")
    run_trials(1)
    browser.wait("document.querySelectorAll('#trials tbody tr').length === 1 && "
                 "document.querySelector('#trials tbody td.n:nth-child(5)').textContent")
    browser.wait("document.querySelector('#figures svg .dot')")
    browser.run("document.querySelector('#figures details').open = true")
    run_trials(4)
    browser.wait("document.querySelectorAll('#trials tbody tr').length === 5")
    assert browser.run("window.loadedOnce && document.querySelector('#figures details').open")
    browser.wait("document.getElementById('said').textContent.startsWith('5 trials ended; the best so far takes ')")
    clean()


def a_session_is_paused_and_resumed_with_buttons():
    for verb, state in (("pause", "paused"), ("resume", "running")):
        browser.run(f"document.querySelector('button[value={verb}]').click()")
        browser.wait(f"document.querySelector('.state')?.textContent === '{state}' && document.readyState === 'complete'")
        assert service.ask("GET", f"/api/v1/sessions/{session['id']}")["state"] == state
    clean()


def the_live_page_goes_on_after_the_service_has_restarted():
    global service
    go(f"/sessions/{session['id']}")
    browser.wait("document.getElementById('live-dot').textContent === 'live'")
    browser.run("window.loadedOnce = true")
    port = service.url.rsplit(":", 1)[1]
    service.stop()
    browser.wait("document.getElementById('live-dot').textContent === 'reconnecting'")
    before = browser.run("document.querySelectorAll('#trials tbody tr').length")
    service = Service("--open", "--dataset", "browser.db", port=port)
    run_trials(1)  # while the page may not be back yet: what it missed is replayed
    browser.wait("document.getElementById('live-dot').textContent === 'live'")
    browser.wait(f"document.querySelectorAll('#trials tbody tr').length === {before + 1}")
    run_trials(1)
    browser.wait(f"document.querySelectorAll('#trials tbody tr').length === {before + 2}")
    assert browser.run("window.loadedOnce")
    told, browser.complaints = browser.complaints, []  # Chromium tells of the stream that could not be had
    assert all("ERR_" in t for t in told), told


def the_list_shows_how_far_it_is():
    go("/")
    browser.run("window.loadedOnce = true")
    assert browser.run("document.querySelector('#running').dataset.say") == "1 session runs; 0 agents work."
    taken = service.ask("POST", f"/api/v1/sessions/{session['id']}/trials:suggest", {"client": "rack-7"})["trials"][0]
    browser.wait("document.querySelector('#running').innerText.includes('1 agent works: rack-7.')")
    browser.wait("document.getElementById('said').textContent === '1 session runs; 1 agent works.'")
    assert browser.run("window.loadedOnce")
    won = browser.run("document.querySelector('section[aria-labelledby=won] tbody tr').innerText")
    assert "resnet18 on lab-4x1g" in won and "times as fast" in won and "measured" in won, won
    row = browser.run("document.querySelector('#sessions tbody tr').innerText")
    assert "resnet18" in row and "7 of 12" in row and "ms" in row, row
    service.ask("POST", f"/api/v1/sessions/{session['id']}/trials/{taken['number']}:fail",
                {"client": "rack-7", "attempt": taken["attempt"], "reason": "stopped by the test"})
    clean()


def a_strategy_has_its_timeline():
    go(f"/sessions/{session['id']}")
    browser.run("document.querySelector('#trials a[href^=\"/strategies/\"]').click()")
    browser.wait("location.pathname.startsWith('/strategies/')")
    browser.settle()
    session["strategy"] = path()
    assert browser.run("document.querySelectorAll('figure svg path').length") > 5
    assert browser.run("!!document.querySelector('#measured')")
    clean()


def two_strategies_are_compared():
    browser.run("document.querySelector('form[action=\"/compare\"] button').click()")
    browser.wait("location.pathname === '/compare'")
    browser.settle()
    session["compare"] = path()
    assert browser.run("document.querySelectorAll('figure svg .heading').length") >= 2
    assert browser.run("document.querySelectorAll('h1 a').length") == 2
    assert browser.run("document.querySelectorAll('section[aria-labelledby=knobs] tbody tr').length") >= 1
    clean()


def two_sessions_are_compared():
    domain = {"model": "resnet18", "cluster": "lab-4x1g", "budget": {"trials": 5}}
    other = service.ask("POST", "/api/v1/sessions", domain)["id"]
    go(f"/compare/sessions?a={session['id']}")
    browser.run(f"""(() => {{ const f = document.querySelector('form'); f.elements.b.value = '{other}';
        f.querySelector('button').click(); }})()""")
    browser.wait("location.search.includes('b=')")
    browser.settle()
    session["pair"] = path()
    cells = browser.run("[...document.querySelectorAll('section[aria-labelledby=sides] tbody tr')].map((r) => r.innerText)")
    assert any("Trials" in c and "8 of 12" in c and "0 of 5" in c for c in cells), cells
    assert browser.run("document.querySelectorAll('figure svg.chart').length") == 1  # the other has no trial
    service.ask("POST", f"/api/v1/sessions/{other}:cancel")
    clean()


TOP = "document.querySelector('#forecast tbody tr').innerText"
SENTENCE = "document.querySelector('#forecast').dataset.say"


def sliders_redraw_what_baselines_would_take():
    browser.look(390, False)
    go("/what-if")
    browser.run("""(() => { const f = document.querySelector('form'), of = (s, text) =>
            { s.value = [...s.options].find((o) => o.text === text).value; };
        of(f.elements.model, 'mlp-small'); of(f.elements.cluster, 'lab-4x1g'); f.querySelector('button').click(); })()""")
    browser.wait("document.querySelectorAll('form[data-redraws] input[type=range]').length === 3")
    browser.run("window.loadedOnce = true")
    as_is = browser.run(TOP)
    assert "the same" in as_is and "NICs of 1 Gbit/s, 4 nodes" in browser.run(SENTENCE), as_is
    for name, step, words in (("gbit_per_s", 120, "NICs of 64 Gbit/s, 4 nodes"), ("nodes", 9, "64 Gbit/s, 9 nodes")):
        browser.run(f"""(() => {{ const r = document.querySelector('input[name={name}]').closest('.figure').lastElementChild;
            r.value = {step}; r.dispatchEvent(new Event('input')); }})()""")
        browser.wait(SENTENCE + f".includes('{words}')")
    assert "times as fast" in browser.run(TOP)
    # The page, and what its address says, are what the interface predicts.
    assert "gbit_per_s=64" in path() and "nodes=9" in path() and browser.run("window.loadedOnce")
    said = browser.run(SENTENCE)
    wanted = service.ask("POST", "/api/v1/predictions", {"model": "mlp-small", "cluster": "lab-4x1g", "baselines": ["single"],
                                                         "what_if": {"gbit_per_s": 64, "nodes": 9}})["predictions"][0]
    shown = browser.run("[...document.querySelectorAll('#forecast tbody tr')].find((r) => r.cells[0].innerText === 'single')"
                        ".cells[2].innerText")
    assert abs(float(shown.split()[0]) - wanted["iteration_us"] / 1000) <= 0.5, (shown, wanted["iteration_us"])
    browser.wait(f"document.getElementById('said').textContent === {json.dumps(said)}")
    # By the keyboard, and what is out of range.
    browser.run("document.querySelector('input[type=range]').focus()")
    press("ArrowLeft")
    browser.wait("!" + SENTENCE + ".includes('64 Gbit/s')")
    assert browser.run("document.activeElement.type + ' ' + getComputedStyle(document.activeElement).outlineStyle") == "range solid"
    assert "Gbit/s" in browser.run("document.activeElement.getAttribute('aria-valuetext')")
    assert browser.run("document.documentElement.scrollWidth") <= 390
    clean()
    browser.run("""(() => { const n = document.querySelector('input[name=nodes]'); n.value = 1000;
        n.dispatchEvent(new Event('input')); })()""")
    browser.wait("document.querySelector('#forecast .trouble')")
    told, browser.complaints = browser.complaints, []
    assert len(told) == 1 and "422" in told[0], told
    browser.look(1300, False)


def the_dataset_answers_a_filter():
    go("/dataset")
    assert browser.run("document.querySelectorAll('.rows tbody tr').length") == 8
    browser.run("""(() => { const f = document.querySelector('form[action="/dataset"]');
        f.elements.filter.value = 'number <= 2 AND model = resnet18'; f.querySelector('button').click(); })()""")
    browser.wait("location.search.includes('number')")
    browser.settle()
    assert browser.run("document.querySelectorAll('.rows tbody tr').length") == 2
    csv = browser.run("fetch([...document.links].find((a) => a.text === 'CSV').href).then((r) => r.text())")
    assert len(csv.strip().splitlines()) == 3, csv
    clean()


def a_wrong_filter_is_marked_where_it_is_wrong():
    browser.go(service.url + "/dataset?filter=modle%20%3D%20x")
    shown = browser.run("document.querySelector('.trouble pre').textContent")
    assert shown.rstrip() == "modle = x\n^", shown
    told = browser.complaints
    assert len(told) == 1 and "400" in told[0], told
    browser.complaints = []


def advice_leads_to_a_timeline():
    browser.look(390, False)
    go("/advice")
    browser.run("""(() => { const f = document.querySelector('form[action="/advice"]');
        const m = f.elements.model; m.value = [...m.options].find((o) => o.text === 'mlp-small').value;
        const c = f.elements.cluster; c.value = [...c.options].find((o) => o.text === 'lab-4x1g').value;
        f.elements.memory.value = '1KiB,1GB'; f.querySelector('button').click(); })()""")
    browser.wait("document.querySelector('section[aria-labelledby=ways] tbody a')")
    browser.settle()
    assert "With 1KiB: nothing fits." in browser.run("document.body.innerText")
    assert browser.run("document.documentElement.scrollWidth") <= 390
    browser.picture(f"{PICTURES}/advice-390.png")
    time = browser.run("document.querySelector('section[aria-labelledby=ways] tbody a').innerText")
    browser.run("document.querySelector('section[aria-labelledby=ways] tbody a').click()")
    browser.wait("document.querySelector('svg.chart')")
    browser.settle()
    assert f"predicted {time} an iteration" in browser.run("document.querySelector('header').innerText")
    browser.look(1200, False)
    clean()


def traces_are_explained():
    traces = os.path.abspath("traces")
    os.mkdir(traces)
    subprocess.run([sys.executable, f"{ROOT}/tests/cli/explain.py", "write", traces, "nccl"], check=True)
    for dark in (False, True):
        for width in (1300, 390):
            look = f"{width}-{'dark' if dark else 'light'}"
            browser.look(width, dark)
            go("/traces")
            assert browser.run("document.querySelector('nav [aria-current]').innerText") == "Traces"
            assert browser.run("document.documentElement.scrollWidth") <= width, look
            browser.picture(f"{PICTURES}/traces-form-{look}.png")
            root = browser.call("DOM.getDocument")["root"]["nodeId"]
            chooser = browser.call("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
            browser.call("DOM.setFileInputFiles", nodeId=chooser, files=[f"{traces}/rank{r}.json" for r in range(4)])
            browser.run("document.querySelector('form[action=\"/traces\"] button').click()")
            browser.wait("document.querySelector('svg.chart')")
            browser.settle()
            assert "Rank 2 is late" in browser.run("document.querySelector('header').innerText")
            assert browser.run("document.querySelectorAll('section[aria-labelledby=ranks] tbody tr').length") == 4
            assert browser.run("document.querySelectorAll('section[aria-labelledby=costs] tbody tr').length") == 3
            assert browser.run("document.documentElement.scrollWidth") <= width, look
            fills = browser.run("['.whole', '.m1', '.waiting'].map((c) => getComputedStyle(document.querySelector('svg ' + c)).fill)")
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            assert not {"none", ground} & set(fills) and len(set(fills)) == 3, fills
            browser.picture(f"{PICTURES}/traces-{look}.png")
    browser.look(1200, False)
    clean()


def a_file_that_is_no_trace_is_refused_with_words():
    go("/traces")
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    chooser = browser.call("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=chooser, files=[f"{ROOT}/examples/models/cnn-small.json"])
    browser.run("document.querySelector('form[action=\"/traces\"] button').click()")
    browser.wait("document.querySelector('.trouble')")
    assert 'cnn-small.json: ' in browser.run("document.querySelector('.trouble').innerText")
    told, browser.complaints = browser.complaints, []
    assert len(told) == 1 and "422" in told[0], told


# Texts of a chart that lie on each other.
OVERLAPS = """(() => { const boxes = [...document.querySelectorAll('svg[aria-labelledby^=chart-delays] text')].map(
    (t) => t.getBoundingClientRect());
    return boxes.filter((a, i) => boxes.some((b, k) => k < i && a.left < b.right && b.left < a.right && a.top < b.bottom &&
        b.top < a.bottom)).length; })()"""


def weather_delays_and_drops_are_pictures():
    service.ask("POST", "/api/v1/models", example("models", "mlp-small"))
    service.ask("POST", "/api/v1/clusters", example("clusters", "lab-4x1g-weather"))
    domain = {"model": "mlp-small", "cluster": "lab-4x1g-weather"}
    a, b = (service.ask("POST", "/api/v1/strategies", {**domain, "baseline": name})["id"] for name in ("async-ps", "mlfabric-a"))
    session["weather"] = f"/compare?a={a}&b={b}&model={domain['model']}&cluster={domain['cluster']}"
    for dark in (False, True):
        for width in (1200, 400):
            browser.look(width, dark)
            go(session["weather"])
            assert browser.run("document.querySelectorAll('.timeline .rate').length") > 4
            fills = browser.run("['.rate', '.whole', '.waiting', '.bar'].map((c) => "
                                "getComputedStyle(document.querySelector('svg ' + c)).fill)")
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            assert not {"none", ground} & set(fills), fills
            assert browser.run("document.querySelectorAll('svg[aria-labelledby^=chart-delays]').length") == 2
            assert browser.run(OVERLAPS) == 0, (width, browser.run(OVERLAPS))
    browser.look(1200, False)
    assert browser.run("[...document.querySelectorAll('svg.chart')].every((s) => s.getAttribute('aria-labelledby')"
                       ".split(' ').every((id) => document.getElementById(id).textContent.length > 10))")
    clean()


def all_pages():
    return {"sessions": "/", "session": f"/sessions/{session['id']}", "pair": session["pair"],
            "what-if": "/what-if?model=mlp-small&cluster=lab-4x1g&gbit_per_s=10&nodes=8", "strategy": session["strategy"],
            "compare": session["compare"], "weather": session["weather"], "dataset": "/dataset", "models": "/models",
            "clusters": "/clusters", "advice": "/advice?model=mlp-small&cluster=lab-4x1g", "traces": "/traces",
            "problem": "/problems/invalid"}


def load_checker():
    if os.path.exists(AXE):
        with open(AXE, encoding="utf-8") as file:
            browser.run(file.read() + ";0")


def serious(rules=None):
    """What axe-core finds that is serious or critical, as [rule, the first element]; of `rules`, or of all."""
    if not os.path.exists(AXE):
        return []
    options = json.dumps({"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})})
    return browser.run(f"axe.run(document, {options}).then((r) => r.violations.filter((v) => ['serious', 'critical']"
                       ".includes(v.impact)).map((v) => [v.id, v.nodes[0].html.slice(0, 200)]))")


FOUND = []  # by the checker, on all pages
LOOKS = ((1300, False, None), (1300, True, ["color-contrast"]), (390, True, ["color-contrast"]),
         (390, False, ["color-contrast", "scrollable-region-focusable", "target-size"]))  # what a look can change


def pages_fit_phones_and_both_themes():
    for name, at in all_pages().items():
        go(at)
        load_checker()
        for width, dark, rules in LOOKS:
            browser.look(width, dark)
            assert browser.run("document.documentElement.scrollWidth") <= width, (name, width)
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, ground[4:-1].split(", "))) < 200) == dark, (name, ground)
            FOUND.extend((name, width, dark, rule) for rule in serious(rules))
            browser.picture(f"{PICTURES}/{name}-{width}-{'dark' if dark else 'light'}.png")
    browser.look(1300, False)
    clean()


def a_checker_of_accessibility_finds_nothing_serious():
    if not os.path.exists(AXE):
        return "axe-core is not installed (.ci/axe)"
    assert not FOUND, FOUND
    go("/")  # a checker that sees nothing would find nothing either
    load_checker()
    browser.run("document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=/favicon.ico><input>')")
    assert {"image-alt", "label"} <= {rule for rule, _ in serious()}
    clean()


def the_keyboard_reaches_everything_and_shows_where_it_is():
    go("/")
    press("Tab")
    assert browser.run("document.activeElement.getAttribute('href')") == "#content"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    press("Enter")
    assert browser.run("document.activeElement.id") == "content"
    go("/")
    seen = []
    for _ in range(60):
        press("Tab")
        at = browser.run("(() => { const e = document.activeElement, s = getComputedStyle(e); return e === document.body ? null"
                         " : [e.tagName, e.getAttribute('href') || '', s.outlineStyle]; })()")
        if not at:
            break
        seen.append(at)
    assert all(outline not in ("none", "") for _, _, outline in seen), seen
    links = [href for _, href, _ in seen]
    assert "/" in links and f"/sessions/{session['id']}" in links and "/compare/sessions" in links, links
    assert browser.run("document.querySelectorAll('main, nav[aria-label]').length === 2 && "
                       "!document.querySelector('main nav')")
    clean()


def pages_are_whole_without_a_script():
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    go(f"/sessions/{session['id']}")
    rows = browser.run("document.querySelectorAll('#trials tbody tr').length")
    charts = browser.run("document.querySelectorAll('svg.chart').length")
    still = browser.run("document.getElementById('live-dot').hidden")
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert rows == 8 and charts >= 2 and still, (rows, charts, still)
    clean()


def a_session_that_ends_is_shown_whole_by_itself():
    go(f"/sessions/{session['id']}")
    browser.wait("document.getElementById('live-dot').textContent === 'live'")
    service.ask("POST", f"/api/v1/sessions/{session['id']}:stop")
    browser.wait("document.querySelector('.state')?.textContent === 'stopped' && !document.querySelector('[data-from]')")
    assert not browser.run("document.querySelector('button[name=verb]')")
    clean()


def with_tokens_one_signs_in():
    global service
    browser.go("about:blank")  # nothing is to be asked of a service that has gone
    service.stop()
    made = subprocess.run([PROGRAM, "serve", "token", "create", "ann", "--role", "read", "--dataset", "browser.db"],
                          capture_output=True, text=True, check=True)
    service = Service("--dataset", "browser.db")
    browser.go(service.url + "/dataset")
    assert "Sign in" in browser.run("document.querySelector('h1').innerText")
    assert "resnet18" not in browser.run("document.documentElement.outerHTML")
    browser.picture(f"{PICTURES}/sign-in-1200-light.png")
    told, browser.complaints = browser.complaints, []
    assert len(told) == 1 and "401" in told[0], told
    browser.run(f"document.querySelector('input[name=token]').value = {json.dumps(made.stdout.strip())};"
                "document.querySelector('form.fields button').click()")
    browser.wait("location.pathname === '/dataset' && document.querySelector('.rows')")
    assert browser.run("document.cookie") == ""
    browser.run("document.querySelector('.away button').click()")
    browser.wait("location.pathname === '/sign-in'")
    told, browser.complaints = browser.complaints, []
    assert len(told) == 1 and "401" in told[0], told


TESTS = [an_empty_service_says_what_to_type, a_session_is_opened_with_the_form, a_trial_arrives_while_the_page_is_open,
         a_session_is_paused_and_resumed_with_buttons,
         the_live_page_goes_on_after_the_service_has_restarted, the_list_shows_how_far_it_is, a_strategy_has_its_timeline,
         two_strategies_are_compared, two_sessions_are_compared, sliders_redraw_what_baselines_would_take,
         the_dataset_answers_a_filter, a_wrong_filter_is_marked_where_it_is_wrong,
         weather_delays_and_drops_are_pictures, advice_leads_to_a_timeline, traces_are_explained,
         a_file_that_is_no_trace_is_refused_with_words, pages_fit_phones_and_both_themes,
         a_checker_of_accessibility_finds_nothing_serious,
         the_keyboard_reaches_everything_and_shows_where_it_is,
         pages_are_whole_without_a_script, a_session_that_ends_is_shown_whole_by_itself, with_tokens_one_signs_in]

report(TESTS)
service.stop()
browser.close()
