"""Asks running programs for a profile and writes what they send as a new run.

JAX, PyTorch/XLA and TensorFlow programs can start a profiler server, a gRPC service without encryption and password.
The capture connects once to each address given, and nowhere else; it does not listen itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from tpuprof.parsers.base.errors import Cancelled, Problem, ProfileError, one_part
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.urls import scheme_of
from tpuprof.parsers.capture import client, errors, model
from tpuprof.parsers.capture.files import RunFolder, run_name, safe_name
from tpuprof.parsers.capture.model import (
    Address,
    CaptureOptions,
    CaptureProgress,
    CaptureResult,
    CaptureStop,
    WrittenFile,
)

TICK_SECONDS = 0.1
_TERMINATE_SECONDS = 5.0
_LAST_WORD_SECONDS = 1.0
_WRITTEN_AT_ONCE = 4 << 20


def capture(
    addresses: Sequence[str],
    options: CaptureOptions,
    logdir: str,
    on_progress: model.OnProgress = lambda _: None,
    stop: CaptureStop | None = None,
) -> CaptureResult:
    """Traces all servers at the same time and writes a run with a file for each.

    The tracing starts when every server has been reached or has failed. The result names servers that fail; they do not
    delay the others.

    Args:
        addresses: ``host:port`` each, as `parse_addresses` takes them.
        options: how to trace.
        logdir: the run lands at ``LOGDIR/plugins/profile/YYYY_MM_DD_HH_MM_SS``.
        on_progress: hears of every stage of every server, and ten times a second how much is left.
        stop: ends the capture early.

    Raises:
        ProfileError: no server gave a profile, an address is wrong, or the folder cannot be written (exit code 7); the
            logdir is a URL (exit code 2).
        Cancelled: the user gave up before a profile came, or stopped before a server traced.
    """
    if scheme_of(logdir):
        raise errors.not_local(logdir)
    servers, stop = model.parse_addresses(addresses), stop or CaptureStop()
    clock = time.monotonic()
    run = RunFolder(logdir, run_name(time.time()))
    try:
        run.prepare()
        hosts = _capture_all(servers, options, run, on_progress, stop)
    finally:
        run.tidy()
    if run.path is None or all(host.file is None for host in hosts):
        if stop.is_given_up or all(host.problem is not None and host.problem.code == "cancelled" for host in hosts):
            raise Cancelled
        raise _nothing_came(hosts)
    return CaptureResult(run.path, hosts, time.monotonic() - clock)


def _capture_all(
    servers: Sequence[Address], options: CaptureOptions, run: RunFolder, tell: model.OnProgress, stop: CaptureStop
) -> tuple[model.HostCapture, ...]:
    """Runs a thread for each server; the threads mostly wait."""
    names = [server.host.casefold() for server in servers]
    lock, jobs = threading.Lock(), list[_Job]()

    def tell_alone(progress: CaptureProgress) -> None:
        with lock:
            tell(progress)

    for server, name in zip(servers, names, strict=True):
        jobs.append(_Job(server, options, run, tell_alone, stop, jobs, names.count(name) > 1))
    with ThreadPoolExecutor(len(jobs), thread_name_prefix="capture") as pool:
        try:
            futures = [pool.submit(job.run) for job in jobs]
            # Not without end: a signal that comes just before a thread begins to wait does not wake it.
            while wait(futures, TICK_SECONDS).not_done:
                pass
            return tuple(future.result() for future in futures)
        except BaseException:  # ctrl+C in a program that handles it itself
            stop.give_up()
            raise


def _nothing_came(hosts: Sequence[model.HostCapture]) -> ProfileError:
    """The error of the only server, or one error for all servers."""
    problems = [host.problem for host in hosts if host.problem is not None]
    first = problems[0]
    if len(problems) == 1:
        return errors.failure(first.code, first.sentence, first.hint)
    sentences = list(dict.fromkeys(problem.sentence for problem in problems))
    shown = " ".join(sentences[:4]) + (f" And {len(sentences) - 4} more." if len(sentences) > 4 else "")
    return errors.failure(first.code, f"None of {counted(len(hosts), 'server')} gave a profile. {shown}", first.hint)


@dataclass(slots=True, eq=False)
class _Job:
    """One server's capture, from the first call to the file.

    Attributes:
        jobs: those of all servers, which begin to trace together.
        is_settled: set when the server was reached, or the job has failed.
        is_stopped: the tracing ended early.
    """

    address: Address
    options: CaptureOptions
    folder: RunFolder
    tell: model.OnProgress
    stop: CaptureStop
    jobs: list[_Job]
    shares_name: bool
    is_settled: threading.Event = field(default_factory=threading.Event)
    seconds: float | None = None
    is_stopped: bool = False

    def run(self) -> model.HostCapture:
        try:
            with one_part(f"capture from {self.address}"):
                return self._capture()
        except ProfileError as error:
            problem = Problem(error.code, str(self.address), error.sentence, error.hint)
        except Cancelled:
            problem = Problem("cancelled", str(self.address), f"{self.address} was abandoned.")
        self._say("failed", sentence=problem.sentence)
        return model.HostCapture(str(self.address), None, self.seconds, problem)

    def _capture(self) -> model.HostCapture:
        with contextlib.ExitStack() as opened:
            try:
                server = opened.enter_context(contextlib.closing(client.Server(self.address)))
                self._reach(server)
            finally:
                self.is_settled.set()
            self._wait_for_start()
            return self._trace(server)

    def _reach(self, server: client.Server) -> None:
        self._say("connecting")
        seconds = self.options.connect_seconds
        call = server.ping(seconds)
        while not call.wait(TICK_SECONDS):
            self.stop.check()
        status = call.status()
        if status.name not in ("UNIMPLEMENTED", "OK"):
            raise errors.unreachable(self.address, status.name, status.details, seconds)

    def _wait_for_start(self) -> None:
        for job in self.jobs:
            while not job.is_settled.wait(TICK_SECONDS):
                self._say("waiting")
                self.stop.check()
        end = time.monotonic() + self.options.delay_ms / 1000
        while (left := end - time.monotonic()) > 0:
            self._say("waiting", left_ms=round(1000 * left))
            self.stop.check()
            time.sleep(min(left, TICK_SECONDS))
        self.stop.check()

    def _trace(self, server: client.Server) -> model.HostCapture:
        if self.options.is_snapshot:
            return self._write(self._snapshot(server).profile)
        answer = self._ask(server, self._new_session(), "")
        if answer.profile:
            return self._write(answer.profile)
        if self.stop.is_requested:
            raise errors.too_old(self.address, None)
        return self._trace_old(server)

    def _trace_old(self, server: client.Server) -> model.HostCapture:
        """Asks an old server, which sends no profile, to write one; that helps where both share a disk."""
        self._say("waiting", sentence=f"{self.address} is an old server: tracing again so that it writes a file itself")
        session = self._new_session()
        try:
            self.folder.parent.encode()
        except UnicodeEncodeError as error:  # a path in another encoding, which no message can hold
            reason = OSError(errno.EILSEQ, "its name is not UTF-8, and the server is too old to send a profile")
            raise errors.unwritable(self.folder.parent, reason) from error
        answer = self._ask(server, session, self.folder.parent)
        if answer.profile:
            return self._write(answer.profile)
        folder = os.path.join(self.folder.parent, session)
        self._say("writing")
        taken = self.folder.take(folder, self._names(""), self._looked_at)
        if taken is None:
            raise errors.too_old(self.address, folder)
        return self._finish(taken, ("was traced twice: its server is old and writes profiles itself",))

    def _ask(self, server: client.Server, session: str, repository: str) -> client.Answer:
        options = self.options
        request = client.profile_request(options, self.address.file_name, session, repository)
        began = time.monotonic()
        call = server.profile(request, options.duration_ms / 1000 + options.grace_seconds)
        self._follow(server, call, session, began)
        self.seconds = time.monotonic() - began
        return self._answer(call)

    def _snapshot(self, server: client.Server) -> client.Answer:
        began = time.monotonic()
        call = server.snapshot(self._new_session(), self.options.grace_seconds)
        self._say("receiving")
        while not call.wait(TICK_SECONDS):
            if self.stop.is_requested:
                call.cancel()
                raise Cancelled
        self.seconds = time.monotonic() - began
        status = call.status()
        if status.name in ("NOT_FOUND", "FAILED_PRECONDITION"):
            raise errors.nothing_kept(self.address)
        if status.name == "UNIMPLEMENTED":
            raise errors.no_snapshots(self.address)
        return self._answer(call)

    def _answer(self, call: client.RpcCall) -> client.Answer:
        status = call.status()
        if status.name == "DEADLINE_EXCEEDED":
            raise errors.too_late(self.address, self.options)
        if status.name != "OK":
            raise errors.refused(self.address, status.name, status.details)
        answer = client.read_answer(call.response())
        if answer is None:
            raise errors.not_a_profile(self.address)
        if answer.is_empty:
            raise errors.empty_trace(self.address, self.options, self.stop.is_requested)
        return answer

    def _follow(self, server: client.Server, call: client.RpcCall, session: str, began: float) -> None:
        """Reports progress until the call has ended; asks the server to stop where it should end early."""
        ending: client.RpcCall | None = None
        while True:
            left_ms = max(0, round(self.options.duration_ms - 1000 * (time.monotonic() - began)))
            stage: model.CaptureStage = "stopping" if ending else "tracing" if left_ms else "receiving"
            self._say(stage, left_ms=left_ms if stage == "tracing" else None)
            if call.wait(min(TICK_SECONDS, left_ms / 1000) if left_ms else TICK_SECONDS):
                return
            if self.stop.is_requested and ending is None:
                ending = server.terminate(session, _TERMINATE_SECONDS)
                self.is_stopped = left_ms > 0
            if self.stop.is_given_up and ending is not None:
                ending.wait(_LAST_WORD_SECONDS)
                call.cancel()
                raise Cancelled

    def _write(self, profile: memoryview) -> model.HostCapture:
        look = self._looked_at(profile)
        self._say("writing", size_bytes=len(profile))
        pieces = (profile[offset : offset + _WRITTEN_AT_ONCE] for offset in range(0, len(profile), _WRITTEN_AT_ONCE))
        return self._finish(self.folder.write(self._names(look.hostname), pieces), look.notes)

    def _looked_at(self, profile: memoryview | str) -> client.ProfileHeaders:
        """What the profile says of itself; refuses what holds nothing, before anybody calls it one."""
        look = client.read_headers(profile)
        if look is None:
            raise errors.not_a_profile(self.address, profile if isinstance(profile, str) else "")
        return look

    def _finish(self, file: WrittenFile, notes: tuple[str, ...]) -> model.HostCapture:
        self._say("written", size_bytes=file.size_bytes)
        return model.HostCapture(str(self.address), file, self.seconds, None, notes, self.is_stopped)

    def _names(self, hostname: str) -> list[str]:
        """Names for the host's file, the first choice first; ports distinguish the servers of one machine."""
        plain, named = self.address.file_name, safe_name(hostname)
        if not named:
            return [plain]
        apart = f"{named[:80]}_{self.address.port}"
        return [apart, plain] if self.shares_name else [named, apart, plain]

    def _new_session(self) -> str:
        """Makes a new session id: a server remembers the ids it ended, and would end another session of that id."""
        return f"{self.folder.name}_{secrets.token_hex(6)}"

    def _say(
        self, stage: model.CaptureStage, left_ms: int | None = None, size_bytes: int | None = None, sentence: str = ""
    ) -> None:
        duration = self.options.duration_ms
        self.tell(CaptureProgress(str(self.address), stage, left_ms, duration, size_bytes, sentence))


