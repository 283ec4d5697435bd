"""Requests as bytes: framed well, framed badly, and in between. Behind each comes a second request on the same connection,
and in the body of each lies a third that nobody asked: whoever reads the framing in two ways answers that one.

A frame is (name, kind, parts): parts are written one after another. What must come back, by kind:
GOOD   one answer, then the second request's (or the connection closes, where the answer says so);
BAD    one refusal and the connection closes, or it closes without a word; the second request is not answered;
MAYBE  whatever it means, answers are well formed, and no more than there were requests."""
import re
import select
import time

GOOD, BAD, MAYBE = "good", "bad", "maybe"
# What a version of the library does of itself where no service can help: words of what is said of it here. libmicrohttpd
# 0.9.75 refuses a Content-Length that is no number before it calls anybody, and writes the head of its answer twice.
TOLERATED = ("two status lines",)
REFUSALS = (400, 411, 413, 414, 417, 431, 501, 505)
# Both are there without a token. The hidden one must never be answered.
SECOND = b"GET /assets/page.css HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HIDDEN = b"GET /favicon.ico HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

# Header lines that no request may have, in place of one that it has or beside it.
BAD_LINES = {
    "nul-in-value": b"X-A: b\0c\r\n", "nul-in-name": b"X\0A: b\r\n", "bare-cr-in-value": b"X-A: b\rX-B: c\r\n",
    "blank-before-colon": b"X-A : b\r\n", "tab-before-colon": b"X-A\t: b\r\n", "no-colon": b"X-A\r\n", "no-name": b": b\r\n",
    "odd-name": b"X(A): b\r\n", "bare-lf": b"X-A: b\nX-B: c\r\n", "second-host": b"Host: elsewhere\r\n"}
# Beside a Content-Length of its own each is a contradiction or no number.
BAD_LENGTHS = [b"+{n}", b"-{n}", b"{n},{n}", b"{n} {n}", b"0x{n}", b"", b"{n};", b"five", b"1e1", b"{n}\0", b"99999999999999999999",
               b"18446744073709551616", b"{n}.0"]
BAD_ENCODINGS = [b"gzip", b"xchunked", b"gzip, chunked", b"chunked, gzip", b"chunked\0", b"\"chunked\"", b""]
BAD_CHUNKS = {
    "plus": b"+{n}\r\n{body}\r\n0\r\n\r\n", "minus": b"-{n}\r\n{body}\r\n0\r\n\r\n", "hex-prefix": b"0x{n}\r\n{body}\r\n0\r\n\r\n",
    "no-size": b"\r\n{body}\r\n0\r\n\r\n", "no-digit": b"g\r\n{body}\r\n0\r\n\r\n", "huge": b"fffffffffffffffff\r\n{body}\r\n0\r\n\r\n",
    "longer-than-said": b"1\r\n{body}\r\n0\r\n\r\n", "negative-wrap": b"ffffffffffffffff\r\n{body}\r\n0\r\n\r\n"}
GOOD_CHUNKS = {
    "plain": b"{n}\r\n{body}\r\n0\r\n\r\n", "leading-zeros": b"0000{n}\r\n{body}\r\n000\r\n\r\n", "extension": b"{n};a=b\r\n{body}\r\n0;c\r\n\r\n",
    "trailer": b"{n}\r\n{body}\r\n0\r\nX-Trailer: 1\r\n\r\n"}
MAYBE_CHUNKS = {
    "blank-after": b"{n} \r\n{body}\r\n0\r\n\r\n", "blank-before": b" {n}\r\n{body}\r\n0\r\n\r\n", "bare-lf": b"{n}\n{body}\n0\n\n",
    "quoted-extension": b'{n};a="\r\n"\r\n{body}\r\n0\r\n\r\n', "cut": b"{n}\r\n{body}\r\n", "no-end": b"{n}\r\n{body}\r\n0\r\n"}
