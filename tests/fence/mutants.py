"""Changes the program in small ways, one at a time, and counts which changes a room's tests and the fence notice.

    python -m tests.fence.mutants ROOM [--count 50] [--seed 44] [--again FILE]

A mutant is one changed expression in a function: a comparison shifted, a constant off by one, a condition forced.
The tests are collected once. Each mutant gets a fork of that process, which changes the function's code in place and
runs the tests that reach the line, the fastest first and the fence last, until one fails. Which lines a test reaches is
measured once per state of the tree. `--again` takes the mutants of an earlier run's file as far as they still exist.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests/bench/.work/mutants"
ROOMS = (
    *("parsers/steps", "parsers/ops", "parsers/timeline", "parsers/hosts", "parsers/session/diff", "parsers/memory"),
    *("tui/report", "tui/terminal"),
)
MOST_SECONDS = 6
"""Of the processor, for the tests of one mutant, as far as nothing fails."""

Reach = Mapping[str, tuple[float, Mapping[str, Sequence[int]]]]
"""For each test the processor's seconds, and the lines that it reaches in each file."""

SWAPS: Mapping[type, Sequence[type]] = {
    **{ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt)},
    **{ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,)},
    **{ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,)},
    **{ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add,), ast.Div: (ast.Mult,), ast.Mod: (ast.Add,)},
    **{ast.FloorDiv: (ast.Mult,), ast.BitOr: (ast.BitAnd,), ast.BitAnd: (ast.BitOr,)},
    **{ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,)},
}
OPPOSITES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
UNCHANGED = ("annotation", "returns", "decorator_list")


@dataclass(frozen=True)
class Mutant:
    """One change of one expression.

    Attributes:
        line: the first of the statement that holds the expression; `last` is the last, of a compound one's head.
        index: where the expression stands in a walk over the file.
        nth: which of the possible changes this is.
        text: the function, the expression as it was and as it becomes: its name in another revision.
    """

    path: str
    line: int
    last: int
    index: int
    nth: int
    text: str

    def tree(self) -> ast.Module:
        """The file's syntax, changed."""
        tree = ast.parse((ROOT / self.path).read_text("utf-8"))
        old = list(ast.walk(tree))[self.index]
        new = ast.copy_location(list(changes(old))[self.nth], old)
        for node in ast.walk(tree):
            for name, value in ast.iter_fields(node):
                if value is old:
                    setattr(node, name, new)
                elif isinstance(value, list):
                    setattr(node, name, [new if each is old else each for each in value])
        return ast.fix_missing_locations(tree)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a piece of syntax."""
    match node:
        case ast.Compare(left, [op], right):
            yield from (ast.Compare(left, [other()], right) for other in SWAPS[type(op)])
        case ast.BinOp(left, op, right) if not any(is_text(side) for side in (left, right)):
            yield from (ast.BinOp(left, other(), right) for other in SWAPS.get(type(op), ()))
        case ast.BoolOp(op, values):
            yield ast.BoolOp(SWAPS[type(op)][0](), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Slice(lower, upper, step):
            yield from [ast.Slice(None, upper, step)] if lower else []
            yield from [ast.Slice(lower, None, step)] if upper else []
        case ast.If() | ast.IfExp():
            yield from (with_field(node, "test", ast.Constant(forced)) for forced in (True, False))
        case ast.comprehension(ifs=[_, *_]):
            yield with_field(node, "ifs", [])
        case ast.Call(ast.Name(name)) if name in OPPOSITES:
            yield with_field(node, "func", ast.Name(OPPOSITES[name], ast.Load()))
        case ast.Call(ast.Attribute(value, name)) if name in OPPOSITES:
            yield with_field(node, "func", ast.Attribute(value, OPPOSITES[name], ast.Load()))


def with_field(node: ast.AST, name: str, value: object) -> ast.AST:
    """A copy of a piece of syntax with another value in one field."""
    changed = copy.copy(node)
    setattr(changed, name, value)
    return changed


def is_text(node: ast.AST) -> bool:
    """Whether an operand is a text or a list as written: another operator would only raise an error."""
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return is_string or isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple))


def mutants(path: str) -> Iterator[Mutant]:
    """All that may be changed in the functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    order = {id(node): index for index, node in enumerate(ast.walk(tree))}
    seen: Counter[str] = Counter()

    def visit(node: ast.AST, names: tuple[str, ...], line: int, last: int) -> Iterator[Mutant]:
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: an assertion
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            line, last = node.body[0].lineno, node.end_lineno or 0
        elif isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            line, last = node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or 0
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = (*names, node.name)
        elif line and names:
            head = ast.unparse(node).split("\n")[0]
            for nth, new in enumerate(changes(node)):
                text = f"{'.'.join(names)}: {head} -> {ast.unparse(new).splitlines()[0]}"
                seen[text] += 1
                yield Mutant(path, line, last, order[id(node)], nth, f"{text} #{seen[text]}")
        for name, value in ast.iter_fields(node):
            if name not in UNCHANGED:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from visit(child, names, line, last)

    for top in tree.body:
        for node in top.body if isinstance(top, ast.ClassDef) else [top]:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from visit(node, (top.name,) if isinstance(top, ast.ClassDef) else (), 0, 0)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A piece of code, and all code in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_in(each)


