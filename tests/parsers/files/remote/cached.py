"""A cache of remote files over a made web server, for tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.build import tpu_plane
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.remote.cache import OnBytes, Store, open_remote
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import open_source

fsspec: Any = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'tpuprof-tui[remote]'")


def fetch(url: str, on_bytes: OnBytes = lambda _done, _total: None) -> str | None:
    """Sees that a whole copy of `url` is in the cache; returns where, or None for one that is not kept."""
    descriptor = open_remote(url, on_bytes)
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