BAD_FIRST_LINES = [b"{m} {t} HTTP/9.9", b"{m} {t} HTTP/1.1 x", b"{m} {t}\0 HTTP/1.1", b"{m}\0 {t} HTTP/1.1", b"{m} {t} {t} HTTP/1.1",
                   b"\0{m} {t} HTTP/1.1", b"{m} {t} HTTP/1.1\0"]
MAYBE_FIRST_LINES = [b"{m}  {t} HTTP/1.1", b"{m}\t{t}\tHTTP/1.1", b"{m} http://localhost{t} HTTP/1.1", b"{m} {t} HTTP/1.0", b"{m} {t} http/1.1",
                     b"{m} {t}", b"{m}", b" {m} {t} HTTP/1.1", b"{m} * HTTP/1.1", b"{m} {t}#x HTTP/1.1", b"{m} {t} HTTP/1.2", b"{m} {t} HTTP/01.1"]


def fill(pattern, body):
    return pattern.replace(b"{n}", f"{len(body):x}".encode()).replace(b"{body}", body)


class Framer:
    def __init__(self, rng):
        self.rng = rng

    def head(self, first, lines, order=True):
        if order:
            self.rng.shuffle(lines)
        return first + b"\r\n" + b"".join(lines) + b"\r\n"

    def frame(self, method, target, headers, body):
        """One way of saying this request. `headers` without Host and length; `body` may be None."""
        m, t = method.encode(), target.encode("latin-1", "replace")
        lines = [b"Host: localhost\r\n"] + [f"{k}: {v}\r\n".encode("latin-1", "replace") for k, v in headers.items()]
        ways = [self.well, self.well, self.lengths, self.encodings, self.bad_line]
        ways += [self.first_line, self.flipped] if method != "HEAD" else []  # another method's answer would have a body
        ways += [self.chunks, self.chunks] if body is not None else []
        return self.rng.choice(ways)(m, t, lines, body)

    @staticmethod
    def length(body):
        return [] if body is None else [b"Content-Length: %d\r\n" % len(body)]

    def written(self, data):
        """At once, in a few pieces, or byte by byte."""
        how = self.rng.random()
        if how < 0.7 or len(data) > 3000:
            return [data]
        if how < 0.8:
            return [data[i:i + 1] for i in range(len(data))]
        at = sorted(self.rng.sample(range(1, len(data)), min(3, len(data) - 1)))
        return [data[i:j] for i, j in zip([0] + at, at + [len(data)])]

    def well(self, m, t, lines, body):
        """In strange ways that are right all the same."""
        lines = lines + self.length(body)
        what = self.rng.randrange(4)
        if what == 0:
            lines = [b":".join((self.cased(line.split(b":", 1)[0]), line.split(b":", 1)[1])) for line in lines]
        elif what == 1:
            lines = [line.replace(b": ", self.rng.choice((b":", b":\t", b":   ")), 1) for line in lines]
            lines[0] = lines[0].replace(b"\r\n", b" \t\r\n")
        elif what == 2 and body is not None:
            lines[-1] = b"Content-Length: %05d\r\n" % len(body)
        before = b"\r\n" if what == 3 else b""
        return f"well-{what}", GOOD, self.written(before + self.head(m + b" " + t + b" HTTP/1.1", lines) + (body or b""))

    def cased(self, name):
        return bytes(c ^ 32 if chr(c).isalpha() and self.rng.random() < 0.5 else c for c in name)

    def lengths(self, m, t, lines, body):
        body = (body or b"") + HIDDEN
        bad = self.rng.choice(BAD_LENGTHS).replace(b"{n}", str(len(body)).encode())
        name = "length " + bad.decode("latin-1")
        lines.append(b"Content-Length: " + bad + b"\r\n")
        if self.rng.random() < 0.3:
            name = "two lengths"
            lines[-1:] = [b"Content-Length: %d\r\n" % len(body), b"Content-Length: %d\r\n" % (len(body) - len(HIDDEN))]
        return name, BAD, [self.head(m + b" " + t + b" HTTP/1.1", lines) + body]

    def encodings(self, m, t, lines, body):
        body = (body or b"") + HIDDEN
        how = self.rng.randrange(3)
        if how == 0:  # both, to be read one way or the other
            lines += [b"Content-Length: %d\r\n" % (len(body) + 10), b"Transfer-Encoding: chunked\r\n"]
        elif how == 1:
            lines += [b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\n"]
        else:
            lines += [b"Transfer-Encoding: " + self.rng.choice(BAD_ENCODINGS) + b"\r\n"]
        text = b"0\r\n\r\n" + HIDDEN if how < 2 else fill(GOOD_CHUNKS["plain"], body)
        return f"encoding {lines[-1]}" if how == 2 else f"encoding-{how}", BAD, [self.head(m + b" " + t + b" HTTP/1.1", lines, order=False) + text]

    def chunks(self, m, t, lines, body):
        lines.append(b"Transfer-Encoding: chunked\r\n")
        kind = self.rng.choice((GOOD, GOOD, BAD, MAYBE))
        table = {GOOD: GOOD_CHUNKS, BAD: BAD_CHUNKS, MAYBE: MAYBE_CHUNKS}[kind]
        name = self.rng.choice(sorted(table))
        sent = body if body or kind != GOOD else b" "
        if kind == GOOD and self.rng.random() < 0.3 and len(sent) < 400:
            name, text = "small", b"".join(b"1\r\n%c\r\n" % c for c in sent) + b"0\r\n\r\n"
        else:
            text = fill(table[name], sent)
        data = self.head(m + b" " + t + b" HTTP/1.1", lines) + text
        return "chunks-" + name, kind, self.written(data) if kind != BAD else [data]

    def bad_line(self, m, t, lines, body):
        name = self.rng.choice(sorted(BAD_LINES) + ["folded", "all-bare-lf"])
        lines += self.length(body)
        if name == "folded":
            lines[-1] = lines[-1].replace(b": ", b":\r\n ", 1)
        elif name != "all-bare-lf":
            lines.insert(self.rng.randrange(len(lines) + 1), BAD_LINES[name])
        head = self.head(m + b" " + t + b" HTTP/1.1", lines, order=False)
        head = head.replace(b"\r\n", b"\n") if name == "all-bare-lf" else head
        return "line-" + name, BAD, [head + (body or b"")]

    def first_line(self, m, t, lines, body):
        bad = self.rng.random() < 0.4
        first = self.rng.choice(BAD_FIRST_LINES if bad else MAYBE_FIRST_LINES)
        head = self.head(first.replace(b"{m}", m).replace(b"{t}", t), lines + self.length(body))
        return "first " + first.decode("latin-1"), BAD if bad else MAYBE, [head + (body or b"")]

    def flipped(self, m, t, lines, body):
        """A few bytes of anywhere are others, gone, or there twice."""
        data = bytearray(self.head(m + b" " + t + b" HTTP/1.1", lines + self.length(body)) + (body or b""))
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            at = self.rng.randrange(len(data))
            data[at:at + 1] = self.rng.choice((bytes([self.rng.randrange(256)]), b"", bytes(data[at:at + 1]) * 2, b"\r", b"\n", b"\0", b" "))
        return "flipped", MAYBE, [bytes(data)]


class Malformed(Exception):
    pass


STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9]) [\x20-\x7e]*\Z")
HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)\Z")


