"""How many connections may come from one place: an IPv6 network of 64 bits counts as one address, since whoever has one has
all of it. In a network namespace of this test's own, with addresses for documentation on its loopback. Prints TAP-like lines."""
import socket
import subprocess
import time

from service import Service, report

LIMIT = 8


def start(dataset):
    service = Service("--connections-per-address", str(LIMIT), "--listen", "[::]:0", dataset=dataset)
    with open("serve.err", "a", encoding="utf-8") as log:
        service.process = subprocess.Popen(service.command, stdout=subprocess.PIPE, stderr=log, text=True)
    service.port = int(service.process.stdout.readline().strip().rsplit(":", 1)[1])
    return service


def is_served(connection):
    """Whether a request is answered; else the service has closed."""
    try:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return connection.recv(1000).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def open_from(service, sources, target):
    """Connections that are kept open, one from each source; how many of them are served."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    kept, served = [], 0
    for source in sources:
        connection = socket.socket(family)
        connection.settimeout(10)
        connection.bind((source, 0))
        connection.connect((target, service.port))
        kept.append(connection)
        served += is_served(connection)
    return kept, served


def drop(connections):
    for connection in connections:
        connection.close()
    time.sleep(1)


def the_addresses_of_one_network_share_a_limit():
    service = start("a.db")
    one = [f"2001:db8:1:2::{i:x}" for i in range(1, 3 * LIMIT + 1)]
    other = [f"2001:db8:1:3::{i:x}" for i in range(1, LIMIT + 1)]
    kept, served = open_from(service, one, "2001:db8:1:2::1")
    assert served == LIMIT, served
    more, served = open_from(service, other, "2001:db8:1:2::1")
    assert served == LIMIT, served
    drop(kept)
    again, served = open_from(service, one, "2001:db8:1:2::1")
    assert served == LIMIT, served
    drop(more + again)
    assert service.stop() == 0


def one_address_has_it_too():
    service = start("b.db")
    for source, target in (("::1", "::1"), ("127.0.0.1", "127.0.0.1")):
        kept, served = open_from(service, [source] * 2 * LIMIT, target)
        assert served == LIMIT, (source, served)
        drop(kept)
    assert service.stop() == 0


def ipv4_addresses_are_one_each():
    """To a service that listens on both, they come as ::ffff:127.0.0.N."""
    service = start("c.db")
    kept, served = open_from(service, [f"127.0.0.{i}" for i in range(1, 3 * LIMIT + 1)], "127.0.0.1")
    assert served == 3 * LIMIT, served
    drop(kept)
    assert service.stop() == 0


report([the_addresses_of_one_network_share_a_limit, one_address_has_it_too, ipv4_addresses_are_one_each])
