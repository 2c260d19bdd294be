"""Something that listens at a port of this machine, and is not the server that a client looks for there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONGEST_SECONDS = 60.0
"""Only a hang takes this long."""


@contextmanager
def accepting(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[socket.socket]]]:
    """Takes connections, and has them answered, one after the other, on a thread of its own.

    Yields:
        Its address, and the connections that came.
    """
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                answer(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}", connections
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(LONGEST_SECONDS)
            for connection in connections:
                connection.close()