def head_of(data, at):
    """(status, headers, where the body begins) or None while it is not whole."""
    end = data.find(b"\r\n\r\n", at)
    if end < 0:
        if len(data) - at > 65536:
            raise Malformed("a head without end")
        return None
    first, *lines = data[at:end].split(b"\r\n")
    status = STATUS_LINE.match(first)
    if not status:
        raise Malformed(f"no status line: {first[:80]!r}")
    headers = {}
    for line in lines:
        header = HEADER_LINE.match(line)
        if not header:
            raise Malformed(f"no header: {line[:80]!r}")
        name = header[1].decode().lower()
        if name in headers and name in ("content-length", "transfer-encoding", "content-type"):
            raise Malformed(f"{name} twice")
        headers[name] = header[2].decode("latin-1").strip()
    return int(status[1]), headers, end + 4


def chunked_end(data, at):
    """Where a chunked body ends; None while it does not."""
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return None
        if not re.fullmatch(rb"[0-9a-fA-F]+", data[at:line]):
            raise Malformed(f"no chunk size: {data[at:line][:40]!r}")
        size = int(data[at:line], 16)
        at = line + 2 + size + 2
        if len(data) < at:
            return None
        if data[at - 2:at] != b"\r\n":
            raise Malformed("a chunk does not end where it says")
        if not size:
            return at


