"""Tests of `parsers.files.remote.cache`: what is fetched, kept and cancelled."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.parsers.files.remote.cached import content, fetch, names, profile, refused
from tests.support.build import host_bytes
from tests.support.servers.web import DATA, Web
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, Cancelled, ProfileError
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.files.remote.cache import open_remote
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session

# --- fetched once


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_profile_in_memory_opens(memory: Any, gzipped: bool) -> None:
    name = f"memory://logs/h.xplane.pb{'.gz' * gzipped}"
    memory.pipe(name, gzip.compress(profile()) if gzipped else profile())
    (run,) = open_logdir("memory://logs").runs
    trace = Trace.open(run.hosts[0].path)
    assert trace.hostnames == ("worker-0",)
    assert trace.source.name == name
    trace.source.close()


def test_a_file_is_fetched_once(web: Web, cache: Path) -> None:
    url = f"{web.url}/h.xplane.pb"
    progress: list[tuple[int, int | None]] = []
    assert fetch(url, lambda done, total: progress.append((done, total))) is not None
    assert progress[-1] == (len(DATA), len(DATA))
    assert progress == sorted(progress)
    assert content(url) == DATA
    assert fetch(url, lambda *_: pytest.fail("nothing is to be fetched")) == str(cache / names(cache)[0])
    assert web.downloads() == ["/h.xplane.pb"]
    (copy,) = cache.iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_copy_that_was_compared_just_now_is_not_compared_again(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache.FRESH_SECONDS", 60)
    url = f"{web.url}/h.xplane.pb"
    content(url)
    web.asked.clear()
    assert content(url) == DATA
    assert web.asked == []
    web.files["/h.xplane.pb"] = DATA + b"more"
    open_logdir(url)  # a listing sees the change
    assert content(url) == DATA + b"more"


@pytest.mark.parametrize("field", ["etag", "modified"])
def test_a_changed_file_is_fetched_anew(web: Web, cache: Path, field: str) -> None:
    web.etag = '"1"'
    url = f"{web.url}/h.xplane.pb"
    content(url)
    web.files["/h.xplane.pb"] = DATA[::-1]
    setattr(web, field, '"2"' if field == "etag" else "Wed, 15 Nov 2023 22:13:20 GMT")
    assert content(url) == DATA[::-1]
    assert len(names(cache)) == 1, "the older copy is gone"


def test_without_any_version_nothing_is_taken_for_unchanged(web: Web) -> None:
    web.modified = ""
    url = f"{web.url}/h.xplane.pb"
    content(url)
    web.files["/h.xplane.pb"] = DATA[::-1]
    assert content(url) == DATA[::-1]


def test_a_changed_object_in_memory(memory: Any) -> None:
    memory.pipe("/x/h.xplane.pb", b"one")
    assert content("memory://x/h.xplane.pb") == b"one"
    memory.pipe("/x/h.xplane.pb", b"two")
    assert content("memory://x/h.xplane.pb") == b"two"


def test_a_file_that_changes_while_it_is_fetched(web: Web, cache: Path) -> None:
    url = f"{web.url}/h.xplane.pb"

    def change(_done: int, _total: int | None) -> None:
        web.files["/h.xplane.pb"] = DATA[::-1]
        web.etag = '"2"'

    with pytest.raises(ProfileError, match="changes faster than it can be fetched") as caught:
        fetch(url, change)
    assert caught.value.code == "changing" and names(cache) == []
    assert content(url) == DATA[::-1]


pytestmark = pytest.mark.usefixtures("cache")


# --- connections


def test_of_a_lost_connection_nothing_is_kept(web: Web, cache: Path) -> None:
    web.cuts = [300_000]
    error = refused(f"{web.url}/h.xplane.pb")
    assert (error.code, error.exit_code) == ("connection", EXIT_UNREADABLE)
    assert names(cache) == []
    assert content(f"{web.url}/h.xplane.pb") == DATA


def test_a_server_that_can_not_be_reached_is_asked_once_more(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe("/x/a", b"abc")
    answers = [ConnectionResetError, ConnectionResetError, ConnectionResetError, None]
    info = memory.info

    def asked(path: str) -> Any:
        if (error := answers.pop(0)) is not None:
            raise error
        return info(path)

    monkeypatch.setattr(memory, "info", asked)
    assert refused("memory://x/a").code == "connection" and len(answers) == 2
    answers.append(None)  # for the comparison after the download
    assert content("memory://x/a") == b"abc" and answers == []


def test_a_server_that_is_gone_leaves_the_copy(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{web.url}/h.xplane.pb"
    content(url)
    web.status = 503
    assert content(url) == DATA
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache.OFFLINE_SECONDS", 0)
    assert refused(url).code == "connection"
    web.status = 404
    assert (refused(url).code, refused(url).exit_code) == ("not_found", EXIT_NOT_FOUND)
    web.status = 403
    assert refused(url).code == "no_permission"


def test_a_file_that_comes_without_a_size(web: Web) -> None:
    web.chunked, web.announced = True, {"/h.xplane.pb": -1}
    progress: list[int | None] = []
    descriptor = open_remote(f"{web.url}/h.xplane.pb", lambda _, total: progress.append(total))
    assert os.pread(descriptor, len(DATA) + 1, 0) == DATA
    os.close(descriptor)
    assert set(progress) == {None}


def test_a_size_that_is_not_told_is_bounded(web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "100_000")
    web.chunked, web.announced = True, {"/h.xplane.pb": -1}
    error = refused(f"{web.url}/h.xplane.pb")
    assert error.code == "wrong_size"
    assert "larger than 100,000 bytes" in error.sentence
    assert names(cache) == []


def test_a_server_that_sends_more_than_it_announced(web: Web, cache: Path) -> None:
    web.announced = {"/h.xplane.pb": 5000}
    error = refused(f"{web.url}/h.xplane.pb")
    assert error.code == "wrong_size"
    assert "announced with 5,000 bytes, but more arrived; the rest was cut off" in error.sentence
    assert names(cache) == []


def test_a_server_that_sends_less_than_it_announced(web: Web) -> None:
    web.announced = {"/h.xplane.pb": len(DATA) + 5}
    assert f"ends after {len(DATA):,} of the {len(DATA) + 5:,} bytes" in refused(f"{web.url}/h.xplane.pb").sentence


def test_bytes_are_kept_as_they_come(web: Web) -> None:
    """A gzipped profile that the server calls encoded is not unpacked on the way."""
    web.files["/h.xplane.pb.gz"] = gzip.compress(profile(), mtime=0)
    web.headers = {"Content-Encoding": "gzip"}
    trace = Trace.open(f"{web.url}/h.xplane.pb.gz")
    assert trace.hostnames == ("worker-0",)
    trace.source.close()


# --- cancelling


def test_what_is_fetched_shows_while_it_comes(web: Web, cache: Path) -> None:
    """Through a page, as the app and reports see it."""
    profile = host_bytes(count=4000)
    web.files["/big.xplane.pb"] = profile
    web.holds_after = len(profile) // 2
    seen: list[Progress] = []

    def on_progress(progress: Progress) -> None:
        seen.append(progress)
        if progress.is_fetching:
            web.hold.set()

    run = open_logdir(f"{web.url}/big.xplane.pb").runs[0]
    page = Session(run, on_progress).page(OVERVIEW)
    fetched = [progress.bytes_done for progress in seen if progress.is_fetching]
    assert len(page.steps) == 4000 and fetched == sorted(fetched) and 0 < fetched[0] < fetched[-1] == len(profile)
    assert all(progress.bytes_total == len(profile) for progress in seen if progress.is_fetching)
    assert not seen[-1].is_fetching and seen[-1].events_done == 4000


def test_fetching_for_a_page_can_be_cancelled(web: Web, cache: Path) -> None:
    profile = host_bytes(count=4000)
    web.files["/big.xplane.pb"] = profile
    web.holds_after = len(profile) // 2
    is_wanted = threading.Event()
    run = open_logdir(f"{web.url}/big.xplane.pb").runs[0]

    def on_progress(progress: Progress) -> None:
        if progress.is_fetching:
            is_wanted.set()

    with pytest.raises(Cancelled):
        Session(run, on_progress, is_wanted.is_set).page(OVERVIEW)
    assert not web.hold.is_set()


def test_of_a_cancelled_download_nothing_is_kept(web: Web, cache: Path) -> None:
    """Also where the server says nothing more, as soon as it is cancelled."""
    web.holds_after = 300_000
    done_so_far: list[int] = []

    def on_bytes(done: int, _total: int | None) -> None:
        done_so_far.append(done)
        if done == 300_000 and done_so_far.count(done) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        fetch(f"{web.url}/h.xplane.pb", on_bytes)
    assert names(cache) == [] and not web.hold.is_set()


def test_a_server_that_drips_is_given_up(cache: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache.SLOW_SECONDS", 0.2)
    web.drips = True
    with pytest.raises(ProfileError, match=r"arrives too slowly: fewer than 60,000 bytes in 0.2 s\."):
        open_remote(f"{web.url}/h.xplane.pb")
    web.hold.set()
