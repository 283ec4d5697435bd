"""A client of syncopate's HTTP service. Needs Python 3.9 or newer, and nothing else.

    service = Client("http://127.0.0.1:8642")
    session = service.open_session("resnet50", "lab-4x1g", trials=30)
    while trial := session.ask():
        trial.tell(run(trial.strategy, trial.warmup, trial.iterations))  # run() is yours: microseconds an iteration
    print(session.best())

Every call is one request, or a few in a row, and returns when it is answered: there are no threads. What the service
answers comes as dicts and lists, member by member as /openapi.json describes it. What it refuses is a ServiceError.

A request that is not answered is sent again, for at most `patience_s` seconds. Each request that changes something has
an idempotency key, so that the service does it once however often it arrives. docs/python-client.md has examples.
Units: microseconds (_us), seconds (_s), bytes (_bytes)."""
from __future__ import annotations

import dataclasses
import http.client
import json
import os
import random
import socket
import ssl
import time
import urllib.parse
import urllib.request
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

Json = dict[str, Any]
Described = Union[str, Mapping[str, Any]]  # a name, an id or its beginning, or the description itself
Shared = Union[str, Sequence[str]]         # "all", "team" or a list of teams

PAGE_ITEMS = 1000      # the most that the service takes of a list at once, both ways
BATCH_BYTES = 8 << 20  # of a body; the service takes 16 MiB
POLL_S = 1.0           # between two looks at a session that others work on


class ServiceError(Exception):
    """What the service refused. `status` and `code` are those of its problem document; `detail` is its own line;
    `errors` say which parts of the body are wrong. Without an answer `status` is 0 and `code` is "unreachable".
    `again_s`: the same may be sent again after so many seconds (None: it would be refused again)."""

    def __init__(self, detail: str, status: int = 0, code: str = "unreachable", *, errors: Sequence[Json] = (),
                 request_id: str = "", again_s: Optional[float] = None) -> None:
        super().__init__(detail)
        self.detail, self.status, self.code = detail, status, code
        self.errors, self.request_id, self.again_s = list(errors), request_id, again_s

    def __str__(self) -> str:
        return f"{self.detail} ({self.status} {self.code})" if self.status else self.detail


class Rows(list[Json]):
    """A list of dicts. When it is empty, `note` says why, and what to do."""
    note: str = ""


class Added(NamedTuple):
    """What became of records: `duplicates` were there already; `uids` are in the order of the records."""
    added: int
    duplicates: int
    uids: list[str]


