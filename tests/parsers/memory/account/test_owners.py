"""The account of memory: whose each byte is, and that the owners add up to the need to the byte."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.advice.needs import MIB, buffer, need_of
from tests.support.imports import ROOT
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.account.need import need_of_memory
from tpuprof.parsers.memory.account.owners import account, owners_of_rows
from tpuprof.parsers.memory.model import HBM, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import space_memory

MODULES = sorted((ROOT / "tests/demo/modules").glob("*.gz")) + sorted(
    (ROOT / "tests/bench/oom_proof/data").glob("*.gz")
)


def memory_of(path: Path) -> SpaceMemory:
    hlo = HloModule(hlo_pb2.HloProto.FromString(gzip.decompress(path.read_bytes())))
    return space_memory(hlo, ModuleLabel(path.name, None, "test"), HBM, None)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_s_owners_add_up_to_its_peak(path: Path) -> None:
    memory = memory_of(path)
    made = account(need_of_memory(memory))
    assert made is not None and sum(made.owners.values()) == made.total_bytes == memory.peak_bytes
    assert made.owners.get("unknown", 0) == 0


@pytest.mark.parametrize("name", ["decoder_scan", "Adam_not_donated", "points_padded"])
def test_owners_by_row_are_those_of_the_account(name: str) -> None:
    memory = memory_of(ROOT / f"tests/bench/oom_proof/data/{name}.pb.gz")
    need = need_of_memory(memory)
    made, of_rows = account(need), owners_of_rows(memory, need)
    sizes: Counter[str] = Counter()
    for row in memory.at(memory.peak_position).tolist():
        size, padding = int(memory.live_ranges.size_bytes[row]), memory.buffers[row].padding_bytes or 0
        sizes[of_rows[row]] += size - padding
        sizes["padding"] += padding
    assert made is not None and {owner: size for owner, size in sizes.items() if size} == made.owners


def test_padding_is_an_owner() -> None:
    made = account(need_of(buffer("f32[65536,4]{1,0:T(8,128)}", "params['w']", category="parameter"), used=32 * MIB))
    assert made is not None and made.owners == {"padding": 31 * MIB, "parameters": MIB}


@given(sizes=st.lists(st.integers(0, 1 << 40), max_size=6), used=st.integers(0, 1 << 42))
def test_whatever_is_listed_the_owners_add_up(sizes: list[int], used: int) -> None:
    listed = [buffer("f32[8,128]{1,0:T(8,128)}", size=size) for size in sizes]
    made = account(need_of(*listed, used=used))
    assert made is not None and sum(made.owners.values()) == used
    assert all(size > 0 for size in made.owners.values())
