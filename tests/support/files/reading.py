"""A cache of a test's own, and what is read of hosts' files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tpuprof.parsers.files import inflate
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.hosts import cache, reader
from tpuprof.parsers.hosts.reduction import Reduction, reduce_host


def later() -> float:
    """A minute from now: the files of a test have settled by then."""
    return time.time() + 60


def own_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A cache below a folder, in which small files count; where it keeps hosts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setattr(cache, "LEAST_BYTES", 1)
    return folder / "cache" / "tpuprof-tui" / "hosts"


def reads(monkeypatch: pytest.MonkeyPatch, told: Callable[[Reduction[Any, Any], HostFile], str]) -> list[str]:
    """What is told of each file that is read from now on, in order."""
    done: list[str] = []

    def noted(reduction: Reduction[Any, Any], file: HostFile, *rest: Any) -> object:
        done.append(told(reduction, file))
        return reduce_host(reduction, file, *rest)

    monkeypatch.setattr(reader, "reduce_host", noted)
    return done


def inflations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each piece of gzip is inflated to, from now on."""
    sizes, inflated = list[int](), inflate.inflated

    def watched(*arguments: Any) -> Iterator[bytes]:
        for piece in inflated(*arguments):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(inflate, "inflated", watched)
    return sizes