class Client:
    """A service. Where `url` or `token` is not given, it is SYNCOPATE_SERVER or SYNCOPATE_TOKEN of the environment.
    `name` is who takes trials, at most 64 characters; two jobs of a session need two names. `ca_file` has PEM
    certificates to trust in place of the system's. A proxy comes from the environment."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, name: Optional[str] = None,
                 patience_s: float = 30, timeout_s: float = 130, ca_file: Optional[str] = None) -> None:
        self.url = (url if url else os.environ.get("SYNCOPATE_SERVER", "")).rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("which service? give its URL, http://... or https://..., or set SYNCOPATE_SERVER")
        self.name = name or f"{socket.gethostname()[:40]}-{os.getpid()}"
        self.patience_s, self.timeout_s = patience_s, timeout_s
        self._token = os.environ.get("SYNCOPATE_TOKEN", "") if token is None else token
        if self._token and _goes_unencrypted(self.url):
            warnings.warn(f"the token goes to {self.url} unencrypted; use https", stacklevel=2)
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)), _AnswersOnly)

    # ---- models, clusters, strategies ----

    def put_model(self, model: Mapping[str, Any]) -> Json:
        """Put a model; {"id", "name", ...}. The same one again is no error and makes nothing new."""
        return self._post("/api/v1/models", model)

    def put_cluster(self, cluster: Mapping[str, Any]) -> Json:
        return self._post("/api/v1/clusters", cluster)

    def put_strategy(self, model: Described, cluster: Described, *, strategy: Optional[Described] = None,
                     baseline: Optional[str] = None) -> Json:
        """Put a strategy, or what a baseline is for this model on this cluster."""
        return self._post("/api/v1/strategies", _without_none(model=model, cluster=cluster, strategy=strategy,
                                                              baseline=baseline))

    def predict(self, model: Described, cluster: Described, *, strategies: Sequence[Described] = (),
                baselines: Sequence[str] = (), memory: Optional[bool] = None, memory_bytes: Optional[int] = None,
                **options: Any) -> Json:
        """Predictions of up to 10,000 strategies, the fastest first. `memory`: tell the memory of each; `memory_bytes`:
        what a device may hold, and what needs more comes last. `options` are other members of a PredictionRequest:
        timeline, what_if."""
        lists = {name: list(given) for name, given in (("strategies", strategies), ("baselines", baselines)) if given}
        body: Json = {"model": model, "cluster": cluster, **lists, **options,
                      **_without_none(memory=memory, memory_bytes=memory_bytes)}
        return self._post("/api/v1/predictions", body, changes=False)

    def advise(self, model: Described, cluster: Described, *, memory_bytes: Sequence[int] = ()) -> Json:
        """Which way of training, at each of up to 8 memories of a device: data parallel, servers, ZeRO, HSDP or FSDP.
        Without any: at what the cluster says of its devices, and at any."""
        body = _without_none(model=model, cluster=cluster, memory_bytes=list(memory_bytes) or None)
        return self._post("/api/v1/advice", body, changes=False)

    def predicted_us(self, model: Described, cluster: Described, *, strategy: Optional[Described] = None,
                     baseline: Optional[str] = None) -> float:
        """The predicted time of an iteration by one strategy, or by a baseline."""
        answer = self.predict(model, cluster, strategies=[] if strategy is None else [strategy],
                              baselines=[] if baseline is None else [baseline])
        for failure in answer["failures"]:
            raise ServiceError(failure["detail"], 422, failure["code"], errors=[failure])
        return float(answer["predictions"][0]["iteration_us"])

    # ---- everybody's measurements ----

    def query(self, filter: str = "", *, order: str = "recorded", iterations: bool = False,
              limit: Optional[int] = None) -> Rows:
        """Trials that fit a filter like "model = resnet50 AND measured_us < 90000", all of them or the first `limit`.
        `order`: recorded, number, predicted or measured, with - before it the other way round."""
        return self.rows("/api/v1/records", limit, filter=filter or None, order=order, iterations=iterations or None)

    def add_records(self, records: Iterable[Mapping[str, Any]], *, shared: Optional[Shared] = None) -> Added:
        """Add trials that ended elsewhere, in batches; each batch is added whole or not at all. A record with a `uid`
        of yours is added once, so that after an error all can be added again."""
        return self._add("/api/v1/records:batchCreate", "records", records, _without_none(shared=shared))

    def rows(self, path: str, limit: Optional[int] = None, **query: Any) -> Rows:
        """Any list of the service, its pages followed: rows("/api/v1/models", name="resnet50")."""
        rows, token = Rows(), ""
        while True:
            left = PAGE_ITEMS if limit is None else min(limit - len(rows), PAGE_ITEMS)
            if left <= 0:
                return rows
            page = self._get(path, page_size=left, page_token=token or None, **query)
            rows.extend(page["items"])
            rows.note = "" if rows else page.get("note", "")
            token = page["next_page_token"]
            if not token:
                return rows

    # ---- sessions ----

    def open_session(self, model: str, cluster: str, *, trials: Optional[int] = None, time_us: Optional[float] = None,
                     gap: Optional[float] = None, mode: Optional[str] = None, seed: Optional[int] = None,
                     final_rounds: Optional[int] = None, trial_us: Optional[float] = None,
                     least_gain: Optional[float] = None, earlier: Optional[int] = None,
                     allow_lossy: Optional[bool] = None, allow_sharded: Optional[str] = None,
                     allow_stale: Optional[int] = None, memory_bytes: Optional[int] = None,
                     weather: Optional[bool] = None, export_to: Optional[Sequence[str]] = None,
                     accept: Optional[Sequence[str]] = None,
                     algorithms: Optional[Sequence[str]] = None, ranker: Optional[str] = None,
                     runner: Optional[str] = None, shared: Optional[Shared] = None,
                     key: Optional[str] = None) -> Session:
        """Open a tuning session. `trials`, `time_us` and `gap` are its budget; the others are members of NewSession.
        With the same `key`, within 24 hours, a script that starts again finds the session that it opened before."""
        budget = _without_none(trials=trials, time_us=time_us, gap=gap)
        body = _without_none(
            model=model, cluster=cluster, budget=budget or None, mode=mode, seed=seed, final_rounds=final_rounds,
            trial_us=trial_us, least_gain=least_gain, earlier=earlier, allow_lossy=allow_lossy,
            allow_sharded=allow_sharded, allow_stale=allow_stale, memory_bytes=memory_bytes, weather=weather,
            export_to=export_to, accept=accept, algorithms=algorithms, ranker=ranker, runner=runner, shared=shared)
        return Session(self, self._post("/api/v1/sessions", body, key=key)["id"])

    def session(self, id: str) -> Session:
        """A session that is open already, or was. Whether there is one shows at the first request."""
        return Session(self, id)

    # ---- requests ----

    def _get(self, path: str, **query: Any) -> Json:
        answer: Json = self._read(path, **query)
        return answer

    def _read(self, path: str, **query: Any) -> Any:
        """As _get, of what may be another text than JSON."""
        words = {name: str(value).lower() if isinstance(value, bool) else value
                 for name, value in query.items() if value is not None}
        return self._ask("GET", path + ("?" + urllib.parse.urlencode(words) if words else ""), None, None)

    def _post(self, path: str, body: Optional[Mapping[str, Any]] = None, *, key: Optional[str] = None,
              changes: bool = True) -> Json:
        answer: Json = self._ask("POST", path, body, key or uuid.uuid4().hex if changes else None)
        return answer

    def _ask(self, method: str, path: str, body: Optional[Mapping[str, Any]], key: Optional[str]) -> Any:
        """Send a request until it is answered or patience ends. It is safe to send again: it has a key, or changes
        nothing."""
        request = urllib.request.Request(self.url + path, method=method)
        if body is not None:
            request.data = json.dumps(body, allow_nan=False).encode()
            request.add_header("Content-Type", "application/json")
        if key:
            request.add_header("Idempotency-Key", key)
        if self._token:
            request.add_header("Authorization", "Bearer " + self._token)
        deadline, pause_s = time.monotonic() + self.patience_s, 0.1
        while True:
            try:
                return self._try(request)
            except ServiceError as error:
                wait_s = random.uniform(pause_s / 2, pause_s) + (error.again_s or 0)
                if error.again_s is None or time.monotonic() + wait_s > deadline:
                    raise
            time.sleep(wait_s)
            pause_s = min(2 * pause_s, 5.0)

    def _try(self, request: urllib.request.Request) -> Any:
        """Send it once."""
        try:
            with self._opener.open(request, timeout=self.timeout_s) as answer:
                data = _whole(answer)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            again_s = None if isinstance(reason, ssl.SSLCertVerificationError) else 0.0
            raise ServiceError(f"{self.url} does not answer: {reason or repr(reason)}", again_s=again_s) from error
        if answer.status >= 300:
            raise _refusal(answer, data)
        return json.loads(data) if answer.headers.get_content_type() == "application/json" else data.decode()

    def _add(self, path: str, member: str, items: Iterable[Mapping[str, Any]], beside: Json) -> Added:
        added, duplicates, uids = 0, 0, []
        for batch in _batches(items):
            answer = self._post(path, {**beside, member: batch})
            added, duplicates = added + answer["added"], duplicates + answer["duplicates"]
            uids += answer["uids"]
        return Added(added, duplicates, uids)


class Session:
    """A search with a budget. Whoever asks gets trials to run, and tells what they measured."""

    def __init__(self, service: Client, id: str) -> None:
        self.service, self.id = service, id
        self._path = "/api/v1/sessions/" + urllib.parse.quote(id, safe="")

    def ask(self, *, lease_s: Optional[float] = None) -> Optional[Trial]:
        """The next trial, which is yours for `lease_s` seconds (60). Waits while others run the last ones; None when
        the session needs no more, or has ended."""
        trials = self.ask_many(1, lease_s=lease_s)
        return trials[0] if trials else None

    def ask_many(self, count: int, *, lease_s: Optional[float] = None) -> list[Trial]:
        """Up to `count` trials, for a job that can run as many at once; none when the session needs no more."""
        body = _without_none(client=self.service.name, count=count, lease_s=lease_s)
        while True:
            try:
                offer = self.service._post(self._path + "/trials:suggest", body)
            except ServiceError as error:
                if error.code != "conflict" or self.info()["state"] in ("running", "paused"):
                    raise
                return []
            if offer["next"] != "wait":
                return [Trial.of(self, trial) for trial in offer["trials"]]
            time.sleep(POLL_S)

    def add_trials(self, trials: Iterable[Mapping[str, Any]]) -> Added:
        """Add trials that ended elsewhere, in batches; the search learns from them."""
        return self.service._add(self._path + "/trials", "trials", trials, {})

    def info(self) -> Json:
        """State, budget and how far it is."""
        return self.service._get(self._path)

    def wait(self, patience_s: float = float("inf")) -> Json:
        """Wait until the session has ended, at most so long; what info() says then."""
        end = time.monotonic() + patience_s
        while (info := self.info())["state"] in ("running", "paused") and time.monotonic() < end:
            time.sleep(min(POLL_S, max(0.0, end - time.monotonic())))
        return info

    def trials(self, *, iterations: bool = False) -> Rows:
        return self.service.rows(self._path + "/trials", iterations=iterations or None)

    def best(self) -> Json:
        """The best strategy, and how good it is. Until a trial has completed that is a ServiceError, code not-found."""
        return self.service._get(self._path + "/best")

    def outcome(self) -> Json:
        """The same with every strategy that was tried, and what the trials teach."""
        return self.service._get(self._path + "/outcome")

    def export(self, format: str = "strategy", *, strict: bool = False) -> Union[Json, str]:
        """The best strategy as a file, also in a framework's form: pytorch-ddp, horovod, deepspeed and others. A form in
        which a job would need other memory is a ServiceError, and with `strict` one that cannot say all of it."""
        answer: Union[Json, str] = self.service._read(self._path + "/export", format=format, strict=strict or None)
        return answer

    def pause(self) -> Json:
        return self._steer("pause")

    def resume(self) -> Json:
        return self._steer("resume")

    def stop(self) -> Json:
        """End it; what was found so far is its answer."""
        return self._steer("stop")

    def cancel(self) -> Json:
        """End it as a mistake."""
        return self._steer("cancel")

    def _steer(self, verb: str) -> Json:
        return self.service._post(f"{self._path}:{verb}")


@dataclasses.dataclass(frozen=True)
class Trial:
    """A strategy to run: `warmup` iterations that do not count, then `iterations` that do. Beyond `give_up_us` an
    iteration is too slow to matter. `weather` is set in sessions in weather: the seed that the environment must say."""
    session: Session = dataclasses.field(repr=False)
    number: int
    attempt: int
    round: int
    proposer: str
    lease_s: float
    iterations: int
    warmup: int
    strategy_id: str
    strategy: Json = dataclasses.field(repr=False)
    predicted_us: Optional[float] = None
    give_up_us: Optional[float] = None
    weather: Optional[int] = None

    @classmethod
    def of(cls, session: Session, offer: Json) -> Trial:
        """A trial of the service's Suggestions. Members that are newer than this client are left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(session, **{name: value for name, value in offer.items() if name in known})

    def tell(self, iterations_us: Sequence[float], *, environment: Optional[Mapping[str, Any]] = None,
             runner: Optional[str] = None, early: Optional[bool] = None) -> Json:
        """The trial has ended: its times. Told twice, it counts once. `early`: report() said to stop it."""
        return self._say("complete", self._key(), iterations_us=list(iterations_us), environment=environment,
                         runner=runner, early=early)

    def fail(self, reason: str, *, infeasible: Optional[bool] = None, runner: Optional[str] = None) -> Json:
        """The trial went wrong. `infeasible`: this strategy cannot run there at all."""
        return self._say("fail", self._key(), reason=reason, infeasible=infeasible, runner=runner)

    def heartbeat(self, lease_s: Optional[float] = None) -> bool:
        """The trial still runs: begin its lease anew. True: it is not worth going on with."""
        return bool(self._say("heartbeat", None, lease_s=lease_s)["stop"])

    def report(self, iterations_us: Sequence[float]) -> bool:
        """As heartbeat, with the times so far."""
        return bool(self._say("report", None, iterations_us=list(iterations_us))["stop"])

    def _key(self) -> str:
        """The same for whatever ends this attempt, so that it ends once."""
        return f"{self.session.id}.{self.number}.{self.attempt}"

    def _say(self, verb: str, key: Optional[str], **members: Any) -> Json:
        body = _without_none(client=self.session.service.name, attempt=self.attempt, **members)
        return self.session.service._post(f"{self.session._path}/trials/{self.number}:{verb}", body, key=key)


