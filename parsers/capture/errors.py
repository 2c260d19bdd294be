"""Plain sentences for what goes wrong in a capture.

This module does not import gRPC: callers pass the name and the details of a status.
"""

from __future__ import annotations

import errno
import re

from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import printable_url, scheme_of
from tpuprof.parsers.capture.model import Address, CaptureOptions
from tpuprof.parsers.files.places import reason

_LONGEST_DETAIL = 300
_USUAL_PORT = 9012
_COPIES = {"gs": "gcloud storage rsync -r DIR", "s3": "aws s3 sync DIR"}
"""The command that copies a folder to an object store, by scheme."""

_ANOTHER_SESSION = re.compile(r"\b(another|existing|concurrent)\b.*\bprofil\w*\b|\bprofil\w*\b.*\balready\b", re.I)
_TOO_LARGE = re.compile(r"larger than max|exceed\w* (the )?maximum|maximum protobuf|2 ?Gi?B|too (large|big)", re.I)
_UNKNOWN_NAME = re.compile(r"resol|name not found|lookup|name or service", re.I)
_NOT_GRPC = re.compile(r"http/?[12]|settings frame|protocol error|ssl|tls|trailers|content-type", re.I)

PASSING = ("no_server", "no_answer", "another_session", "connection_lost", "deadline")
"""Codes of failures that may be over a moment later."""

UNWRITABLE = ("disk_full", "no_permission", "unwritable")
"""Codes of failures to write a profile."""


def failure(code: str, sentence: str, hint: str = "") -> ProfileError:
    """Makes an error of a capture, exit code 7."""
    return ProfileError(code, sentence, hint, EXIT_CAPTURE_FAILED)


def start_lines(port: int) -> str:
    """The line of code that starts a server, in each framework."""
    return (
        f"start one in the program: JAX jax.profiler.start_server({port}), PyTorch/XLA xp.start_server({port}) "
        f"(import torch_xla.debug.profiler as xp), TensorFlow tf.profiler.experimental.server.start({port})"
    )


def unreachable(address: Address, status: str, details: str, seconds: float) -> ProfileError:
    """The server did not answer the first call within `seconds`; `status` and `details` are gRPC's."""
    if status == "DEADLINE_EXCEEDED":
        sentence = f"{address} did not answer within {seconds:g} s."
        return failure("no_answer", sentence, "is the port open to this machine, and a profiler server's?")
    if status == "UNAVAILABLE" and _UNKNOWN_NAME.search(details):
        sentence = f"No machine called {printable(address.host)} is known here."
        return failure("unknown_host", sentence, "host:port, such as localhost:9012")
    if _NOT_GRPC.search(details):
        return not_a_profiler(address)
    if status != "UNAVAILABLE":
        return refused(address, status, details)
    return failure("no_server", f"No profiler server listens at {address}.", start_lines(address.port))


def refused(address: Address, status: str, details: str) -> ProfileError:
    """The server answered with an error: the name of the gRPC status, and the server's text, or gRPC's."""
    words = printable(" ".join(details.split()))[:_LONGEST_DETAIL].rstrip(".")
    answer = f": {words}" if words else ""
    if _ANOTHER_SESSION.search(details) or status == "ALREADY_EXISTS":
        hint = "wait until the program's own trace or the other capture ends; if continuous profiling "
        hint += f"was left on: tpuprof-tui capture --continuous off {address}"
        return failure("another_session", f"Another profile is being taken at {address}.", hint)
    if status == "RESOURCE_EXHAUSTED" or _TOO_LARGE.search(details):
        hint = "a shorter time (--duration), or less of the host: --host-tracer-level 1 --python-tracer-level 0"
        return failure("too_large", f"The profile of {address} is too large to be sent{answer}.", hint)
    if status == "UNIMPLEMENTED":
        return not_a_profiler(address)
    if status in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        sentence = f"{address} asks for credentials, and profiler servers don't{answer}."
        return failure("unauthenticated", sentence, "the port of the profiler server itself, or a tunnel to it: ssh -L")
    if status == "UNAVAILABLE":
        sentence = f"The connection to {address} broke while it was tracing{answer}."
        return failure("connection_lost", sentence, "is the program still running?")
    if _NOT_GRPC.search(details):
        return not_a_profiler(address)
    return failure("server_error", f"The profiler at {address} failed ({status}){answer}.", "")