def answers_in(data, heads, closed):
    """([(status, headers, body)], whether they are whole). `heads`: of which requests, in turn, the answer has no body."""
    found, at = [], 0
    while at < len(data):
        head = head_of(data, at)
        if head is None:
            break
        status, headers, begin = head
        bodiless = status < 200 or status in (204, 304) or (len(found) < len(heads) and heads[len(found)])
        if bodiless:
            end = begin
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            end = chunked_end(data, begin)
        elif "content-length" in headers:
            end = begin + int(headers["content-length"])
            end = end if len(data) >= end else None
        else:
            end = len(data) if closed else None
        if end is None:
            return found, False
        if status >= 200:
            found.append((status, headers, data[begin:end]))
        at = end
    return found, at == len(data)


def converse(connection, parts, heads, patience_s, wanted=99):
    """Write the parts and read until the peer closes, has answered `wanted` times, or is silent for so long:
    (answers, whole, closed)."""
    data, closed = b"", False
    connection.settimeout(20)
    try:
        for part in parts:
            connection.sendall(part)
    except OSError:
        pass  # closed early; what it said before can still be read
    until = time.monotonic() + patience_s
    while not closed and time.monotonic() < until:
        if not select.select([connection], [], [], max(0, until - time.monotonic()))[0]:
            break
        try:
            part = connection.recv(1 << 18)
        except OSError:
            part = b""
        closed = not part
        data += part
        found, whole = answers_in(data, heads, closed)
        if whole and len(found) >= wanted:
            break
    return *answers_in(data, heads, closed), closed


def check(name, kind, answers, whole, closed):
    """Holds what the kind of frame asks for (see above); the first answer's own sense is for the caller."""
    if any(status == 200 and headers.get("content-type") == "image/svg+xml" for status, headers, _ in answers):
        raise Malformed(f"{name}: a request within a body was answered")
    if len(answers) > 2:
        raise Malformed(f"{name}: {len(answers)} answers to two requests")
    for status, _, body in answers:
        if body.startswith(b"HTTP/1.") and "two status lines" not in TOLERATED:
            raise Malformed(f"{name}: two status lines")
        if status >= 500 and status not in (501, 503, 504, 505, 507):
            raise Malformed(f"{name}: status {status}")
    if kind == BAD:
        early = name.startswith("chunks-") and answers and 400 <= answers[0][0] < 500  # refused for its head, before its body
        if len(answers) > 1 or (answers and answers[0][0] not in REFUSALS and not early):
            raise Malformed(f"{name}: must be refused, and was answered {[a[0] for a in answers]}")
        if answers and not closed:
            raise Malformed(f"{name}: refused, and the connection stays")
    if kind == GOOD:
        if not whole or not answers:
            raise Malformed(f"{name}: no whole answer")
        stays = "close" not in answers[0][1].get("connection", "").lower()
        itself = len(answers) == 2 and answers[1][0] == 200 and answers[1][1].get("content-type", "").startswith("text/css")
        if stays and not itself:
            raise Malformed(f"{name}: the second request was answered {[a[0] for a in answers[1:]]}")
