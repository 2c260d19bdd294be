"""Fixtures of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.web import DATA, Web, serving


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder; the clock of trust stands at 0, so that every use asks the server."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TPUPROF_CACHE_BYTES", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache.FRESH_SECONDS", 0)
    monkeypatch.setattr("tpuprof.parsers.files.remote.cache._PAUSE_SECONDS", 0.001)
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
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]
