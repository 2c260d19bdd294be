"""What the help says of each page: what it shows, and an example."""

from __future__ import annotations

from collections.abc import Mapping

_PAGES: Mapping[str, tuple[str, str]] = {
    "runs": ("runs of a logdir: hosts, size, age, problems", "demo --facts"),
    "trend": ("all runs as a series, and where steps changed beyond noise", "~/logs --limit 20 --md"),
    "hosts": ("hosts compared: who delays the others", "demo --step 104 --columns host,cost_ms"),
    "cores": ("cores compared: who delays the others", "demo --sort cost_ms --columns core,cost_ms"),
    "overview": ("step time, where it goes, why it is slow, the top ops", "demo --json --keys performance"),
    "findings": ("reasons why a step is slow, the largest saving first", "demo --limit 3 --json"),
    "ledger": ("the account: who owns the time of a step", "demo --by scope --sort time_ms --limit 10"),
    "model": ("MFU and HFU, blocks and layers, tokens per second", "demo --by layer --format csv"),
    "input": ("how much of a step waits for input, and for what", "demo --step 104"),
    "inference": ("latencies of requests, or of each program: percentiles", "demo --limit 5 --md"),
    "timeline": ("what ran when: tracks, and the events of an interval", "demo --from 300 --to 400 --track 'XLA Ops'"),
    "ops": (
        "HLO ops by self time: rates, what bounds them, source lines",
        "demo --filter 'bound_by=hbm >1%' --columns name,source",
    ),
    "op": ("all about one op: its runs, its rates, who feeds it", "demo fusion.397 --step 104 --json"),
    "op-profile": ("the tree of where time goes", "demo --by source"),
    "sources": ("what each line of code costs", "demo --filter file:model --limit 10"),
    "framework-ops": ("framework ops by self time, such as jit(step)/dot_general", "demo --by type"),
    "collectives": ("which of them compute does not hide, and who is late", "demo --by kind"),
    "sparse-core": ("ops of the SparseCores, and who waits for them", "demo --sort self_time_ps --limit 10"),
    "kernels": (
        "Pallas kernels: what each waits for; GPU kernels by launch",
        "demo --sort self_time_ps --limit 10 --json",
    ),
    "roofline": (
        "what bounds the program and each op: FLOPS or bandwidth",
        "demo --filter 'roofline_efficiency<60% >1%'",
    ),
    "counters": ("units and hardware events: how much of the machine is used", "demo --by unit --json"),
    "graph": ("who feeds an op, and who waits for it; HLO text", "demo fusion.397 --around 2 --json"),
    "program": ("a compiled program: how long it takes at least, and as told, before it runs", "~/xla_dump --json"),
    "memory": ("buffers of a compiled program at its peak of memory", "demo --by source --format csv"),
    "memory-profile": ("allocators: memory over time, and what held it", "demo --columns label,peak_bytes,free_bytes"),
    "live-arrays": ("a device memory profile (.prof): who holds the memory", "memory.prof --by function --limit 10"),
}
"""By page, what it shows, and what may stand behind its name."""


def about(page: str) -> str:
    """What a page shows, as in a list of pages."""
    return _PAGES[page][0]


def sentence(page: str) -> str:
    """What a page shows, as the first sentence of its help."""
    what = about(page)
    return f"{what[0].upper()}{what[1:]}."


def examples(page: str) -> list[str]:
    """Calls that show a page, without its name; the first is the shortest."""
    example = _PAGES[page][1]
    return [example.split()[0], example]
