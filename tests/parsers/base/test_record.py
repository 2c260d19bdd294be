"""Records are what the standard library's dataclasses are: each class is made by both, and both answer alike."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, fields, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from tpuprof.parsers.base import record as ours
from tpuprof.parsers.base.record import dataclass, field

T = TypeVar("T")


def classes(make: Callable[..., Any], field: Any) -> dict[str, type[Any]]:
    """A class of each kind that the program has, made by one of the two."""

    @make(frozen=True, slots=True)
    class Point:
        """A doc."""

        x: int
        y: float = 0.5
        LIMIT: ClassVar[int] = 7

        @property
        def double(self) -> int:
            return 2 * self.x

    @make(frozen=True, slots=True)
    class Deeper(Point):
        z: tuple[int, ...] = ()
        y: float = 0.25

    class Undecorated(Deeper):
        pass

    @make(frozen=True, slots=True, kw_only=True)
    class Named:
        x: int
        y: list[int] = field(default_factory=list)

    @make(frozen=True, slots=True)
    class Mixed:
        y: int = field(default=3, kw_only=True)
        x: int
        hidden: int = field(default=4, compare=False, repr=False)

    @make(frozen=True)
    class Cached(Generic[T]):
        x: T
        kept: dict[int, T] = field(default_factory=dict, init=False, repr=False, compare=False)
        twice: tuple[T, T] = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", (self.x, self.x))

    @make(slots=True)
    class Changing:
        x: int
        fixed: int = field(default=9, init=False)

    @make(frozen=True, slots=True, eq=False)
    class Itself:
        x: int

    @make()
    class Loose:
        x: int = 1

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

        def __repr__(self) -> str:
            return "mine"

    @make(frozen=True, slots=True)
    class Empty:
        pass

    made = (Point, Deeper, Undecorated, Named, Mixed, Cached, Changing, Itself, Loose, Empty)
    return {cls.__name__: cls for cls in made}


OURS, THEIRS = classes(dataclass, field), classes(dataclasses.dataclass, dataclasses.field)


def answer(question: Callable[[], Any]) -> Any:
    """What comes back, or which error does."""
    try:
        return question()
    except (TypeError, AttributeError, ValueError, IndexError) as error:  # FrozenInstanceError is an AttributeError
        return type(error)


def own_slots(cls: type[Any]) -> list[str] | None:
    """The slots that a class adds to those of its bases, which Python 3.10 repeats; None for a class without."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    slots = vars(cls).get("__slots__")
    return None if slots is None else [name for name in slots if name not in inherited]


def answers(cls: type[Any]) -> list[object]:
    """All that can be asked of a class and of its instances."""
    one, again, other = (answer(lambda x=x: cls(x=x)) for x in (5, 5, 6))  # type: ignore[misc]
    if one is TypeError:
        one = again = other = cls()
    signature = inspect.signature(cls).parameters.values()
    return [
        [(each.name, each.kind, each.default is inspect.Parameter.empty) for each in signature],
        [(each.name, each.type, each.init, each.kw_only, each.compare) for each in fields(cls)],
        (cls.__qualname__, cls.__module__, cls.__match_args__, own_slots(cls)),
        *(answer(lambda many=many: astuple(cls(*range(many)))) for many in range(5)),  # type: ignore[misc]
        answer(lambda: cls(x=1, nothing=2)),
        answer(lambda: asdict(cls(x=1, y=[2]))),
        (repr(one), str(other), asdict(one), hasattr(one, "__dict__"), answer(lambda: one.double)),
        (one == again, one == other, one != again, one == one, one == "text", one in {"text": 1}.values()),
        answer(lambda: hash(one) == hash(again)),
        answer(lambda: len({one, again, other})),
        answer(lambda: setattr(one, fields(one)[0].name, 8)),
        answer(lambda: delattr(one, fields(one)[0].name)),
        answer(lambda: asdict(replace(other, x=7))),
        answer(lambda: replace(other, nothing=7)),
        answer(lambda: replace(other, kept={})),
        answer(lambda: asdict(copy.copy(other))),
        answer(lambda: asdict(copy.deepcopy(other))),
    ]


@pytest.mark.parametrize("name", OURS)
def test_a_record_answers_as_a_dataclass_does(name: str) -> None:
    assert answers(OURS[name]) == answers(THEIRS[name])
    record: Any = OURS[name]() if name in ("Loose", "Empty") else OURS[name](x=4)
    assert all(map(ours.is_dataclass, (record, OURS[name]))) and not ours.is_dataclass(4)
    assert [each.name for each in ours.fields(record)] == [each.name for each in fields(record)]
    assert ours.asdict(record) == asdict(record)
    assert asdict(ours.replace(record)) == asdict(record) and type(ours.replace(record)) is type(record)
    assert answer(lambda: ours.replace(record, x=7).x) == answer(lambda: replace(record, x=7).x)


def test_the_same_classes_are_equal_and_no_others() -> None:
    one, deeper = OURS["Point"](x=1), OURS["Deeper"](x=1)
    assert one == OURS["Point"](1, 0.5)
    assert one != deeper
    assert one != OURS["Undecorated"](x=1)
    assert one != THEIRS["Point"](x=1)


def test_what_is_frozen_stays() -> None:
    point = OURS["Point"](3)
    for change in (partial(setattr, point, "x", 4), partial(delattr, point, "x")):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
            change()
    assert point.x == 3


def test_each_instance_gets_a_default_of_its_own() -> None:
    first, second = OURS["Named"](x=1), OURS["Named"](x=1)
    assert first.y == [] and first.y is not second.y


@dataclass(frozen=True, slots=True)
class Base:
    """Known by name, as `pickle` wants it."""

    x: int
    y: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Base):
    """With a field that `__init__` does not take by position."""

    z: str


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("record", [Base(1), Base(2, {"a": 3}), Derived(4, {"b": 5}, z="six")])
def test_a_record_crosses_processes(record: Base, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(record, protocol))
    assert again == record and type(again) is type(record)


def test_init_is_compiled_when_it_is_needed() -> None:
    cls = classes(dataclass, field)["Deeper"]
    standing_in = vars(cls)["__init__"]
    assert not inspect.isfunction(standing_in)
    one = cls(1, z=(2,))
    compiled = vars(cls)["__init__"]
    assert inspect.isfunction(compiled)
    assert one == cls(1, 0.25, (2,))
    assert vars(cls)["__init__"] is compiled
    late = cls(0)
    standing_in.__get__(late, cls)(1, z=(2,))  # a thread that looked it up before another one had compiled it
    assert late == one


def test_a_record_without_init_of_its_own_takes_that_of_its_base() -> None:
    cls = classes(dataclass, field)["Undecorated"]
    assert asdict(cls(1, 2.0, (3,))) == {"x": 1, "y": 2.0, "z": (3,)}
    assert "__init__" not in vars(cls)
