"""Tests of `parsers.files.remote.folders`: URLs lead to runs by the same rules as folders do, and print no secrets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parsers.files.layouts import CONTENT, refused
from tests.support.files.riegeli import written
from tests.support.servers.web import Web
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.base.urls import masked, printable_url, scheme_of, split
from tpuprof.parsers.files.folder_search import DEFAULT_LIMITS, SearchLimits
from tpuprof.parsers.files.logdir import Logdir, open_logdir
from tpuprof.parsers.files.remote import files as remote_files
from tpuprof.parsers.files.remote.files import files_of, modified_of, size_of, trouble, version_of
from tpuprof.parsers.files.remote.folders import remote_limits
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace

fsspec: Any = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'tpuprof-tui[remote]'")

RUN = "plugins/profile/2026_11_20_18_04_33"
STAMP = 1_700_000_000.0

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def web(web: Web) -> Web:
    """A web server with nothing on it yet."""
    web.files.clear()
    return web


def hosts(found: Logdir) -> list[list[str]]:
    return [[host.host for host in run.hosts] for run in found.runs]


# --- buckets


class ClientError(Exception):
    """What S3's driver raises from: the status lies in what was answered."""

    def __init__(self) -> None:
        self.response = {"Error": {"Code": "NoSuchBucket"}, "ResponseMetadata": {"HTTPStatusCode": 404}}


def no_bucket(path: str, **_: object) -> Any:
    raise FileNotFoundError("The specified bucket does not exist") from ClientError()


