"""A network that misbehaves, for the scripts of this folder.

    remote_network.py relay TARGET_PORT   bytes to and from 127.0.0.1:TARGET_PORT; while the file "cut" is here, connections
                                          are closed and new ones refused at once
    remote_network.py proxy               an HTTP proxy: CONNECT, and requests with a whole URL; their first lines go to the
                                          file "proxy.log"; while the file "locked" is here it wants a password

It prints its port, and ends when its standard input does."""
import os
import select
import socket
import socketserver
import sys
import threading
import urllib.parse


def pump(one, other):
    """Both ways until either ends, or the network is cut."""
    while not (mode == "relay" and os.path.exists("cut")):
        for source in select.select([one, other], [], [], 0.05)[0]:
            data = source.recv(65536)
            if not data:
                return
            (other if source is one else one).sendall(data)


def head_of(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(65536)
        if not data:
            return None
        head += data
    return head


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            self.relay() if mode == "relay" else self.proxy()
        except OSError:
            pass

    def relay(self):
        if not os.path.exists("cut"):
            with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as other:
                pump(self.request, other)

    def proxy(self):
        head = head_of(self.request)
        if head is None:
            return
        line = head.split(b"\r\n", 1)[0].decode()
        with open("proxy.log", "a") as log:
            log.write(line + "\n")
        method, url, _ = line.split(" ")
        if os.path.exists("locked"):
            self.request.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Type: text/html\r\n"
                                 b"Content-Length: 6\r\nConnection: close\r\n\r\n<html>")
            return
        host, _, port = (url if method == "CONNECT" else urllib.parse.urlsplit(url).netloc).rpartition(":")
        with socket.create_connection((host, int(port))) as other:
            if method == "CONNECT":
                self.request.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                other.sendall(head.replace(url.encode(), ("/" + url.split("/", 3)[3]).encode(), 1))
            pump(self.request, other)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


mode = sys.argv[1]
server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
