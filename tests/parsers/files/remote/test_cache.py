"""Tests of `parsers.files.remote`: cache and store: what is fetched, kept, continued, and removed."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.build import tpu_plane
from tests.support.servers.web import Web, serving
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, EXIT_USAGE, Cancelled, ProfileError
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.files.remote.cache import OnBytes, open_remote
from tpuprof.parsers.files.remote.store import Store, cache_bound, url_key
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import open_source
from tpuprof.parsers.formats.xspace.trace import Trace

fsspec: Any = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'tpuprof-tui[remote]'")

DATA = bytes(range(256)) * 4000  # 1,024,000 bytes


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder; the clock of trust stands at 0, so that every use asks the server."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TPUPROF_CACHE_BYTES", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache.FRESH_SECONDS", 0)
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache._FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache._POLL_SECONDS", 0.001)
    return tmp_path / "cache" / "tpuprof-tui" / "remote"


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server with one file."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'tpuprof-tui[remote]'")
    with serving(Web({"/h.xplane.pb": DATA})) as one:
        yield one


@pytest.fixture
def memory() -> Iterator[Any]:
    """An empty file system in this process."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def fetch(
    url: str, on_bytes: OnBytes = lambda _done, _total: None, is_cancelled: Callable[[], bool] = lambda: False
) -> str | None:
    """Sees that a whole copy of `url` is in the cache; returns where, or None for one that is not kept."""
    descriptor = open_remote(url, on_bytes, is_cancelled)
    try:
        copy = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    paths = [path for path in Path(Store().folder).iterdir() if os.path.samestat(path.lstat(), copy)]
    return str(paths[0]) if paths else None


def content(url: str) -> bytes:
    source = open_source(url)
    try:
        return source.read(0, source.size)
    finally:
        source.close()


def fetched(web: Web, *ends: int) -> bytes:
    """Fetches the file, and tells the server each time that so many bytes are here."""
    wanted = list(ends)

    def count(done: int, _: int | None) -> None:
        if wanted and done >= wanted[0]:
            wanted.pop(0)
            web.taken.release()

    path = fetch(f"{web.url}/h.xplane.pb", count)
    assert path is not None
    return Path(path).read_bytes()