# --- continuous profiling: servers that keep their last seconds, so that a snapshot shows what was before a slowdown
#
# While it is on, a server takes no other capture, the program's own traces fail, and the tracing costs what it costs. A
# snapshot (`CaptureOptions.is_snapshot`) brings what was kept since the one before it.


def switch(addresses: Sequence[str], is_on: bool, options: CaptureOptions) -> list[tuple[Address, ProfileError | None]]:
    """Turns continuous profiling on or off at all servers at the same time.

    Args:
        addresses: as `parse_addresses` takes them.
        options: with which tracers, once it is on; and how long a server may take to answer.

    Returns:
        Each server, and why it did not do so; None where it did, or where it was so before.

    Raises:
        ProfileError: `bad_address`, or `no_grpc`.
    """
    seconds = options.connect_seconds
    with contextlib.ExitStack() as opened:
        calls: list[tuple[Address, client.RpcCall]] = []
        for address in model.parse_addresses(addresses):
            server = opened.enter_context(contextlib.closing(client.Server(address)))
            request = client.profile_request(options, address.file_name, f"continuous_{secrets.token_hex(6)}")
            calls.append(
                (address, server.start_continuous(request, seconds) if is_on else server.stop_continuous(seconds))
            )
        return [(address, _switch_problem(call, address, seconds, is_on)) for address, call in calls]


def _switch_problem(call: client.RpcCall, address: Address, seconds: float, is_on: bool) -> ProfileError | None:
    if not call.wait(seconds + 1):
        call.cancel()
        return errors.unreachable(address, "DEADLINE_EXCEEDED", "", seconds)
    status = call.status()
    if status.name in ("OK", "ALREADY_EXISTS" if is_on else "NOT_FOUND"):
        return None
    if status.name in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return errors.unreachable(address, status.name, status.details, seconds)
    if status.name == "UNIMPLEMENTED":
        return errors.no_snapshots(address)
    return errors.refused(address, status.name, status.details)
