"""What a capture takes and what it returns: addresses, options, progress, results."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from collections.abc import Callable, Sequence
from typing import Literal

from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_USAGE, Cancelled, Problem, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable

LONGEST_MS = 600_000
MOST_SERVERS = 512
HIGHEST_LEVEL = 9

OptionValue = bool | int | str
CaptureStage = Literal["connecting", "waiting", "tracing", "stopping", "receiving", "writing", "written", "failed"]
"""Where one server's capture stands. While it waits, other servers are being reached, or the delay runs."""

_WORKERS = "@workers"
WORKERS_VARIABLE = "TPU_WORKER_HOSTNAMES"
_SCHEME = "grpc://"
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?", re.ASCII)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_TYPES = ("bool", "int", "string")
_LONGEST_VALUE = 10_000


@dataclass(frozen=True, slots=True)
class Address:
    """Where a profiler server listens: a name or an IP address without brackets, and a port from 1 to 65535."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def target(self) -> str:
        """The address as gRPC reads it. It has the scheme because a host may be called ``unix`` or ``dns``."""
        return f"dns:///{str(self).replace('%', '%25')}"

    @property
    def file_name(self) -> str:
        """``<host>_<port>``, as XProf names the file of a server that says nothing of its host."""
        return f"{self.host.replace(':', '_')}_{self.port}"


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How to trace. The default levels are those of XProf's dialogue.

    Attributes:
        duration_ms: how long to trace, 1 to `LONGEST_MS`.
        host_tracer_level: 0 off, 1 what the program annotates, 2 with the costly calls of the runtime, 3 with all.
        device_tracer_level, python_tracer_level: 0 off, 1 on, of Python every call.
        advanced: the profiler's own options, by name.
        delay_ms: how long to wait once all servers are reached.
        connect_seconds: how long a server may take to answer at all.
        grace_seconds: how long it may take, after the time traced, to collect and send what it traced.
        is_snapshot: ask for what the server has kept, instead of tracing; see `parsers.capture.session.switch`.

    Raises:
        ProfileError: `usage`: a value is out of its range.
    """

    duration_ms: int = 2000
    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    advanced: tuple[tuple[str, OptionValue], ...] = ()
    delay_ms: int = 0
    connect_seconds: float = 10.0
    grace_seconds: float = 120.0
    is_snapshot: bool = False

    def __post_init__(self) -> None:
        ranges: tuple[tuple[str, float, float, float, str], ...] = (
            ("A duration", self.duration_ms, 1, LONGEST_MS, " ms"),
            ("A delay", self.delay_ms, 0, LONGEST_MS, " ms"),
            ("The time to connect", self.connect_seconds, 0.01, 3600, " s"),
            ("The time to wait", self.grace_seconds, 0.01, 24 * 3600, " s"),
            ("A host tracer level", self.host_tracer_level, 0, HIGHEST_LEVEL, ""),
            ("A device tracer level", self.device_tracer_level, 0, HIGHEST_LEVEL, ""),
            ("A Python tracer level", self.python_tracer_level, 0, HIGHEST_LEVEL, ""),
        )
        for what, value, least, most, unit in ranges:
            if not least <= value <= most:
                sentence = f"{what} is {least:,} to {most:,}{unit}; this is {value}."
                raise ProfileError("usage", sentence, "", EXIT_USAGE)

    @property
    def traces_nothing(self) -> bool:
        return self.host_tracer_level == self.device_tracer_level == self.python_tracer_level == 0


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """Where one server's capture stands now.

    Attributes:
        address: the server's address, as given.
        left_ms: how much of the waiting or tracing is left; None in other stages.
        duration_ms: the time to trace.
        size_bytes: the profile's size, once it has come; None before.
        sentence: a remark, such as what failed; mostly empty.
    """

    address: str
    stage: CaptureStage
    left_ms: int | None
    duration_ms: int
    size_bytes: int | None = None
    sentence: str = ""


OnProgress = Callable[[CaptureProgress], object]
"""Receives progress. Several threads call it, never two at once; it must return quickly."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A profile that was written: the path, the host's name as in the file's, and how large it is."""

    path: str
    host: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HostCapture:
    """What came of one server.

    Attributes:
        address: the server's address, as given.
        file: the profile; None where there is none.
        seconds: time from the request to the answer; None where there was no request.
        problem, notes: why there is no file, or None; and sentences on what the profile lacks.
        is_stopped: whether the tracing ended early.
    """

    address: str
    file: WrittenFile | None
    seconds: float | None
    problem: Problem | None
    notes: tuple[str, ...] = ()
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """A new run.

    Attributes:
        run_path: the run's folder.
        hosts: one entry for each address, in the order given; at least one has a file.
        seconds: how long the whole capture took.
    """

    run_path: str
    hosts: tuple[HostCapture, ...]
    seconds: float

    @property
    def is_stopped(self) -> bool:
        return any(host.is_stopped for host in self.hosts)

    @property
    def files(self) -> tuple[WrittenFile, ...]:
        return tuple(host.file for host in self.hosts if host.file is not None)

    @property
    def written(self) -> tuple[HostCapture, ...]:
        return tuple(host for host in self.hosts if host.file is not None)

    @property
    def failed(self) -> tuple[HostCapture, ...]:
        """The hosts without a file."""
        return tuple(host for host in self.hosts if host.file is None)