def not_a_profiler(address: Address) -> ProfileError:
    """Something other than a profiler server listens at the address."""
    sentence = f"The server at {address} is not a profiler server."
    free = _USUAL_PORT if address.port != _USUAL_PORT else _USUAL_PORT + 1
    hint = f"use another port than {address.port}, which something else has taken; {start_lines(free)}"
    return failure("not_a_profiler", sentence, hint)


def too_late(address: Address, options: CaptureOptions) -> ProfileError:
    """The server took longer than it was given."""
    waited = options.duration_ms / 1000 + options.grace_seconds
    sentence = f"{address} sent nothing within {waited:g} s ({options.duration_ms:,} ms of them to trace)."
    return failure("deadline", sentence, "a shorter time (--duration), or a longer wait: --wait TIME")


def empty_trace(address: Address, options: CaptureOptions, is_stopped: bool) -> ProfileError:
    """The server traced nothing."""
    code, sentence = "empty_trace", f"The trace of {address} is empty"
    if options.traces_nothing:
        return failure(code, f"{sentence}: all tracer levels are 0.", "--host-tracer-level 2 --device-tracer-level 1")
    if is_stopped:
        return failure(code, f"{sentence}: it ended before anything ran.", "let it run longer")
    if options.host_tracer_level == 0:
        why = f"no device did anything in these {options.duration_ms:,} ms, and the host was not traced"
        return failure(code, f"{sentence}: {why}.", "--host-tracer-level 2, or longer than a step takes: --duration")
    why = f"the program ran nothing in these {options.duration_ms:,} ms"
    return failure(code, f"{sentence}: {why}.", "longer than a step takes (--duration), and while the program computes")


def nothing_kept(address: Address) -> ProfileError:
    """Nobody asked the server to keep its last seconds."""
    sentence = f"{address} keeps no snapshots: continuous profiling is off there."
    return failure("nothing_kept", sentence, f"tpuprof-tui capture --continuous on {address}, then take a snapshot")


def no_snapshots(address: Address) -> ProfileError:
    """The server is older than continuous profiling."""
    sentence = f"The profiler at {address} has no snapshots: it is older than continuous profiling."
    return failure("no_snapshots", sentence, "without --snapshot it traces from now on")


def not_a_profile(address: Address, path: str = "") -> ProfileError:
    """The server sent bytes that are no whole XSpace, or one without events; or wrote them to a path."""
    sentence = f"What {address} sent is not a profile: its bytes are not a complete XSpace with events."
    return failure("corrupt", sentence, f"check what it wrote: {printable(path)}" if path else "")


def too_old(address: Address, path: str | None) -> ProfileError:
    """An old server wrote the profile to a disk that this machine does not have, or was ended before it could."""
    sentence = f"The profiler at {address} is too old to send a profile"
    if path is None:
        return failure("written_there", f"{sentence}, and ended before it could write one.", "let it run to its end")
    hint = "copy that folder here, or run this where the program runs"
    return failure("written_there", f"{sentence}; it wrote it to its own disk, into {printable(path)}.", hint)


def not_local(logdir: str) -> ProfileError:
    """The logdir has a scheme, such as ``gs://bucket/x``. Exit code 2, because nothing was tried."""
    url = printable_url(logdir)
    copy = _COPIES.get(scheme_of(logdir))
    then = f"{copy} {url}" if copy else "copy DIR/plugins there"
    sentence = f"A capture is written to a local folder, which {url} is not."
    return ProfileError("usage", sentence, f"--output DIR, and afterwards: {then}", EXIT_USAGE)


def unwritable(path: str, error: OSError, other: str = "--output DIR") -> ProfileError:
    """The system refuses to write the profile; `other` is how to name another folder."""
    name = printable(path)
    hint = f"somewhere else: {other}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return failure("disk_full", f"The disk is full; the profile can't be written to {name}.", hint)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return failure("no_permission", f"You may not write to {name}.", hint)
    return failure("unwritable", f"The profile can't be written to {name}: {reason(error)}.", hint)