def apply(mutant: Mutant, loaded: Sequence[FunctionType]) -> bool:
    """Changes the functions of a file that are loaded; False where none of them is another for it."""
    tree, changed = mutant.tree(), False
    codes = {(code.co_name, code.co_firstlineno): code for code in codes_in(compile(tree, mutant.path, "exec"))}
    for function in loaded:
        old, defaults = function.__code__, (function.__defaults__, function.__kwdefaults__)
        new = codes.get((old.co_name, old.co_firstlineno))
        if new and new != old and new.co_freevars == old.co_freevars:
            function.__code__ = new.replace(co_filename=old.co_filename)
            changed = True
        if mutant.text.startswith(f"{function.__qualname__}: "):
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and node.name == old.co_name and node.lineno >= old.co_firstlineno:
                    set_defaults(function, node.args)
                    break
            changed |= defaults != (function.__defaults__, function.__kwdefaults__)
    return changed


def set_defaults(function: FunctionType, arguments: ast.arguments) -> None:
    """Gives a function the defaults that are written as literals."""
    by_place = [literal(node) for node in arguments.defaults]
    by_name = {each.arg: literal(node) for each, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    pairs = zip(by_place, function.__defaults__ or (), strict=True)
    function.__defaults__ = tuple(old if new is ... else new for new, old in pairs) or None
    if function.__kwdefaults__:
        known = {name: new for name, new in by_name.items() if new is not ...}
        function.__kwdefaults__ = {**function.__kwdefaults__, **known}


def literal(node: ast.AST | None) -> Any:
    """The value of a default that is written as a literal; `...` for others."""
    with contextlib.suppress(ValueError):
        return ast.literal_eval(node) if node else ...
    return ...


def forked(work: Callable[[], object], seconds: float) -> Any:
    """What a function gives in a fork of this process; None where it takes too long, or the process dies.

    Args:
        seconds: of the processor, at most.
    """
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
            tempfile.tempdir = str(folder)
            (folder / "answer.json").write_text(json.dumps(work()), "utf-8")
        finally:
            os._exit(0)
    deadline = time.monotonic() + 10 * seconds
    while os.waitpid(process, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    try:
        return json.loads((folder / "answer.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Loop:
    """What pytest does with the tests that it collected: mutants, instead of one run."""

    def __init__(self, room: str, count: int, seed: int, again: Path | None) -> None:
        self.room, self.count, self.seed = room, count, seed
        lines = again.read_text("utf-8").splitlines() if again else ()
        self.again = [old for old in map(json.loads, lines) if old["fate"] != "same"]
        self.failed: list[str] = []
        self.cover: Coverage | None = None

    def pytest_collection(self) -> None:
        """A failure is enough: no example is made smaller, or kept."""
        usual, phases = settings.get_profile("any machine"), (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", usual, phases=phases, database=None)
        settings.load_profile("mutants")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.cover:
            self.cover.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items if "/pty/" not in item.nodeid}
        paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / self.room).rglob("*.py"))
        for path in paths:
            importlib.import_module("tpuprof." + path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        gc.unfreeze()
        loaded = defaultdict(list)
        for function in gc.get_objects():
            if isinstance(function, FunctionType) and "tpuprof" in function.__code__.co_filename:
                loaded[os.path.realpath(function.__code__.co_filename)].append(function)
        gc.freeze()
        reach, start, counts = self.reach(items), time.monotonic(), Counter[str]()
        with (KEPT / f"{self.room.replace('/', '-')}.jsonl").open("w", encoding="utf-8") as log:
            for mutant, test in self.chosen([each for path in paths for each in mutants(path)]):
                fate, by = fate_of(mutant, test, loaded[str(ROOT / mutant.path)], items, reach, self.run)
                counts[fate] += 1
                log.write(json.dumps({"fate": fate, "by": by, **asdict(mutant)}) + "\n")
                log.flush()
                if fate in ("survived", "unreached"):
                    print(f"{fate}: {mutant.path}:{mutant.line} {mutant.text}", flush=True)
                if counts.total() - counts["same"] == self.count:
                    break
        total, seconds = counts.total() - counts["same"], time.monotonic() - start
        print(f"{self.room}: {counts['caught']} of {total} caught, {dict(counts)}, {seconds / total:.1f} s each")
        return True

    def chosen(self, possible: Sequence[Mutant]) -> Iterator[tuple[Mutant, str]]:
        """Mutants in the order in which they are tried, one a place, and the test that caught them earlier."""
        named = {mutant.text: mutant for mutant in possible} | {each.path + each.text: each for each in possible}
        by_place = defaultdict(list)
        for mutant in possible:
            by_place[mutant.path, mutant.index].append(mutant)
        for old in self.again:
            again = named.get(old["path"] + old["text"]) or named.get(old["text"])
            if again and by_place.pop((again.path, again.index), None):
                yield again, old["by"]
        chance = random.Random(self.seed)
        for place in chance.sample(sorted(by_place), len(by_place)):
            yield chance.choice(by_place[place]), ""

    def run(self, items: Sequence[pytest.Item]) -> str:
        """Runs tests; the first that fails."""
        for item, following in zip_longest(items, items[1:]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return self.failed[0]
        return ""

    def reach(self, items: Mapping[str, pytest.Item]) -> Reach:
        """What each test takes and reaches in this state of the tree; those of a file share a fork."""
        state = hashlib.sha256()
        for top in ("parsers", "tui", "tests"):
            for path in sorted((ROOT / top).rglob("*.py")):
                state.update(path.read_bytes() if path != Path(__file__) else b"")
        KEPT.mkdir(parents=True, exist_ok=True)
        kept, found = KEPT / f"reach-{state.hexdigest()[:16]}.json", {}
        if kept.exists():
            found = json.loads(kept.read_text("utf-8"))
        files = defaultdict(list)
        for name, item in items.items():
            files[name.partition("::")[0]].append(item)
        for file, members in files.items():
            if file not in found:
                found[file] = forked(partial(self.measured, members), 300) or {}
                kept.write_text(json.dumps(found), "utf-8")
        return {name: each for file in files for name, each in found[file].items()}

    def measured(self, items: Sequence[pytest.Item]) -> Mapping[str, object]:
        """What tests take and reach; not those that fail."""
        cover = self.cover = Coverage(data_file=None, config_file=False, include=[f"{ROOT}/{room}/*" for room in ROOMS])
        seconds = {}
        cover.start()
        for item, following in zip_longest(items, items[1:]):
            start = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.process_time() - start
        cover.stop()
        lines: dict[str, dict[str, list[int]]] = defaultdict(dict)
        for file in cover.get_data().measured_files():
            for line, names in cover.get_data().contexts_by_lineno(file).items():
                for name in names:
                    lines[name].setdefault(Path(file).relative_to(ROOT).as_posix(), []).append(line)
        return {name: (seconds[name], lines[name]) for name in seconds if name not in self.failed}


def fate_of(
    mutant: Mutant,
    first: str,
    loaded: Sequence[FunctionType],
    items: Mapping[str, pytest.Item],
    reach: Reach,
    run: Callable[[Sequence[pytest.Item]], str],
) -> tuple[str, str]:
    """Whether a mutant is caught, and by which test.

    Args:
        first: the test that is likely to catch it.
    """
    span = range(mutant.line, mutant.last + 1)
    hits = {name for name, (_, lines) in reach.items() if any(line in span for line in lines.get(mutant.path, ()))}
    files = {name.partition("::")[0] for name in hits}
    cost = {file: min(reach[name][0] for name in hits if name.startswith(f"{file}::")) for file in files}

    def order(name: str) -> tuple[object, ...]:
        file = name.partition("::")[0]
        return name != first, file.startswith("tests/fence"), name not in hits, cost[file], file, reach[name][0]

    # What a test makes of a line may be kept for the others of its file.
    names, seconds = [], 0.0
    for name in sorted((name for name in reach if name.partition("::")[0] in files), key=order):
        if seconds < MOST_SECONDS and (name in hits or not name.startswith("tests/fence")):
            names.append(name)
            seconds += reach[name][0]

    def work() -> tuple[str, str]:
        if not apply(mutant, loaded):
            return "same", ""
        failed = run([items[name] for name in names])
        return ("caught", failed) if failed else ("survived" if names else "unreached", "")

    fate, by = forked(work, 5 + 3 * seconds) or ("caught", "its time")
    return fate, by


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser("python -m tests.fence.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--count", type=int, default=50, help="how many mutants (default: 50)")
    parser.add_argument("--seed", type=int, default=44, help="which (default: 44)")
    parser.add_argument("--again", type=Path, help="the file of an earlier run, whose mutants come first")
    args = parser.parse_args()
    options = [
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    tests = [str(ROOT / "tests" / args.room), str(ROOT / "tests/fence")]
    sys.exit(pytest.main([*options, *tests], [Loop(args.room, args.count, args.seed, args.again)]))


if __name__ == "__main__":
    main()
