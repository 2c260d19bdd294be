"""Dataclasses that cost a start next to nothing: used everywhere in place of the standard library's.

That one compiles up to seven methods of text for each class, which takes half a millisecond, and a report has a
hundred classes. Here it only collects the fields; `__init__` is compiled when it is first looked up, and the other
methods are plain functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Callable[[type], type]:
    """Makes a class a dataclass as the standard library's decorator does, which has more options."""
    collected = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)

    def decorated(cls: type[Any]) -> type[Any]:
        cls, init = collected(cls), _Init()
        methods: dict[str, object] = {"__init__": init, "__repr__": _repr}
        if eq:
            methods |= _comparing([each.name for each in fields(cls) if each.compare], frozen)
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if frozen and slots:
            methods |= {"__getstate__": _values, "__setstate__": _restore}
        methods = {name: method for name, method in methods.items() if name not in vars(cls)}
        init.cls = (_with_slots if slots else _with)(cls, methods)
        return init.cls

    return decorated


if TYPE_CHECKING:
    from dataclasses import dataclass

    from _typeshed import DataclassInstance
else:
    dataclass = _dataclass

__all__ = ["dataclass"]


def _with(cls: type[Any], methods: dict[str, object]) -> type[Any]:
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _with_slots(cls: type[Any], methods: dict[str, object]) -> type[Any]:
    """The class once more: slots can't be given to one that exists."""
    names = [each.name for each in fields(cls)]
    inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
    body = {name: value for name, value in vars(cls).items() if name not in {*names, "__dict__", "__weakref__"}}
    slots = tuple(name for name in names if name not in inherited)
    metaclass: Any = type(cls)
    made: type[Any] = metaclass(cls.__name__, cls.__bases__, {**body, **methods, "__slots__": slots})
    made.__qualname__ = cls.__qualname__
    return made


class _Init:
    """Stands for `__init__` of a class until somebody looks it up: then that is compiled and takes its place."""

    cls: type[Any]

    def __get__(self, instance: object, owner: type[Any]) -> object:
        compiled = _compiled_init(self.cls)
        type.__setattr__(self.cls, "__init__", compiled)
        return compiled.__get__(instance, owner)


def _compiled_init(cls: type[Any]) -> FunctionType:
    by_position, by_name, values = ["self"], ["*"], {}
    scope: dict[str, Any] = {"_fill": _fill, "_missing": MISSING}
    for each in fields(cls):
        name = argument = value = each.name
        if each.default is not MISSING:
            scope[f"_default_{name}"] = each.default
            argument, value = f"{name}=_default_{name}", name if each.init else f"_default_{name}"
        elif each.default_factory is not MISSING:
            scope[f"_make_{name}"] = each.default_factory
            argument, value = f"{name}=_missing", f"_make_{name}()"
            value += f" if {name} is _missing else {name}" if each.init else ""
        elif not each.init:
            continue  # `__post_init__` sets it
        if each.init:
            (by_name if each.kw_only else by_position).append(argument)
        values[name] = value
    scope["_names"] = tuple(values)
    arguments = by_position + (by_name if len(by_name) > 1 else [])
    lines = [f"_fill(self, _names, [{', '.join(values.values())}])"]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}): {'; '.join(lines)}", scope)  # noqa: S102 - of names of fields alone
    function: FunctionType = scope["__init__"]
    return function


def _fill(self: object, names: Iterable[str], values: Iterable[object]) -> None:
    for name, value in zip(names, values, strict=True):
        object.__setattr__(self, name, value)  # a frozen instance has no other way


def _comparing(names: list[str], frozen: bool) -> dict[str, object]:
    compared: Any = attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)

    def equal(self: object, other: object) -> bool:
        return bool(compared(self) == compared(other)) if type(other) is type(self) else NotImplemented

    return {"__eq__": equal, "__hash__": (lambda self: hash(compared(self))) if frozen else None}


def _repr(self: DataclassInstance) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _values(self: DataclassInstance) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: DataclassInstance, values: list[Any]) -> None:
    _fill(self, [each.name for each in fields(self)], values)