class _AnswersOnly(urllib.request.HTTPErrorProcessor):
    """Every status is an answer: none is an exception, and none is a redirect that would be followed."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        return response

    https_response = http_response


def _without_none(**members: Any) -> Json:
    return {name: value for name, value in members.items() if value is not None}


def _goes_unencrypted(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127.")


def _whole(answer: http.client.HTTPResponse) -> bytes:
    """The body. Where a connection ended within the headers, http.client takes what there is for an answer."""
    if "Content-Length" not in answer.headers and "Transfer-Encoding" not in answer.headers:
        raise http.client.IncompleteRead(b"")
    return answer.read()


def _refusal(answer: http.client.HTTPResponse, data: bytes) -> ServiceError:
    try:
        problem = json.loads(data)
        code, detail = problem["code"], problem["detail"]
    except (ValueError, KeyError, TypeError):  # not of the service, but of a proxy before it
        problem, code, detail = {}, "no-problem-document", f"the answer is HTTP status {answer.status}, {answer.reason}"
    again = answer.status in (429, 502, 503) or (answer.status == 504 and code != "timeout")
    seconds = answer.headers.get("Retry-After", "")
    return ServiceError(detail, answer.status, code, errors=problem.get("errors", ()),
                        request_id=problem.get("request_id", ""),
                        again_s=float(seconds if seconds.isdigit() else 0) if again else None)


def _batches(items: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Lists of items that the service takes at once, by their number and their bytes."""
    batch: list[Mapping[str, Any]] = []
    room = BATCH_BYTES
    for item in items:
        size = len(json.dumps(item))
        if batch and (len(batch) == PAGE_ITEMS or size > room):
            yield batch
            batch, room = [], BATCH_BYTES
        batch.append(item)
        room -= size
    if batch:
        yield batch