def names(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []


def refused(url: str) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        os.close(open_remote(url))
    assert caught.value.sentence.isprintable()
    return caught.value


def profile() -> bytes:
    space = XSpace(hostnames=[b"worker-0"])
    tpu_plane(space, 0, ops=[("fusion.1", "convolution fusion", 0, 400)], steps=[("1", 0, 500)])
    return space.SerializeToString()


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
    assert web.downloads() == [""]
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


def test_a_file_that_changes_while_it_is_fetched(web: Web) -> None:
    url = f"{web.url}/h.xplane.pb"
    web.cuts = [1000]

    def change(done: int, _: int | None) -> None:
        if done == 1000:
            web.taken.release()
            web.files["/h.xplane.pb"] = DATA[::-1]
            web.modified = "Wed, 15 Nov 2023 22:13:20 GMT"

    path = fetch(url, change)
    assert path is not None
    assert Path(path).read_bytes() == DATA[::-1], "and not the beginning of one with the end of the other"


def test_a_file_that_never_rests(web: Web) -> None:
    def change(done: int, _: int | None) -> None:
        web.etag = f'"{len(web.asked)} {done}"'

    with pytest.raises(ProfileError) as caught:
        fetch(f"{web.url}/h.xplane.pb", change)
    assert caught.value.code == "changing"


# --- connections


def test_a_lost_connection_is_continued(web: Web) -> None:
    web.cuts = [300_000, 100_000]
    assert fetched(web, 300_000, 400_000) == DATA
    assert web.downloads() == ["", "bytes=300000-", "bytes=400000-"]


def test_without_ranges_it_starts_again(web: Web) -> None:
    web.cuts, web.ranges = [300_000, 100_000], False
    assert fetched(web, 300_000, 100_000) == DATA
    assert len(web.downloads()) == 3


def test_a_connection_that_is_lost_again_and_again(web: Web, cache: Path) -> None:
    web.cuts = [1000] + [0] * 20
    with pytest.raises(ProfileError) as caught:
        fetched(web, 1000)
    assert (caught.value.code, caught.value.exit_code) == ("connection", EXIT_UNREADABLE)
    assert [name.endswith(".part") for name in names(cache)] == [True]
    web.cuts = []
    assert content(f"{web.url}/h.xplane.pb") == DATA
    assert web.downloads()[-1] == "bytes=1000-"
    assert [name.endswith(".part") for name in names(cache)] == [False]


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


def test_a_connection_that_always_ends_at_the_same_place(web: Web) -> None:
    """Progress is what goes further than ever before: without ranges each attempt gets as far as the last."""
    web.cuts, web.ranges = [1000] * 50, False
    for _ in web.cuts:
        web.taken.release()
    assert refused(f"{web.url}/h.xplane.pb").code == "connection"
    assert len(web.downloads()) < 20
    web.chunked, web.announced, web.cuts = True, {"/h.xplane.pb": -1}, []
    assert content(f"{web.url}/h.xplane.pb") == DATA


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
    assert "announced with 5,000 bytes, but more came; the rest was cut off" in error.sentence
    assert names(cache) == []


def test_a_server_that_sends_less_than_it_announced(web: Web) -> None:
    web.announced = {"/h.xplane.pb": len(DATA) + 5}
    error = refused(f"{web.url}/h.xplane.pb")
    assert error.code == "connection"
    web.ranges = False
    assert f"ends after {len(DATA):,} of the {len(DATA) + 5:,} bytes" in refused(f"{web.url}/h.xplane.pb").sentence


def test_bytes_are_kept_as_they_come(web: Web) -> None:
    """A gzipped profile that the server calls encoded is not unpacked on the way."""
    web.files["/h.xplane.pb.gz"] = gzip.compress(profile(), mtime=0)
    web.headers = {"Content-Encoding": "gzip"}
    trace = Trace.open(f"{web.url}/h.xplane.pb.gz")
    assert trace.hostnames == ("worker-0",)
    trace.source.close()


# --- cancelling


def test_cancelling_keeps_what_is_here(web: Web, cache: Path) -> None:
    done_so_far: list[int] = []
    with pytest.raises(Cancelled):
        fetch(
            f"{web.url}/h.xplane.pb",
            lambda done, _: done_so_far.append(done),
            lambda: bool(done_so_far) and done_so_far[-1] > 200_000,
        )
    assert 200_000 < done_so_far[-1] < len(DATA)
    assert [name.endswith(".part") for name in names(cache)] == [True]
    assert content(f"{web.url}/h.xplane.pb") == DATA
    assert web.downloads()[-1] == f"bytes={done_so_far[-1]}-"


def test_cancelled_before_it_begins(web: Web) -> None:
    with pytest.raises(Cancelled):
        fetch(f"{web.url}/h.xplane.pb", is_cancelled=lambda: True)
    assert web.asked == []


# --- the bound


def test_the_copies_used_longest_ago_leave_first(memory: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "3500")
    paths = []
    for number in range(3):
        memory.pipe(f"/x/{number}", b"%d" % number * 1000)
        paths.append(fetch(f"memory://x/{number}"))
        os.utime(str(paths[-1]), (1_000 + number, 1_000))
    content("memory://x/0")  # used just now
    memory.pipe("/x/new", b"n" * 1000)
    fetch("memory://x/new")
    assert [path is not None and os.path.exists(path) for path in paths] == [True, False, True]
    assert sum(path.stat().st_size for path in cache.iterdir()) <= 3500


def test_a_copy_in_use_stays(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "1500")
    for name in ("a", "b"):
        memory.pipe(f"/x/{name}", name.encode() * 1000)
    source = open_source("memory://x/a")
    path = fetch("memory://x/a")
    assert path is not None
    assert fetch("memory://x/b") is None, "there is no room to keep it"
    assert content("memory://x/b") == b"b" * 1000, "but it opens"
    assert os.path.exists(path)
    assert source.read(0, 5) == b"aaaaa"
    source.close()
    assert fetch("memory://x/b") is not None
    assert not os.path.exists(path)


def test_what_is_larger_than_the_bound_is_not_kept(web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "1000")
    assert fetch(f"{web.url}/h.xplane.pb") is None
    assert content(f"{web.url}/h.xplane.pb") == DATA
    assert names(cache) == []


def test_what_a_killed_process_left_counts_and_leaves(
    memory: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "2000")
    cache.mkdir(parents=True)
    (cache / f"{'0' * 32}-{'0' * 16}.part").write_bytes(b"x" * 1800)
    memory.pipe("/x/a", b"a" * 1000)
    assert fetch("memory://x/a") is not None
    assert len(names(cache)) == 1


def test_a_bound_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_bound() == 20_000_000_000
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "5GB")
    with pytest.raises(ProfileError) as caught:
        cache_bound()
    assert caught.value.exit_code == EXIT_USAGE


# --- the disk


