"""Tests of `parsers.files.remote.cache`: what is kept and removed."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.parsers.files.remote.cached import content, fetch, names, refused
from tests.support.build import present
from tests.support.servers.web import DATA, Web
from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.files.remote.cache import Store, cache_bound, url_key
from tpuprof.parsers.formats.xspace.source import open_source

# --- the bound


def test_a_copy_in_use_stays(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "1500")
    for name in ("a", "b"):
        memory.pipe(f"/x/{name}", name.encode() * 1000)
    source = open_source("memory://x/a")
    path = present(fetch("memory://x/a"))
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


def test_downloads_of_others_count(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "2000")
    download, descriptor = Store().new_file(f"{'0' * 32}-{'0' * 16}")
    os.write(descriptor, b"x" * 1800)
    os.close(descriptor)
    memory.pipe("/x/a", b"a" * 1000)
    assert fetch("memory://x/a") is None and os.path.exists(download), "another process may be fetching it"
    os.unlink(download)
    assert fetch("memory://x/a") is not None


def test_a_bound_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_bound() == 20_000_000_000
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "5GB")
    with pytest.raises(ProfileError) as caught:
        cache_bound()
    assert caught.value.exit_code == EXIT_USAGE


pytestmark = pytest.mark.usefixtures("cache")


# --- the disk


def test_a_cache_that_may_not_be_written_is_done_without(memory: Any, cache: Path) -> None:
    memory.pipe("/x/a", b"abc")
    cache.parent.mkdir(parents=True)
    cache.write_bytes(b"a file where the folder should be")
    assert content("memory://x/a") == b"abc"
    assert cache.read_bytes() == b"a file where the folder should be"


def test_too_little_room_is_seen_before(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.parsers.base.cache._free_bytes", lambda _: 1000)
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
    assert content(f"{web.url}/h.xplane.pb") == DATA
    assert len(names(cache)) == 1


# --- several at once


def test_of_several_that_fetch_the_same_at_once_one_copy_stays(web: Web, cache: Path) -> None:
    web.holds_after = 500_000
    with ThreadPoolExecutor(6) as pool:
        contents = pool.map(content, [f"{web.url}/h.xplane.pb"] * 6)
        deadline = time.monotonic() + 30
        while len(names(cache)) < 6 and time.monotonic() < deadline:
            time.sleep(0.02)
        web.hold.set()
        assert set(contents) == {DATA}
    assert len(web.downloads()) == 6 and len(names(cache)) == 1


# --- names


def test_names_hold_no_secrets(cache: Path) -> None:
    assert url_key("https://u@host/a.xplane.pb?id=1") == url_key("https://u:p@host/a.xplane.pb?id=1")
    assert all(len(url_key(url)) == 32 and url_key(url).isalnum() for url in ("gs://../../x", "memory:///\udce9"))


def test_another_path_query_machine_or_user_is_another_file() -> None:
    urls = (
        "https://host/a?id=1",
        "https://host/a?id=1&token=2",
        "https://host/b?id=1",
        "https://h/a?id=1",
        "https://u@host/a?id=1",
        "http://host/a?id=1",
    )
    assert len({url_key(url) for url in urls}) == len(urls)


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store().folder == f"{tmp_path}/.cache/tpuprof-tui/remote"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert Store().folder == "/somewhere/tpuprof-tui/remote"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_of_ours_is_no_copy(memory: Any, tmp_path: Path, kind: str) -> None:
    memory.pipe("/x/a", b"abc")
    path = present(fetch("memory://x/a"))
    victim = tmp_path / "victim"
    victim.write_bytes(b"xyz")
    os.unlink(path)
    if kind == "link":
        os.symlink(victim, path)
    else:
        os.mkfifo(path)
    assert content("memory://x/a") == b"abc"
    assert victim.read_bytes() == b"xyz"


def test_a_folder_is_no_file(memory: Any) -> None:
    memory.pipe("/x/a", b"abc")
    assert refused("memory://x").code == "not_a_file"
