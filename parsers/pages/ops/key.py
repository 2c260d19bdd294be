"""The key of the page of HLO ops, which many pages are made of: whoever asks for it imports nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.shared.key import Later, PageKey

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.ops import OpsPage

OPS: PageKey[OpsPage] = PageKey(Later("tpuprof.parsers.pages.ops.ops:ops_of_run"), is_held=True, cached_as="ops")
