"""HighwayHash, on both cores."""

from __future__ import annotations

import importlib
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.formats.xspace.core import numpy_core
from tpuprof.parsers.formats.xspace.core.types import Core
from tpuprof.parsers.formats.xspace.riegeli import hashing
from tpuprof.parsers.formats.xspace.riegeli.hashing import highway_hash

KEY = np.frombuffer(bytes(range(32)), "<u8")


@pytest.fixture(params=["numpy", "c"])
def core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Core:
    """Each core in turn."""
    name = f"tpuprof.parsers.formats.xspace.core.{request.param}_core"
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"the compiled core is not built: {error}")
    monkeypatch.setattr(hashing, "hash_packets", module.hash_packets)
    return cast(Core, module)


@pytest.mark.usefixtures("core")
def test_known_hashes() -> None:
    """The first of the test vectors that google/highwayhash publishes, and the constant headers of every file."""
    assert highway_hash([b""], KEY) == 0x907A56DE22C26E53
    assert highway_hash([b"\0"], KEY) == 0x7EAB43AAC7CDDD78
    assert highway_hash([bytes(8) + (64).to_bytes(8, "little")]) == 0x3F4A880DD170AF83
    assert highway_hash([bytes.fromhex("0000000000000000e19f13c0e9b1c37273000000000000000000000000000000")]) == (
        0xA9E187923CC2BA91
    )


@pytest.mark.parametrize("state", [np.zeros(15, np.uint64), np.zeros(16, np.uint32)])
def test_what_is_no_packet_is_refused(core: Core, state: np.ndarray) -> None:
    with pytest.raises(ValueError, match="packets"):
        core.hash_packets(bytes(32), state)
    with pytest.raises(ValueError, match="packets"):
        core.hash_packets(bytes(31), np.zeros(16, np.uint64))


@given(st.lists(st.binary(max_size=90), max_size=6))
def test_both_cores_say_the_same_however_the_bytes_come(pieces: list[bytes]) -> None:
    whole = highway_hash(pieces)
    assert whole == highway_hash([b"".join(pieces)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "hash_packets", numpy_core.hash_packets)
        assert highway_hash(pieces) == whole
    if any(pieces):
        joined = b"".join(pieces)
        assert highway_hash([joined[:-1] + bytes([joined[-1] ^ 1])]) != whole
