#!/usr/bin/env python3
"""A real ClickHouse 26.x server, TCP and HTTP, out of the chdb-core wheel.

LocalServer (clickhouse-local), compiled into the wheel's extension module _chdb, can open ClickHouse's own TCP and HTTP
handlers with SYSTEM START LISTEN (since 26.7). _chdb.query() runs that LocalServer; it reads ./config.xml.
<interactive>1</interactive> in it makes the LocalServer wait on its standard input after the first query, so the server
lives until that input ends and runs no query of its own.

usage: chdbserver.py PKG DIR
PKG is the directory that holds _chdb.abi3.so, DIR the one that holds config.xml. Stops on SIGTERM, on SIGINT, and when
its own standard input ends, so that it dies with the process that holds the other end.
"""
import ctypes
import os
import signal
import sys
import threading
import time

pkg, root = sys.argv[1], os.path.abspath(sys.argv[2])
os.chdir(root)  # LocalServer loads ./config.xml
ports = os.path.join(root, "ports")
if os.path.exists(ports):
    os.unlink(ports)

# Not "import chdb": its __init__ starts the module's other engine, where START LISTEN fails.
sys.path.insert(0, pkg)
ctypes.CDLL(os.path.join(pkg, "_chdb.abi3.so"), mode=sys.getdlopenflags() | os.RTLD_DEEPBIND)
import _chdb  # noqa: E402

owner = os.dup(0)  # our standard input; the engine gets a pipe that nothing is ever written to
null = os.open("/dev/null", os.O_RDWR)
os.dup2(null, 1)  # silences the engine's prompt
engine_stdin, keep_open = os.pipe()
os.dup2(engine_stdin, 0)
stop = threading.Event()
failed = []


def engine():
    try:
        result = _chdb.query(
            "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT getServerPort('tcp_port'), "
            f"getServerPort('http_port') INTO OUTFILE '{ports}' TRUNCATE FORMAT TSV", "TSV")
        if not os.path.exists(ports):
            failed.append("the engine did not start: " + result.error_message().split(", Stack trace")[0])
    except BaseException as e:
        failed.append(str(e))
    stop.set()


def watch_owner():
    while os.read(owner, 4096):
        pass
    stop.set()


for s in (signal.SIGTERM, signal.SIGINT):
    signal.signal(s, lambda *_: stop.set())
runner = threading.Thread(target=engine, daemon=True)
runner.start()
threading.Thread(target=watch_owner, daemon=True).start()
while not stop.wait(0.2):
    pass
while not os.path.exists(ports) and not failed:  # closing earlier would be read as the end of the first query
    time.sleep(0.02)
os.close(keep_open)
runner.join(30)
for f in failed:
    print("chdbserver:", f, file=sys.stderr, flush=True)
os._exit(1 if failed else 0)
