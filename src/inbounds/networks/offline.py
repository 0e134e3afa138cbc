"""Nothing is fetched while a network is built: settings that somebody hands over do not make a computer reach out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from inbounds.errors import BadInput

REMEDY = "give the weights as a local file, network.weights = 'FILE.safetensors', and leave out what would fetch them"
_ON_SOCKETS = ("connect", "connect_ex", "sendto", "sendmsg")
_BY_NAME = ("getaddrinfo", "gethostbyname", "gethostbyname_ex")
_lock = threading.RLock()


@contextmanager
def offline() -> Iterator[None]:
    """This thread cannot connect to anything; others can, such as one that sends curves to a server.

    Raises:
        BadInput: It was tried. That counts even if whoever tried went on without, as the network would then be another
            than the settings say.
    """
    here, asked = threading.get_ident(), list[str]()

    def closed(real: Callable[..., Any], *, place: int) -> Callable[..., Any]:
        def call(*args: Any, **given: Any) -> Any:
            return real(*args, **given) if threading.get_ident() != here else refuse(args[place:])

        return call

    def refuse(args: tuple[Any, ...]) -> NoReturn:
        to = next((part for part in reversed(args) if isinstance(part, str | tuple)), "")
        asked.append(":".join(map(str, to[:2])) if isinstance(to, tuple) else str(to))
        raise ConnectionError(f"nothing is fetched while a network is built; {REMEDY}")

    with _lock:
        sockets = {name: getattr(socket.socket, name) for name in _ON_SOCKETS if hasattr(socket.socket, name)}
        own = {name for name in sockets if name in vars(socket.socket)}
        names = {name: getattr(socket, name) for name in _BY_NAME}
        try:
            for name, real in sockets.items():
                setattr(socket.socket, name, closed(real, place=1))
            for name, real in names.items():
                setattr(socket, name, closed(real, place=0))
            yield
        except Exception:
            if not asked:
                raise
        finally:
            for name, real in sockets.items():
                setattr(socket.socket, name, real) if name in own else delattr(socket.socket, name)
            for name, real in names.items():
                setattr(socket, name, real)
    if asked:
        raise BadInput(f"it would connect to {asked[0]}, and nothing is fetched while a network is built; {REMEDY}")
