"""Tests of `parsers.base.cache`: the rules by which summaries, copies and unpacked archives are kept."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tpuprof.parsers.base.cache import CacheFolder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheFolder:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return CacheFolder("things", 1000)


def names(cache: CacheFolder) -> list[str]:
    return sorted(os.listdir(cache.folder))


def put(cache: CacheFolder, name: str, size: int, used: float) -> None:
    """Puts a file there that was used at a time."""
    cache.put(name, [bytes(size)])
    os.utime(cache.place(name), (used, 5))


def folder(cache: CacheFolder, name: str, size: int, used: float) -> None:
    """Puts a folder with one file there that was used at a time."""
    with cache.new_folder(name) as begun:
        Path(begun, "file").write_bytes(bytes(size))
        cache.finish(begun, name)
    os.utime(cache.place(name), (used, used))


def test_what_is_kept_is_for_the_user_alone(cache: CacheFolder) -> None:
    cache.put("file", [b"a", b"b"])
    folder(cache, "folder", 3, 1.0)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (cache.folder, cache.place("file"), cache.place("folder"))]
    assert modes == [0o700, 0o600, 0o700]
    assert Path(cache.place("file")).read_bytes() == b"ab"
    assert names(cache) == ["file", "folder"]


def test_a_file_that_can_not_be_written_whole_is_not_there(cache: CacheFolder) -> None:
    def parts() -> Iterator[bytes]:
        yield b"some"
        raise OSError(28, "No space left on device")

    cache.put("name", [b"before"])
    with pytest.raises(OSError, match="No space"):
        cache.put("name", parts())
    assert names(cache) == ["name"] and Path(cache.place("name")).read_bytes() == b"before"


def test_only_what_should_be_there_is_opened(cache: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("file", [b"a"])
    folder(cache, "folder", 3, 1.0)
    os.symlink(cache.place("file"), cache.place("link"))
    os.symlink(cache.place("folder"), cache.place("other"))
    os.mkfifo(cache.place("pipe"))
    for name, is_folder in (("file", False), ("folder", True)):
        os.close(cache.open(name, is_folder))
        with pytest.raises(PermissionError):
            cache.open(name, not is_folder)
    for name, is_folder in (("link", False), ("other", True), ("pipe", False), ("missing", False)):
        with pytest.raises(OSError, match=name):
            cache.open(name, is_folder)
    assert [entry.name for entry in sorted(cache.entries(), key=lambda entry: entry.name)] == ["file", "folder"]
    monkeypatch.setattr(os, "getuid", lambda: os.stat(cache.folder).st_uid + 1)
    with pytest.raises(PermissionError):
        cache.open("file")


def test_files_and_folders_that_were_used_longest_ago_leave_first(cache: CacheFolder) -> None:
    put(cache, "a", 300, 10)
    folder(cache, "b", 300, 20)
    put(cache, "c", 300, 30)
    folder(cache, "d", 300, 40)
    os.close(cache.open("a"))
    assert os.stat(cache.place("a")).st_mtime == 5, "only the time of use has changed"
    assert cache.make_room()
    assert names(cache) == ["a", "c", "d"]
    assert cache.make_room(400)
    assert names(cache) == ["a", "d"]
    assert not cache.make_room(1001) and names(cache) == ["a", "d"], "nothing leaves for what does not fit anyway"


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_is_in_use_stays(cache: CacheFolder, is_folder: bool) -> None:
    (folder if is_folder else put)(cache, "a", 900, 10)
    descriptor = cache.open("a", is_folder)
    assert not cache.make_room(900) and not cache.remove("a")
    assert names(cache) == ["a"]
    os.close(descriptor)
    assert cache.make_room(900) and names(cache) == []


def test_of_several_that_make_a_folder_the_first_stays(cache: CacheFolder) -> None:
    with cache.new_folder("name") as first, cache.new_folder("name") as second, cache.new_folder("name"):
        for path in (first, second):
            Path(path, "file").write_text(path)
            cache.finish(path, "name")
    assert names(cache) == ["name"] and Path(cache.place("name"), "file").read_text() == first


def test_what_a_killed_process_left_leaves_after_a_day(cache: CacheFolder) -> None:
    path, descriptor = cache.new_file("file")
    os.close(descriptor)
    Path(cache.place("folder.0123456789abcdef.part"), "in").mkdir(parents=True)
    Path(cache.place("another.part")).touch()
    assert cache.make_room() and not cache.remove(os.path.basename(path)) and len(names(cache)) == 3
    for name in names(cache):
        os.utime(cache.place(name), (1, 1))
    assert cache.make_room() and names(cache) == ["another.part"], "what has other names stays"


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    cache = CacheFolder("things", 1000)
    with pytest.raises(OSError, match="no home"):
        cache.put("name", [b"a"])
    with pytest.raises(OSError, match="no home"):
        cache.make_room(1)
    os.close(cache.nameless())  # it lies among temporary files instead
    assert list(tmp_path.iterdir()) == []