def test_a_bucket_that_is_missing_is_missing(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("info", "ls"):
        monkeypatch.setattr(memory, name, no_bucket)
    error = refused("memory://nobucket/logs")
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert error.sentence == "memory://nobucket/logs does not exist." and "connection" not in error.hint


def test_of_a_folder_that_is_missing_the_nearest_that_exists_is_named(memory: Any) -> None:
    memory.pipe("/bucket/logs/train/x", b"x")
    error = refused("memory://bucket/logs/trian/plugins/profile")
    assert error.exit_code == EXIT_NOT_FOUND and "did you mean memory://bucket/logs/train?" in error.hint
    assert "the nearest folder that does is memory://bucket/logs, which holds train" in error.sentence


# --- memory://


@pytest.mark.parametrize(
    "where",
    ["", "/", "/logs", "logs", "logs/plugins", "logs/plugins/profile/", f"logs/{RUN}", "lo*/plugins/**", "logs/**/20*"],
)
def test_any_part_of_the_layout_opens(memory: Any, where: str) -> None:
    for host in ("host10", "host2"):
        memory.pipe(f"/logs/{RUN}/{host}.xplane.pb", CONTENT)
    memory.pipe("/logs/events.out.tfevents.1", b"x")
    found = open_logdir(f"memory://{where}")
    (run,) = found.runs
    assert run.name == "2026_11_20_18_04_33"
    assert [(host.host, host.size_bytes) for host in run.hosts] == [("host2", 4), ("host10", 4)]
    assert run.hosts[0].path.lstrip("/").endswith(f"/logs/{RUN}/host2.xplane.pb")
    assert run.hosts[0].modified > 0
    assert found.query == f"memory://{where}"


def test_one_file_opens_alone(memory: Any) -> None:
    for host in ("host0", "host1"):
        memory.pipe(f"/logs/{RUN}/{host}.xplane.pb", CONTENT)
    found = open_logdir(f"memory://logs/{RUN}/host1.xplane.pb")
    assert hosts(found) == [["host1"]]
    assert "left out 1 profile file beside" in found.searched[0]
    assert found.runs[0].path == f"memory://logs/{RUN}/host1.xplane.pb"


def test_a_profile_in_records_opens_from_afar(memory: Any) -> None:
    record = XSpace(hostnames=[b"host"]).SerializeToString()
    memory.pipe(f"/logs/{RUN}/host0.xplane.riegeli", written([record, record], "none"))
    memory.pipe(f"/logs/{RUN}/host0.xplane.pb", b"")
    (run,) = open_logdir("memory://logs").runs
    trace = Trace.open(run.hosts[0].path)
    assert (run.hosts[0].host, trace.hostnames, trace.problems) == ("host0", ("host",), ())
    assert "host0.xplane.riegeli beside it is read instead" in run.problems[0].sentence
    trace.close()


def test_nothing_there(memory: Any) -> None:
    memory.pipe("/experiments/logs/x.txt", b"x")
    error = refused("memory://experiments/lgos")
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert error.hint == "did you mean memory://experiments/logs?"
    error = refused("memory://experiments")
    assert "searched 2 folders; there is logs/" in error.sentence
    assert "matches nothing" in refused("memory://experiments/*.pb").sentence


def test_the_search_is_bounded(memory: Any) -> None:
    for number in range(30):
        memory.pipe(f"/many/{number:02}/x/y.txt", b"x")
    memory.pipe("/many/99/h.xplane.pb", CONTENT)
    assert "stopped after 10 folders" in refused("memory://many", SearchLimits(max_folders=10)).sentence
    assert "stopped after 20 folder entries" in refused("memory://many", SearchLimits(max_entries=20)).sentence
    assert hosts(open_logdir("memory://many", SearchLimits(max_folders=40))) == [["h"]]
    assert remote_limits(DEFAULT_LIMITS).max_folders < DEFAULT_LIMITS.max_folders
    assert remote_limits(SearchLimits(max_folders=3)).max_folders == 3


@pytest.mark.parametrize("name", ["\x1b[2J", "line\nbreak", "\u202egpj", "[red]x[b]", "a:file:", "..x", "100%"])
def test_hostile_names_are_neutralised_in_sentences(memory: Any, name: str) -> None:
    memory.pipe(f"/logs/{name}/{name}.xplane.pb", CONTENT)
    memory.pipe(f"/logs/{name}/{name}2.xplane.pb", b"")
    found = open_logdir("memory://logs")
    (run,) = found.runs
    assert (run.name, [host.host for host in run.hosts]) == (name, [name])
    printed = [text for problem in run.problems for text in (problem.subject, problem.sentence)]
    assert all(text.isprintable() for text in (*printed, *found.searched))
    assert refused(f"memory://logs/{name}/nix").sentence.isprintable()


def test_names_that_no_file_has_are_left_out(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bucket may hold them: object names are any text."""
    real = type(memory).ls
    memory.pipe("/logs/h.xplane.pb", CONTENT)

    def instead(self: Any, path: str, detail: bool = True, **more: object) -> list[dict[str, object]]:
        names = ["/logs", "/logs/", "/logs/..", "/logs/.", "/logs/a\0b.xplane.pb", f"/logs/{'x' * 5000}.xplane.pb"]
        extra: list[dict[str, object]] = [{"name": name, "size": 4, "type": "file"} for name in names]
        listed: list[dict[str, object]] = real(self, path, detail=True)
        return extra + listed

    monkeypatch.setattr(type(memory), "ls", instead)
    assert hosts(open_logdir("memory://logs")) == [["h"]]


# --- web servers


def test_of_a_web_server_single_files_open(web: Web) -> None:
    web.files["/a/host0.xplane.pb"] = CONTENT
    web.files["/a/capture"] = CONTENT
    assert hosts(open_logdir(f"{web.url}/a/host0.xplane.pb")) == [["host0"]]
    assert hosts(open_logdir(f"{web.url}/a/capture")) == [["capture"]]
    web.files["/a"] = b"<html><a href='host0.xplane.pb'>host0.xplane.pb</a></html>" * 100_000
    assert "is a web page" in refused(f"{web.url}/a/").sentence
    web.holds_after = 1 << 16  # of a large index nothing but its beginning is waited for
    assert "is a web page" in refused(f"{web.url}/a/").sentence
    web.holds_after = -1
    for where in ("", "/", "/b", "/a/*.pb"):
        assert refused(web.url + where).code == "not_found"
    assert "only single files" in refused(f"{web.url}/b").hint


def test_a_signed_address_prints_no_signature(web: Web) -> None:
    web.files["/b/h.xplane.pb"] = CONTENT
    url = web.url.replace("//", "//user:s3cret@") + "/b/h.xplane.pb?X-Goog-Signature=s1gned&x=1"
    found = open_logdir(url)
    (run,) = found.runs
    assert run.hosts[0].path == url, "what is opened is the whole address"
    told = repr((found.query, run.name, run.path, found.searched, run.problems))
    assert "s3cret" not in told
    assert "s1gned" not in told
    web.files["/b/h.xplane.pb"] = b"\x0a\x50no profile at all"
    with pytest.raises(ProfileError) as caught:
        Trace.open(url)
    assert "s3cret" not in caught.value.sentence + caught.value.hint
    assert "s1gned" not in caught.value.sentence + caught.value.hint
    assert f"{web.url}/b/h.xplane.pb?…" in caught.value.sentence


def test_a_login_in_the_address_is_sent_to_its_server(web: Web) -> None:
    web.files["/h.xplane.pb"] = CONTENT
    web.login = "Basic dXNlcjpzM2NyZXQ="
    assert hosts(open_logdir(web.url.replace("//", "//user:s3cret@") + "/h.xplane.pb")) == [["h"]]
    error = refused(f"{web.url}/h.xplane.pb")
    assert (error.code, error.exit_code) == ("no_permission", EXIT_UNREADABLE)
    assert "the server answers 401" in error.sentence
    error = refused(web.url.replace("//", "//user:wr0ng@") + "/h.xplane.pb")
    assert "wr0ng" not in error.sentence + error.hint


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://localhost/h", "gs://b/h", "//user:s3cret@localhost/x", ""])
def test_redirects_are_followed_on_the_web_alone_and_without_a_login(web: Web, to: str) -> None:
    web.redirect, web.files["/real.xplane.pb"] = to or web.url.replace("//", "//me@") + "/real.xplane.pb", CONTENT
    error = refused(f"{web.url}/h.xplane.pb")
    assert (error.code, error.exit_code) == ("refused_redirect", EXIT_UNREADABLE)
    assert "redirects to an address" in error.sentence and "s3cret" not in error.sentence
    with pytest.raises(ProfileError, match="redirects to an address"):
        Trace.open(f"{web.url}/h.xplane.pb")
    web.redirect = "/real.xplane.pb"
    (run,) = open_logdir(f"{web.url}/h.xplane.pb").runs
    assert run.hosts and not run.problems
    web.redirect = web.url.replace("127.0.0.1", "localhost") + "/real.xplane.pb"
    (run,) = open_logdir(f"{web.url}/h.xplane.pb").runs
    assert [each.sentence for each in run.problems] == [
        f"{web.url}/h.xplane.pb comes from another server, {urlsplit(web.redirect).netloc}."
    ]


def test_a_redirect_gives_up_no_encryption() -> None:
    def redirected(to: str) -> None:
        answer = Mock(
            url=Mock(scheme="https", __str__=lambda _: "https://a/h"), response=Mock(headers={"Location": to})
        )
        asyncio.run(remote_files._on_redirect(None, None, answer))

    redirected("https://b/h")
    redirected("/h")
    with pytest.raises(remote_files.RefusedRedirect, match="without encryption"):
        redirected("http://a/h")


def test_a_server_that_does_not_answer_is_named_and_given_up(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remote_files, "WORD_SECONDS", 0.05)
    monkeypatch.setattr(remote_files, "ANSWER_SECONDS", 0.2)
    web.is_silent = True
    error = refused(web.url.replace("//", "//user:s3cret@") + "/h.xplane.pb?token=s3cret")
    assert (error.code, error.exit_code) == ("connection", EXIT_UNREADABLE)
    assert "does not answer in time" in error.sentence
    assert caplog.messages == [f"{web.url} has not answered for 0.05 s; it is given up after 0.2 s."]


@pytest.mark.parametrize(("status", "code"), [(403, "no_permission"), (410, "not_found"), (503, "connection")])
def test_servers_that_refuse(web: Web, status: int, code: str) -> None:
    web.status = status
    assert refused(f"{web.url}/h.xplane.pb").code == code


def test_a_server_that_is_not_there(web: Web) -> None:
    error = refused("http://127.0.0.1:1/h.xplane.pb")
    assert (error.code, error.exit_code) == ("connection", EXIT_UNREADABLE)
    assert "connection refused" in error.sentence


def test_a_circle_of_redirects_has_a_reason(web: Web) -> None:
    web.redirect = "/round?and=round"
    assert "the server redirects in a circle" in refused(f"{web.url}/h.xplane.pb").sentence


# --- schemes


@pytest.mark.parametrize("url", ["foo://x/y", "zip://x.zip", "simplecache://x", "reference://x", "local://etc/passwd"])
def test_schemes_that_are_not_read(url: str) -> None:
    error = refused(url)
    assert (error.code, error.exit_code) == ("unsupported_scheme", EXIT_NOT_FOUND)
    assert url in error.sentence


@pytest.mark.parametrize(
    "url", ["http://", "https:///x", "s3://", "memory://a\0b", "http://\ud800/x", "http://a\nb c/x"]
)
def test_addresses_that_cannot_be(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.parsers.files.remote.files._CONNECT_SECONDS", 1)
    assert refused(url).exit_code in (EXIT_NOT_FOUND, EXIT_UNREADABLE)


def test_a_driver_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    error = refused("gs://bucket/logs")
    assert (error.code, error.exit_code) == ("driver_missing", EXIT_NOT_FOUND)
    assert error.sentence == "gs:// paths need gcsfs, which is not installed."
    assert error.hint.startswith("pip install 'tpuprof-tui[gcs]'")


def test_nothing_that_drivers_log_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """It would be printed over the screen."""
    files_of("memory://")
    code = "import logging; from tpuprof.parsers.files.remote.files import files_of; files_of('memory://x'); "
    code += (
        "[logging.getLogger(name).error('loud') for name in ('fsspec.memoryfs', 'gcsfs', 'asyncio', 'aiohttp.client')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert capfd.readouterr() == ("", "")


def test_an_unknown_login_is_told_as_one() -> None:
    class NoCredentialsError(Exception):
        """As botocore's."""

    error = trouble("s3://bucket/x", NoCredentialsError("Unable to locate credentials"))
    assert error.code == "no_permission"
    assert "aws configure" in error.hint


def test_file_urls_are_local(tmp_path: Path) -> None:
    (tmp_path / "h 1.xplane.pb").write_bytes(CONTENT)
    found = open_logdir(f"file://{tmp_path}/h%201.xplane.pb")
    assert found.runs[0].hosts[0].path == f"{tmp_path}/h 1.xplane.pb"


def test_fsspec_is_imported_for_urls_alone(tmp_path: Path) -> None:
    (tmp_path / "h.xplane.pb").write_bytes(CONTENT)
    code = f"""
import sys
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.xspace.source import open_source
open_source(open_logdir({str(tmp_path)!r}).runs[0].hosts[0].path).close()
print([name for name in ("fsspec", "aiohttp", "asyncio", "tpuprof.parsers.files.remote.files") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["a", "*", "?", "[", "]", "/", "**", ":", "//", "\n", "..", "#", "@"]), max_size=8))
def test_any_address_is_answered_with_a_logdir_or_a_sentence(memory: Any, parts: list[str]) -> None:
    memory.pipe("/a/a.xplane.pb", CONTENT)
    try:
        found = open_logdir("memory://" + "".join(parts))
    except ProfileError as error:
        assert error.exit_code in (EXIT_NOT_FOUND, EXIT_UNREADABLE)
        assert error.sentence.isprintable()
    else:
        assert hosts(found) == [["a"]]


# --- parts of URLs


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (split, "gs://bucket/a?b#c", ("gs://bucket", "/a?b#c", "")),
        (split, "https://u:p@host:1/a/b?c=/d#e", ("https://u:p@host:1", "/a/b", "?c=/d")),
        (split, "http://host", ("http://host", "", "")),
        (split, "memory:///a", ("memory://", "/a", "")),
        (printable_url, "https://u:p@host/a?sig=1", "https://host/a?…"),
        (printable_url, "https://token@host/a", "https://host/a"),
        (printable_url, "https://u:p@x@host/a", "https://host/a"),
        (printable_url, "sftp://me:p@host/a", "sftp://host/a"),
        (printable_url, "abfs://box@account.example/a", "abfs://box@account.example/a"),
        (printable_url, "gs://bucket/\x1b[2J", "gs://bucket/␛[2J"),
        (printable_url, "/local/user:x@y?z", "/local/user:x@y?z"),
        (
            masked,
            "E: https://u:p@host/a?sig=1\n  at 'http://t@host/b?x', 3\n",
            "E: https://host/a?…\n  at 'http://host/b?…', 3\n",
        ),
        (masked, "URL('gs://bucket/a?b') and <s3://k:s@bucket/x>", "URL('gs://bucket/a?b') and <s3://bucket/x>"),
        (masked, 'f"{scheme}://{place}"\n', 'f"{scheme}://{place}"\n'),
        (masked, "nothing in it?", "nothing in it?"),
        (masked, "'authorization': 'Bearer abc', next", "'authorization': 'Bearer …', next"),
        (masked, "/tmp/run:1@2/x and a?b=c&design/x=1", "/tmp/run:1@2/x and a?b=c&design/x=…"),
        (masked, f"https{'://a' * 20_000}{'?key' * 20_000}", f"https://a{'://a' * 19_999}?…"),
        (masked, "http://host/a?… is gone", "http://host/a?… is gone"),
        *((scheme_of, "GS://b", "gs"), (scheme_of, "a/b://c", ""), (scheme_of, "c:/x", ""), (scheme_of, "", "")),
        (scheme_of, "s3a://x", "s3a"),
    ],
)
def test_parts_of_urls_and_what_is_shown(read: Callable[[str], object], text: str, expected: object) -> None:
    assert read(text) == expected


def test_what_is_known_to_be_a_url_is_masked_whatever_is_in_it() -> None:
    url = "http://u:it's \"my\" word@host/a?key=it's"
    told = masked(f"Error: {url}\n({url!r})", ["--debug", "report", url])
    assert told == "Error: http://host/a?…\n('http://host/a?…')"


def test_what_drivers_tell_of_files() -> None:
    gcs = {"size": 7, "generation": "12", "etag": "CN", "updated": "2023-11-14T22:13:20.123Z", "type": "file"}
    assert (size_of(gcs), modified_of(gcs)) == (7, STAMP)
    assert version_of(gcs) != version_of({**gcs, "generation": "13"})
    assert version_of({"size": 7, "type": "file", "name": "x"}) == ""
    assert modified_of({"Last-Modified": "Tue, 14 Nov 2023 22:13:20 GMT"}) == STAMP
    times: list[object] = [STAMP, -1, 1e300, "soon", True, []]
    assert [modified_of({"mtime": value}) for value in times] == [STAMP, 0, 0, 0, 0, 0]
    sizes: list[object] = [None, -1, 2**70, "7", True, 0]
    assert [size_of({"size": value}) for value in sizes] == [None] * 5 + [0]