class CaptureStop:
    """Ends a capture early; threads and signal handlers may use it.

    The first `request` ends the tracing and keeps what was traced; the second one gives up the rest too.
    """

    def __init__(self) -> None:
        self._requests: list[None] = []  # append and len are atomic, which a lock in a signal handler is not

    def request(self) -> None:
        """Asks the capture to stop, or to give up when called again."""
        self._requests.append(None)

    def give_up(self) -> None:
        """Asks it to stop and to give up what was traced."""
        self.request()
        self.request()

    def check(self) -> None:
        """Raises `Cancelled` if the capture is to stop."""
        if self.is_requested:
            raise Cancelled

    @property
    def is_requested(self) -> bool:
        return len(self._requests) > 0

    @property
    def is_given_up(self) -> bool:
        return len(self._requests) > 1


def parse_addresses(texts: Sequence[str]) -> tuple[Address, ...]:
    """Reads addresses such as ``host:port`` or ``[IPv6]:port``, also several with commas; returns each once, in order.

    ``@workers:port`` stands for all hosts in the variable TPU_WORKER_HOSTNAMES, which the runtime of a slice sets.

    Raises:
        ProfileError: `bad_address`.
    """
    words = [part.strip() for text in texts for part in text.split(",")]
    parts = [part for word in words for part in (_workers(word) if word.startswith(_WORKERS) else [word])]
    addresses = tuple(dict.fromkeys(parse_address(part) for part in parts if part))
    if not addresses:
        raise _bad_address("", "")
    if len(addresses) > MOST_SERVERS:
        sentence = f"These are {len(addresses):,} addresses."
        raise ProfileError("bad_address", sentence, f"up to {MOST_SERVERS} at once", EXIT_CAPTURE_FAILED)
    return addresses


def _workers(word: str) -> list[str]:
    """The addresses that ``@workers:port`` stands for.

    Raises:
        ProfileError: `bad_address`: the variable is not set.
    """
    names = [name.strip() for name in os.environ.get(WORKERS_VARIABLE, "").split(",") if name.strip()]
    if not names:
        raise _bad_address(word, f"{WORKERS_VARIABLE} is not set here; the runtime of a slice sets it")
    port = word.removeprefix(_WORKERS)
    return [f"[{name}]{port}" if _is_ipv6(name) else f"{name}{port}" for name in names]


def parse_address(text: str) -> Address:
    """Reads one address.

    Raises:
        ProfileError: `bad_address`.
    """
    rest = text.removeprefix(_SCHEME)
    if "://" in rest or "/" in rest:
        raise _bad_address(text, "it is a URL, not host:port")
    host, colon, port = rest.rpartition(":")
    if not colon and _is_port(rest):
        raise _bad_address(text, "it is only a port", f"localhost:{rest}")
    if not colon:
        raise _bad_address(text, "it has no port")
    if not _is_port(port):
        raise _bad_address(text, "its port is not a number from 1 to 65535")
    if host.startswith("[") and host.endswith("]"):
        if not _is_ipv6(host[1:-1]):
            raise _bad_address(text, "the text in brackets is not an IPv6 address")
        return Address(host[1:-1], int(port))
    if ":" in host:
        raise _bad_address(text, "write an IPv6 address in brackets: [::1]:9012")
    if not _HOST.fullmatch(host):
        raise _bad_address(text, "it has no host's name" if not host else "no host has such a name")
    return Address(host, int(port))


def parse_option(text: str) -> tuple[str, OptionValue]:
    """Reads an advanced option ``key=value``; ``key:string=5`` (or ``int``, ``bool``) also states the type.

    ``true`` and ``false`` are booleans, whole numbers of 64 bits integers, all else is text.

    Raises:
        ValueError: the text is not an option; the message says why.
    """
    key, equals, value = text.partition("=")
    name, colon, kind = key.partition(":")
    if not equals or not _KEY.fullmatch(name):
        raise ValueError(f"{text!r} is not of the form key=value")
    if colon and kind not in _TYPES:
        raise ValueError(f"{kind!r} is not a type of an option; one of: {', '.join(_TYPES)}")
    if len(value) > _LONGEST_VALUE or not value.isprintable():
        raise ValueError(f"the value of {name} is too long or holds what can't be printed")
    is_bool = value.lower() in ("true", "false")
    is_int = bool(_INTEGER.fullmatch(value)) and -(1 << 63) <= int(value) < 1 << 63
    if (kind == "bool" and not is_bool) or (kind == "int" and not is_int):
        raise ValueError(f"{value!r} is no {kind}")
    if is_bool and kind != "string":
        return name, value.lower() == "true"
    return name, int(value) if is_int and kind != "string" else value


def _is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address, with or without a network interface (``%eth0``)."""
    address, percent, interface = text.partition("%")
    with contextlib.suppress(ValueError):
        ipaddress.IPv6Address(address)
        return not percent or bool(_HOST.fullmatch(interface))
    return False


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535


def _bad_address(text: str, why: str, hint: str = "host:port, such as localhost:9012") -> ProfileError:
    shown = printable(text[:200])
    sentence = f"{shown} is not an address of a profiler server: {why}." if shown else "No address is given."
    return ProfileError("bad_address", sentence, hint, EXIT_CAPTURE_FAILED)
