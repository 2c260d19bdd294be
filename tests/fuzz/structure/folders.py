"""Folders of any shape, written down as JSON: runs, links round in circles, pipes, files of every kind and none."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

_RUNS = (
    "plugins/profile/2026_01_02_03_04_05",
    "plugins/profile/b",
    "a/b/c/d/e/f/g/h/i",
    ".git/x",
    "node_modules/y",
    "",
)
_NAMES = (
    *("host0.xplane.pb", "host1.xplane.pb.gz", "host0.xplane.riegeli", "host0.trace.json.gz", "xplane.pb", "r\x1b[2J"),
    *("host0.hlo_proto.pb", "events.out.tfevents.1.host", "memory.prof", "._host0.xplane.pb", "ALL_HOSTS.op_stats.pb"),
    *("host0.overview_page.pb", "perfetto_trace.json.gz", "host2.xplane.pb", "train.log", "HOST0.xplane.pb", "a.txt"),
    *("module_0001.jit_f.hlo.pb", "module_0001.jit_f.cpu_after_optimizations.txt", "NO_MODULE.hlo_proto.pb"),
    *("a.pftrace", "a.nsys-rep", "module_0001.jit_f.hlo_proto.pb.gz", "jit_f(12345).hlo_proto.pb", "2026.hlo.pb"),
)
_KINDS = ("profile", "profile", "profile", "empty", "noise", "link", "pipe", "folder", "gone", "module", "up", "old")
_QUERIES = (
    *(
        "",
        "",
        "",
        "/plugins/profile/2026_01_02_03_04_05",
        "/plugins/profile/2026_01_02_03_04_0",
        "/*",
        "/**",
        "/[",
        "/x/y",
    ),
    *(
        "/plugins/profile/*",
        "/**/*.xplane.pb",
        "/plugins/profile/b/host0.xplane.pb",
        "/**/b/*",
        "/a/**/host?.xplane.pb",
    ),
    *("/plugins/profile/2026_01_02_03_04_05/host0.xplane.pb", "/*.txt", "/host0.hlo_proto.pb", "/pluginz/profile"),
)
_MOST = 40


def folder(rng: random.Random) -> bytes:
    """A folder's description, for `made`."""
    entries = []
    for _ in range(rng.choice((0, 1, 3, 10, 30))):
        path = "/".join(filter(None, (rng.choice(_RUNS), rng.choice(_NAMES))))
        target = "/".join(filter(None, (rng.choice(_RUNS), rng.choice((*_NAMES, "")))))
        entries.append([rng.choice(_KINDS), path, target])
    return json.dumps({"entries": entries, "query": rng.choice(_QUERIES)}).encode()


def made(folder: Path, data: bytes, contents: dict[str, bytes]) -> str:
    """Writes what a description says, and returns the path that is asked for; bytes that are none are a path.

    Args:
        contents: of files, by kind.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        described: Any = json.loads(data)
        entries, query = described["entries"][:_MOST], described["query"]
        for kind, path, target in entries:
            with contextlib.suppress(OSError):
                _put(kind, _inside(folder, path), _inside(folder, target), contents)
        return f"{folder}{query}" if isinstance(query, str) else str(folder)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        text = data[:300].decode("utf-8", "surrogateescape").replace("{", "").lstrip("-")
        return text if text.isprintable() and "://" not in text and "/" not in text else f"{folder}/{text}"


def _inside(folder: Path, path: str) -> Path:
    parts = [part[:200] for part in path.replace("\0", "").split("/") if part not in ("", ".", "..")]
    return folder.joinpath(*parts[:20])


def _put(kind: str, path: Path, target: Path, contents: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    special: dict[str, Callable[[], object]] = {
        "link": lambda: path.symlink_to(target),
        "gone": lambda: path.symlink_to(path.parent / "nowhere"),
        "up": lambda: path.symlink_to(path.parent.parent),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    if kind in special:
        special[kind]()
    elif not path.is_symlink() and not path.is_fifo():
        path.write_bytes(contents.get(kind, b""))
        if kind == "old":
            os.utime(path, (0, 0))
