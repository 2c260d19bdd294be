"""What the fence reads: profiles that our own scripts make. Each is written into a folder and gives its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.fence.reports import LOOKS, TABLES, Call, copied, reports
from tpuprof.tui.demo import demo_path

MODULES = Path(__file__).parents[1] / "demo" / "modules"


def demo(root: Path) -> Sequence[Call]:
    """Every page of the bundled profile."""
    copied(Path(demo_path()), root / "demo-run" / Path(demo_path()).name)
    return reports("demo-run")


def modules(root: Path) -> Sequence[Call]:
    """The pages of compiled modules, without a profile."""
    copied(MODULES, root / "modules")
    pages = [(page, *options) for page in ("memory", "graph") for options in (*LOOKS, *TABLES)]
    spaces = [("memory", "--module", "jit_train_step", "--device", "v6e", "--format", form) for form in ("json", "md")]
    return reports("modules", [*pages, *spaces])


PROFILES: Mapping[str, Callable[[Path], Sequence[Call]]] = {
    "demo": demo,
    "modules": modules,
}