def test_a_cache_that_may_not_be_written(memory: Any, cache: Path) -> None:
    memory.pipe("/x/a", b"a")
    cache.parent.mkdir(parents=True)
    cache.write_bytes(b"a file where the folder should be")
    error = refused("memory://x/a")
    assert error.code == "cache"
    assert "XDG_CACHE_HOME" in error.hint


def test_too_little_room_is_seen_before(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**6, 10**6, 1000))
    error = refused(f"{web.url}/h.xplane.pb")
    assert error.code == "disk_full"
    assert "1,024,000 bytes" in error.sentence
    assert web.downloads() == []


def test_a_disk_that_fills_up(web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    assert refused(f"{web.url}/h.xplane.pb").code == "disk_full"
    assert names(cache) == []


def test_a_damaged_copy_is_fetched_again(web: Web, cache: Path) -> None:
    content(f"{web.url}/h.xplane.pb")
    (copy,) = cache.iterdir()
    copy.write_bytes(b"short")
    os.utime(copy, (0, 0))
    assert content(f"{web.url}/h.xplane.pb") == DATA


def test_file_systems_without_locks(web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    web.cuts = [1000]
    assert fetched(web, 1000) == DATA
    assert len(names(cache)) == 1


# --- several at once


def test_threads_that_want_the_same_fetch_it_once(web: Web) -> None:
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(content, [f"{web.url}/h.xplane.pb"] * 12)) == {DATA}
    assert web.downloads() == [""]


SCRIPT = """
import hashlib, sys
from tpuprof.parsers.formats.xspace.source import open_source
source = open_source(sys.argv[1])
print(hashlib.sha256(source.read(0, source.size)).hexdigest())
"""


def test_processes_that_want_the_same_fetch_it_once(web: Web, cache: Path) -> None:
    web.holds_after = 500_000
    command = [sys.executable, "-c", SCRIPT, f"{web.url}/h.xplane.pb"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    deadline = time.monotonic() + 30
    while sum(method == "HEAD" for method, _, _ in web.asked) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    web.hold.set()
    assert len({one.communicate(timeout=60)[0] for one in both}) == 1
    assert [one.returncode for one in both] == [0, 0]
    assert web.downloads() == [""]
    assert len(names(cache)) == 1


def test_a_killed_process_leaves_a_beginning_that_is_continued(web: Web, cache: Path) -> None:
    web.holds_after = 500_000
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, f"{web.url}/h.xplane.pb"])
    deadline = time.monotonic() + 30
    while not any(path.stat().st_size >= 400_000 for path in cache.glob("*.part")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    web.hold.set()
    web.holds_after = -1
    assert content(f"{web.url}/h.xplane.pb") == DATA
    assert web.downloads()[-1].startswith("bytes=")


def test_waiting_for_another_can_be_cancelled(web: Web) -> None:
    url = f"{web.url}/h.xplane.pb"
    web.holds_after = 500_000
    started, polls = threading.Event(), iter([False] * 20)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(fetch, url, lambda *_: started.set())
        assert started.wait(30)
        with pytest.raises(Cancelled):
            fetch(url, is_cancelled=lambda: next(polls, True))
        web.hold.set()
        assert first.result() is not None


# --- names


def test_names_hold_no_secrets_and_signatures_do_not_count(cache: Path) -> None:
    plain = url_key("https://host/a.xplane.pb?id=1")
    assert plain == url_key("https://u:p@host/a.xplane.pb?id=1&X-Goog-Signature=abc&X-Amz-Date=1&sig=x")
    assert plain != url_key("https://host/a.xplane.pb?id=2")
    assert plain != url_key("https://host/b.xplane.pb?id=1")
    assert all(len(url_key(url)) == 32 and url_key(url).isalnum() for url in ("gs://../../x", "memory:///\udce9"))


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store().folder == f"{tmp_path}/.cache/tpuprof-tui/remote"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert Store().folder == "/somewhere/tpuprof-tui/remote"


def test_links_in_the_folder_are_not_followed(memory: Any, cache: Path, tmp_path: Path) -> None:
    memory.pipe("/x/a", b"abc")
    path = fetch("memory://x/a")
    assert path is not None
    victim = tmp_path / "victim"
    victim.write_bytes(b"abc")
    os.unlink(path)
    os.symlink(victim, path)
    assert refused("memory://x/a").code == "cache"
    assert Store().copies() == []
    assert victim.read_bytes() == b"abc"


def test_a_folder_is_no_file(memory: Any) -> None:
    memory.pipe("/x/a", b"abc")
    assert refused("memory://x").code == "not_a_file"
