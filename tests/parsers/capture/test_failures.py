"""Captures that fail: each says what is wrong and what to do, with exit code 7, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.servers.profiler_server import (
    FakeProfiler,
    fails,
    free_port,
    hangs,
    is_empty,
    listener,
    profile,
    writes_it,
)
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_USAGE, ProfileError
from tpuprof.parsers.capture import client
from tpuprof.parsers.capture.client import read_answer, read_headers
from tpuprof.parsers.capture.errors import refused, unreachable
from tpuprof.parsers.capture.files import RunFolder, safe_name
from tpuprof.parsers.capture.model import (
    Address,
    CaptureOptions,
    CaptureProgress,
    CaptureStop,
    parse_address,
    parse_addresses,
    parse_option,
)
from tpuprof.parsers.capture.session import capture
from tpuprof.parsers.formats.proto.services_pb2 import ProfileResponse, ProfileToolData

SHORT = CaptureOptions(duration_ms=30)
WHERE = Address("tpu-vm", 9012)


def failed(address: str, logdir: Path, options: CaptureOptions = SHORT) -> ProfileError:
    """The error of a capture, which left nothing behind."""
    before = sorted(logdir.rglob("*"))
    with pytest.raises(ProfileError) as caught:
        capture([address], options, str(logdir / "new"))
    assert caught.value.exit_code == EXIT_CAPTURE_FAILED
    assert sorted(logdir.rglob("*")) == before
    return caught.value


def test_no_server(tmp_path: Path) -> None:
    port = free_port()
    error = failed(f"127.0.0.1:{port}", tmp_path)
    assert error.code == "no_server" and f"127.0.0.1:{port}" in error.sentence
    for line in ("jax.profiler.start_server", "xp.start_server", "tf.profiler.experimental.server.start"):
        assert f"{line}({port})" in error.hint


@pytest.mark.parametrize(
    ("greeting", "code"),
    [
        (b"", "no_server"),  # as a tunnel whose other end leads nowhere
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "not_a_profiler"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not_a_profiler"),
        (b"\x16\x03\x01\x02\x00" * 20, "not_a_profiler"),
    ],
)
def test_something_else_listens(tmp_path: Path, greeting: bytes, code: str) -> None:
    with listener(greeting) as (address, _):
        error = failed(address, tmp_path)
    assert error.code == code
    if code == "not_a_profiler":
        port = address.rpartition(":")[2]
        assert f"another port than {port}" in error.hint and f"start_server({port})" not in error.hint


@pytest.mark.parametrize(
    ("logdir", "said", "copied"),
    [
        ("gs://b/x", "gs://b/x", "gcloud storage rsync -r DIR gs://b/x"),
        ("s3://b/x", "s3://b/x", "aws s3 sync DIR s3://b/x"),
        ("https://me:secret@host/x?token=1", "https://host/x?…", "copy DIR/plugins there"),
    ],
)
def test_a_logdir_that_is_no_local_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logdir: str, said: str, copied: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeProfiler() as server, pytest.raises(ProfileError) as caught:
        capture([server.address], SHORT, logdir)
    assert caught.value.exit_code == EXIT_USAGE and not server.requests
    assert caught.value.sentence == f"A capture is written to a local folder, which {said} is not."
    assert caught.value.hint == f"--output DIR, and afterwards: {copied}"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_said(tmp_path: Path) -> None:
    with listener(None) as (address, _):
        error = failed(address, tmp_path, CaptureOptions(connect_seconds=0.2))
    assert error.code == "no_answer" and "within 0.2 s" in error.sentence


@pytest.mark.parametrize(
    ("status", "details", "code", "said"),
    [
        ("INTERNAL", "Another profiling session active.", "another_session", "Another profile is being taken"),
        ("ALREADY_EXISTS", "", "another_session", "Another profile"),
        ("UNAVAILABLE", "Another profiler session is active", "another_session", "Another profile"),
        ("RESOURCE_EXHAUSTED", "Sent message larger than max (5 vs. 4)", "too_large", "larger than max (5 vs. 4)."),
        ("INTERNAL", "Exceeded maximum protobuf size of 2GB", "too_large", "too large"),
        ("UNAUTHENTICATED", "token", "unauthenticated", "token"),
        ("PERMISSION_DENIED", "", "unauthenticated", "asks for credentials"),
        ("INTERNAL", "disk\x1b[2J on\nfire", "server_error", "(INTERNAL): disk␛[2J on fire."),
        ("UNKNOWN", "x" * 10_000, "server_error", "x" * 300 + "."),
        ("UNAVAILABLE", "", "connection_lost", "broke while it was tracing."),
        ("UNIMPLEMENTED", "", "not_a_profiler", ""),
    ],
)
def test_what_a_server_answers(tmp_path: Path, status: str, details: str, code: str, said: str) -> None:
    with FakeProfiler(fails(status, details)) as server:
        error = failed(server.address, tmp_path)
    assert error.code == code and said in error.sentence and len(error.sentence) < 500


def test_an_answer_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = dict(client._CHANNEL)
    assert bounds["grpc.max_receive_message_length"] == client.MOST_BYTES == 2**31 - 1
    monkeypatch.setattr(client, "_CHANNEL", tuple({**bounds, "grpc.max_receive_message_length": 1000}.items()))
    with FakeProfiler(data=profile(padding=2000)) as server:
        assert failed(server.address, tmp_path).code == "too_large"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (SHORT, "ran nothing in these 30 ms"),
        (CaptureOptions(30, 0, 0, 0), "all tracer levels are 0"),
        (CaptureOptions(30, 0, 1, 0), "no device did anything in these 30 ms, and the host was not traced"),
    ],
)
def test_an_empty_trace(tmp_path: Path, options: CaptureOptions, why: str) -> None:
    with FakeProfiler(is_empty) as server:
        error = failed(server.address, tmp_path, options)
    assert error.code == "empty_trace" and why in error.sentence and error.hint


def test_the_deadline(tmp_path: Path) -> None:
    with FakeProfiler(hangs) as server:
        error = failed(server.address, tmp_path, CaptureOptions(duration_ms=20, grace_seconds=0.1))
    assert error.code == "deadline" and "0.12 s" in error.sentence and "--wait" in error.hint


def test_a_server_that_dies_while_it_traces(tmp_path: Path) -> None:
    def dies(progress: CaptureProgress) -> None:
        if progress.stage == "tracing" and server.requests:
            server.__exit__(None, None, None)

    server = FakeProfiler(hangs)
    with server, pytest.raises(ProfileError) as caught:
        capture([server.address], CaptureOptions(duration_ms=600_000), str(tmp_path), dies)
    assert caught.value.code in ("connection_lost", "server_error") and server.address in caught.value.sentence


HALF = profile()[: len(profile()) // 2]
NOTHING = (b"\xff" * 50, b"not a profile", b"\n\x00" * 3, b"\x22\x04host", bytes(500), HALF, b"\n\x07\x12\x05/host")


@pytest.mark.parametrize("data", NOTHING)
def test_bytes_that_are_no_profile(tmp_path: Path, data: bytes) -> None:
    with FakeProfiler(data=data) as server:
        assert failed(server.address, tmp_path).code == "corrupt"
    assert not list(tmp_path.rglob("*.xplane.pb"))


@pytest.mark.parametrize("data", NOTHING)
def test_a_file_of_an_old_server_that_is_no_profile_stays_where_it_is(tmp_path: Path, data: bytes) -> None:
    with (
        FakeProfiler(writes_it(), data=data) as server,
        pytest.raises(ProfileError, match="is not a profile") as caught,
    ):
        capture([server.address], SHORT, str(tmp_path))
    (left,) = tmp_path.rglob("*.xplane.pb")
    assert left.read_bytes() == data and str(left) in caught.value.hint


def test_a_session_folder_that_leads_elsewhere_is_not_taken(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.xplane.pb").write_bytes(profile())
    run = RunFolder(str(tmp_path / "logdir"), "run")
    run.prepare()
    session = Path(run.parent, "session")
    session.symlink_to(elsewhere)
    assert run.take(str(session), ["host"]) is None
    assert (elsewhere / "other.xplane.pb").is_file()


def test_an_old_server_on_another_disk(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    with FakeProfiler(writes_it(tmp_path / "theirs")) as server:
        error = failed(server.address, tmp_path / "ours")
    assert error.code == "written_there"
    (written,) = [path.parent for path in (tmp_path / "theirs").rglob("*.xplane.pb")]
    assert str(written).removeprefix(str(tmp_path / "theirs")) in error.sentence


def test_an_old_server_and_a_folder_whose_name_no_message_can_hold(tmp_path: Path) -> None:
    with FakeProfiler(writes_it()) as server, pytest.raises(ProfileError, match="its name is not utf-8"):
        capture([server.address], SHORT, str(tmp_path / "\udcff"))
    assert list(tmp_path.iterdir()) == []


def test_an_old_server_that_is_ended(tmp_path: Path) -> None:
    stop = CaptureStop()

    def at_once(progress: CaptureProgress) -> None:
        if progress.stage == "tracing" and not stop.is_requested:
            stop.request()

    with FakeProfiler(writes_it()) as server, pytest.raises(ProfileError, match="ended before it could write"):
        capture([server.address], CaptureOptions(duration_ms=600_000), str(tmp_path), at_once, stop)
    assert len(server.requests) == 1


def test_all_servers_fail(tmp_path: Path) -> None:
    one, two = (FakeProfiler(fails("INTERNAL", word)) for word in ("one", "two"))
    with one, two, pytest.raises(ProfileError) as e:
        capture([one.address, two.address], SHORT, str(tmp_path))
    assert e.value.exit_code == EXIT_CAPTURE_FAILED and "None of 2 servers gave a profile." in e.value.sentence
    assert "one." in e.value.sentence and "two." in e.value.sentence


# --- writing


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "disk_full"), (errno.EACCES, "no_permission"), (errno.EIO, "unwritable")]
)
@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.mkdir"])
def test_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str, call: str) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    before = RunFolder.prepare

    def prepare(self: RunFolder) -> None:
        before(self)
        monkeypatch.setattr(call, refuse)

    monkeypatch.setattr(RunFolder, "prepare", prepare)
    with FakeProfiler() as server, pytest.raises(ProfileError) as caught:
        capture([server.address], SHORT, str(tmp_path / "new"))
    assert (caught.value.code, caught.value.exit_code) == (code, EXIT_CAPTURE_FAILED)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_traced_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with FakeProfiler() as server:
        for logdir in ("file", "file/below", "a\0b"):
            with pytest.raises(ProfileError) as caught:
                capture([server.address], SHORT, str(tmp_path / logdir))
            assert caught.value.exit_code == EXIT_CAPTURE_FAILED
        assert not server.requests
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_piece_that_does_not_come_leaves_no_file(tmp_path: Path) -> None:
    def pieces() -> NoReturn:
        raise MemoryError

    run = RunFolder(str(tmp_path / "new"), "run")
    run.prepare()
    with pytest.raises(MemoryError):
        run.write(["a"], (pieces() for _ in range(1)))
    run.tidy()
    assert list(tmp_path.iterdir()) == []


# --- what is given


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("localhost:9012", "localhost:9012"),
        ("grpc://tpu-vm.local:1", "tpu-vm.local:1"),
        ("10.0.0.2:65535", "10.0.0.2:65535"),
        ("[::1]:9012", "[::1]:9012"),
        ("[fe80::1%eth0]:9012", "[fe80::1%eth0]:9012"),
        ("unix:9012", "unix:9012"),
    ],
)
def test_addresses(text: str, shown: str) -> None:
    address = parse_address(text)
    assert str(address) == shown and address.target == f"dns:///{shown.replace('%', '%25')}"
    assert ":" not in address.file_name


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "localhost:", ":9012", "localhost:0", "localhost:65536", "localhost:9x", "localhost:９"),
        *("::1:9012", "[x]:9012", "[::1%]:9012", "[fe80::1%\x1b]:9012", "[fe80::1%\udcff]:9012", "[127.0.0.1]:9012"),
        *("http://localhost:9012", "unix:/tmp/x:1", "a b:9012", "a\x1b[2J:9012", "-a:9012", "h:+9012", "h\udcff:9012"),
    ],
)
def test_texts_that_are_no_addresses(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_address(text)
    assert (caught.value.code, caught.value.exit_code) == ("bad_address", EXIT_CAPTURE_FAILED)
    assert "\x1b" not in caught.value.sentence


def test_many_addresses() -> None:
    assert [str(address) for address in parse_addresses(["a:1, b:2", "a:1", "c:3,"])] == ["a:1", "b:2", "c:3"]
    with pytest.raises(ProfileError, match="513 addresses"):
        parse_addresses([f"h{number}:1" for number in range(513)])
    with pytest.raises(ProfileError, match="No address is given"):
        parse_addresses([",", " "])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=true", True),
        ("a=False", False),
        ("a=12", 12),
        ("a=-9223372036854775808", -(1 << 63)),
        ("a=9223372036854775808", "9223372036854775808"),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a:string=12", "12"),
        ("a:string=true", "true"),
        ("a:int=7", 7),
        ("a:bool=true", True),
    ],
)
def test_advanced_options(text: str, value: object) -> None:
    name, found = parse_option(text)
    assert name == "a" and found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "text", ["a", "=1", "a:float=1", "a:int=x", "a:bool=1", "a b=1", "a=\x1b", "a=" + "x" * 20_000]
)
def test_texts_that_are_no_options(text: str) -> None:
    with pytest.raises(ValueError):
        parse_option(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"duration_ms": 0}, "A duration is 1 to 600,000 ms; this is 0."),
        ({"duration_ms": 9_999_999}, "A duration is 1 to 600,000 ms; this is 9999999."),
        ({"host_tracer_level": -1}, "A host tracer level is 0 to 9; this is -1."),
    ],
)
def test_options_out_of_range(options: dict[str, int], said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        CaptureOptions(**options)  # type: ignore[arg-type]
    assert (caught.value.exit_code, caught.value.sentence) == (EXIT_USAGE, said)


def test_sentences_of_servers_that_can_not_be_had_here() -> None:
    lookup = "errors resolving tpu-vm:9012: [field:hostname lookup error:address lookup failed: Domain name not found]"
    assert unreachable(WHERE, "UNAVAILABLE", lookup, 10).code == "unknown_host"
    assert unreachable(WHERE, "DEADLINE_EXCEEDED", "", 10).code == "no_answer"
    assert unreachable(WHERE, "UNAUTHENTICATED", "", 10).code == "unauthenticated"
    assert refused(WHERE, "INTERNAL", "a profiler session is already active").code == "another_session"
    assert refused(WHERE, "INTERNAL", "the profiler failed").code == "server_error"


# --- what comes back


@given(st.text(max_size=300))
def test_names_are_safe(text: str) -> None:
    name = safe_name(text)
    assert name.isascii() and len(name) <= 100 and "/" not in name and not name.startswith((".", "-"))
    assert safe_name(name) == name


@given(st.binary(max_size=300))
def test_no_answer_breaks_the_reader(response: bytes) -> None:
    answer = read_answer(response)
    assert answer is None or len(answer.profile) <= len(response)
    if answer is not None and answer.profile:
        assert bytes(answer.profile) in response
    read_headers(response)


@given(st.binary(min_size=1, max_size=50), st.booleans(), st.binary(max_size=60))
def test_answers(data: bytes, is_empty: bool, other: bytes) -> None:
    tools = [ProfileToolData(name=b"overview_page.pb", data=other)]
    response = ProfileResponse(xspace=data, empty_trace=is_empty, tool_data=tools).SerializeToString()
    answer = read_answer(response)
    assert answer is not None and bytes(answer.profile) == data and answer.is_empty == is_empty
    assert read_answer(response[:-1]) is None
