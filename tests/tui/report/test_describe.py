"""`report PAGE --describe`: what it says is what the reports hold, key by key."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.files.pprof import written
from tests.tui.cli.calls import ended
from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.pages import PAGE_NAMES

EXTRA: dict[str, tuple[str, ...]] = {"runs": ("--facts",)}
"""Options that make a page show all that it can."""

AGAIN: dict[str, tuple[str, ...]] = {
    "ops": ("--step", "104"),
    "timeline": ("--from", "600", "--to", "600.7"),
    "ledger": ("--by", "op"),
}
"""Options with which a page shows other keys, those of events instead of tracks, or of ops."""


@cache
def path_of(page: str) -> str:
    """What shows all that a page can: the demo, and a device memory profile for the page of such."""
    return "demo" if page != "live-arrays" else str(written(Path(tempfile.mkdtemp()), step=2))


@cache
def printed(*arguments: str) -> str:
    done = ended(*arguments)
    assert done.code == EXIT_OK
    return done.out


@cache
def keys_of(*arguments: str) -> frozenset[str]:
    """The keys of a report that hold no further objects; `[]` for any index, once for children however deep."""
    paths = set(paths_of(json.loads(printed("report", *arguments, "--format", "json"))))
    return frozenset(re.sub(r"(\.children\[\])+", ".children[]", path) for path in paths)


def paths_of(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value and not path.startswith("unknown"):
        for key, item in value.items():
            yield from paths_of(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if not value:
            yield f"{path}[]"
        for item in value:
            yield from paths_of(item, f"{path}[]")
    else:
        yield path


def described(page: str) -> dict[str, dict[str, Any]]:
    document = json.loads(printed("report", page, "--describe", "--format", "json"))
    assert document["schema"] == "tpuprof.describe/1" and document["page"] == page
    keys = {row["key"]: row for row in document["keys"]}
    assert len(keys) == len(document["keys"])
    return keys


def covered(key: str, keys: dict[str, dict[str, Any]]) -> bool:
    """Whether a key of a document is described, or is a null or an empty list that stands for described ones."""
    bare = key.removesuffix("[]")
    if keys.get(bare.rpartition(".")[0], {}).get("unit") == BY_NAME:
        return True
    return key in keys or bare in keys or any(known.startswith((f"{bare}.", f"{bare}[]")) for known in keys)


OF_OTHERS = "kernels[]."
"""What the keys begin with that only pages of GPUs have."""

BY_NAME = "bytes by name"
"""Unit of objects whose keys are names; they are described as a whole."""


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_every_key_of_json_is_described(page: str) -> None:
    keys = described(page)
    missing = sorted(key for key in keys_of(page, path_of(page), *EXTRA.get(page, ())) if not covered(key, keys))
    assert not missing


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_every_described_key_is_in_json(page: str) -> None:
    found = keys_of(page, path_of(page), *EXTRA.get(page, ()))
    if page in AGAIN:
        found |= keys_of(page, path_of(page), *AGAIN[page])
    stems = {key.removesuffix("[]") for key in found}
    for key, row in described(page).items():
        of_others = row["meaning"].startswith(("on GPUs", "without a TPU", "with --core")) or key.startswith(OF_OTHERS)
        if row["json"] and not of_others:  # the demo's TPUs
            # A list that is empty here, or an object that is null, holds nothing that could be looked at.
            parts = [key[: match.start()] for match in re.finditer(r"\.|\[\]", key)]
            parts += [known for known in stems if row["unit"] == BY_NAME and known.startswith(f"{key}.")]
            assert key in found or key.removesuffix("[]") in stems or any(part in stems for part in parts), key


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_the_columns_of_csv_are_described(page: str) -> None:
    headings = next(
        csv.reader(io.StringIO(printed("report", page, path_of(page), "--format", "csv", *EXTRA.get(page, ()))))
    )
    of_csv = [row["csv_column"] for row in described(page).values() if row["csv_column"]]
    assert sorted(headings) == sorted(of_csv)


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_every_key_says_what_it_means(page: str) -> None:
    for row in described(page).values():
        assert row["unit"] and row["meaning"] and not row["meaning"].endswith(".")


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_nulls_have_a_reason_that_is_described(page: str) -> None:
    document = json.loads(printed("report", page, path_of(page), *EXTRA.get(page, ()), "--format", "json"))
    keys = described(page)
    for key in document["unknown"]:
        row = keys.get(key)
        assert row is None or row["null_when"], key


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_the_text_fits_its_width_and_names_every_key(page: str) -> None:
    text = printed("report", page, "--describe", "--width", "80", "--ascii")
    assert text.isascii() and all(len(line) <= 80 for line in text.splitlines())
    for key in described(page):
        assert key[:70] in text
