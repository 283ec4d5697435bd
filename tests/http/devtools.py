"""A headless Chromium driven over the DevTools protocol: a WebSocket (RFC 6455) by hand, and the few calls that a test
of pages needs. Everything that the page complains about is kept in `complaints`."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Socket:
    """Text messages of one WebSocket."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((at.hostname, at.port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.receive()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise OSError(head)

    def receive(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise OSError("the browser has gone")
        return data

    def take(self, n):
        while len(self.buffer) < n:
            self.buffer += self.receive()
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        length = bytes([128 | n]) if n < 126 else struct.pack(">BH", 254, n) if n < 65536 else struct.pack(">BQ", 255, n)
        self.socket.sendall(b"\x81" + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def read(self):
        text = b""
        while True:
            first, n = self.take(2)
            n &= 127
            n = struct.unpack(">H", self.take(2))[0] if n == 126 else struct.unpack(">Q", self.take(8))[0] if n == 127 else n
            data = self.take(n)
            if first & 15 in (0, 1):
                text += data
                if first & 128:
                    return text.decode()


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio",
             "--disable-sync", "--no-proxy-server", "--hide-scrollbars", f"--user-data-dir={self.folder}",
             "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        url = next((line.split()[-1] for line in self.process.stderr if "DevTools listening on" in line), None)
        if not url:
            raise OSError("the browser did not start")
        self.socket, self.number, self.session = Socket(url), 0, None
        self.complaints, self.requests = [], {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            got = json.loads(self.socket.read())
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.see(got)

    def see(self, event):
        method, p = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(p["exceptionDetails"])[:400])
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(p["args"])[:400])
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.complaints.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests[p["requestId"]] = [p["request"]["url"], 0]
        elif method == "Network.dataReceived" and p["requestId"] in self.requests:
            self.requests[p["requestId"]][1] += p["dataLength"]

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, script, seconds=20):
        """Until the expression is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if self.run(f"!!({script})"):
                    return
            except RuntimeError:
                pass  # between two pages there may be nothing to ask
            time.sleep(0.1)
        raise AssertionError(f"after {seconds} s still not: {script}")

    def settle(self):
        self.wait("document.readyState === 'complete'")

    def go(self, url):
        """Open a page; the bytes of it and of what it loads."""
        self.requests = {}
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")
        return self.weight()

    def weight(self):
        return sum(n for url, n in self.requests.values() if "/events" not in url)

    def look(self, width, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)
