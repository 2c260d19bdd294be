"""Dataclasses that cost a start next to nothing: used everywhere in place of the standard library's.

That one makes a `Field` for each field and compiles up to seven methods of text for each class, which takes half a
millisecond, and a report has two hundred classes. Here a class keeps the names and defaults of its fields. Its
`Field`s are made when the standard library asks for them, its `__init__` when it is first called; the other methods are
plain functions, and so are `replace`, `fields` and `asdict` (of one level).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn


class _Missing:
    """What stands for a default that a field does not have, and for an argument that a call did not give."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<factory>"


_MISSING = _Missing()
_set = object.__setattr__  # a frozen instance has no other way


class _Member:
    """A field of a class: its name, its default, and what it takes part in."""

    __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "name", "repr")

    def __init__(self, name: str, default: Any, kw_only: bool = False) -> None:  # noqa: ANN401 - of any type
        self.name, self.default, self.default_factory = name, default, None
        self.init = self.repr = self.compare = True
        self.kw_only = kw_only

    def named(self, name: str, kw_only: bool) -> _Member:
        """What `field` returned, in a class."""
        self.name, self.kw_only = name, self.kw_only or kw_only
        return self

    @property
    def has_default(self) -> bool:
        return self.default_factory is not None or self.default is not _MISSING

    @property
    def described(self) -> Any:  # noqa: ANN401 - a `Field` of the standard library
        given = {name: getattr(self, name) for name in ("default", "default_factory")}
        given = {name: value for name, value in given.items() if value is not None and value is not _MISSING}
        return _standard().field(init=self.init, repr=self.repr, compare=self.compare, kw_only=self.kw_only, **given)


def _standard() -> Any:  # noqa: ANN401 - a module
    """The standard library's dataclasses."""
    import dataclasses  # noqa: PLC0415 - a sixth of the time of `--version`

    return dataclasses


def _field(**given: object) -> _Member:
    made = _Member("", given.pop("default", _MISSING))
    for name, value in given.items():
        setattr(made, name, value)
    return made


def _all_fields(of: Any) -> tuple[_Member, ...]:  # noqa: ANN401 - a record or its class
    return tuple(_members(of if isinstance(of, type) else type(of)))


def _replaced(record: Any, /, **changes: object) -> Any:  # noqa: ANN401 - of any class
    for name, default in type(record).__written__.items():
        if name not in changes and (type(default) is not _Member or default.init):
            changes[name] = getattr(record, name)
    return type(record)(**changes)


def asdict(record: Any) -> dict[str, Any]:  # noqa: ANN401 - of any class
    """The values of a record by the names of its fields; records in it stay as they are."""
    return {name: getattr(record, name) for name in type(record).__written__}


def _is_dataclass(of: object) -> bool:
    return hasattr(of, "__written__")


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Callable[[type], type]:
    """Makes a class a dataclass as the standard library's decorator does, which has more options."""

    def decorated(cls: type[Any]) -> type[Any]:
        body, annotations = vars(cls), cls.__annotations__
        own = {name: body.get(name, _MISSING) for name, kind in annotations.items() if not _is_of_class(kind)}
        for name, each in own.items():
            if type(each) is _Member or kw_only:
                own[name] = (each if type(each) is _Member else _Member(name, each)).named(name, kw_only)
        written: dict[str, Any] = {}
        for base in cls.__mro__[-2:0:-1]:
            written |= vars(base).get("__written__", {})
        written |= own
        special = [each for each in written.values() if type(each) is _Member]
        init, lazy = _Init(), _Fields(annotations, own, kw_only)
        methods: dict[str, object] = {"__init__": init, "__repr__": _repr}
        methods["__match_args__"] = _without(written, (each for each in special if each.kw_only or not each.init))
        if eq:
            methods |= _comparing(_without(written, (each for each in special if not each.compare)), frozen)
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if frozen and slots:
            methods |= {"__getstate__": _values, "__setstate__": _restore}
        methods = {name: method for name, method in methods.items() if name not in body}
        methods |= {"__written__": written, "__dataclass_fields__": lazy}
        init.cls = lazy.cls = (_with_slots if slots else _with)(cls, methods, written)
        return init.cls

    return decorated


if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, is_dataclass, replace
else:
    dataclass, field, fields, is_dataclass, replace = _dataclass, _field, _all_fields, _is_dataclass, _replaced

__all__ = ["Sized", "dataclass", "field", "fields", "is_dataclass", "replace"]


class Sized:
    """A table: a subclass, a dataclass, is as long as the field that `sized_by` names, or as its first one."""

    __slots__: tuple[str, ...] = ()
    __match_args__: tuple[str, ...] = ()
    sized_by = ""

    def __len__(self) -> int:
        return len(getattr(self, self.sized_by or self.__match_args__[0]))


def _is_of_class(annotation: object) -> bool:
    return str(annotation).startswith(("ClassVar", "typing.ClassVar"))


def _without(names: Iterable[str], left_out: Iterable[_Member]) -> tuple[str, ...]:
    out = {each.name for each in left_out}
    return tuple(name for name in names if name not in out)


def _members(cls: Any) -> list[_Member]:  # noqa: ANN401 - of any class
    """The fields of a class, in order."""
    return [each if type(each) is _Member else _Member(name, each) for name, each in cls.__written__.items()]


def _with(cls: type[Any], methods: dict[str, object], written: Mapping[str, object]) -> type[Any]:
    for name, method in methods.items():
        setattr(cls, name, method)
    for each in written.values():
        if type(each) is _Member and each.name in vars(cls):
            delattr(cls, each.name)
            if each.default is not _MISSING:
                setattr(cls, each.name, each.default)
    return cls


def _with_slots(cls: type[Any], methods: dict[str, object], written: Mapping[str, object]) -> type[Any]:
    """The class once more: slots can't be given to one that exists."""
    inherited = {slot for base in cls.__mro__[1:-1] for slot in vars(base).get("__slots__", ())}
    body = {name: value for name, value in vars(cls).items() if name not in written}
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    slots = tuple(name for name in written if name not in inherited)
    metaclass: Any = type(cls)
    made: type[Any] = metaclass(cls.__name__, cls.__bases__, {**body, **methods, "__slots__": slots})
    made.__qualname__ = cls.__qualname__
    return made


class _Fields:
    """Stands for the `Field`s of a class until somebody looks them up: then they are made and take its place."""

    cls: type[Any]

    def __init__(self, annotations: Mapping[str, object], own: Mapping[str, object], kw_only: bool) -> None:
        self.annotations, self.own, self.kw_only = annotations, own, kw_only

    def __get__(self, instance: object, owner: type[Any]) -> Mapping[str, object]:
        cls, dataclass = self.cls, _standard().dataclass
        members = {name: each.described for name, each in self.own.items() if type(each) is _Member}
        defaults = {name: default for name, default in self.own.items() if default is not _MISSING} | members
        body = {**defaults, "__annotations__": self.annotations, "__module__": cls.__module__, "__doc__": ""}
        alone: Any = dataclass(init=False, repr=False, eq=False, kw_only=self.kw_only)(type(cls.__name__, (), body))
        fields: dict[str, object] = {}
        for base in cls.__mro__[-1:0:-1]:
            fields |= getattr(base, "__dataclass_fields__", {})
        fields |= alone.__dataclass_fields__
        type.__setattr__(cls, "__dataclass_params__", alone.__dataclass_params__)
        type.__setattr__(cls, "__dataclass_fields__", fields)
        return fields


class _Init:
    """Stands for `__init__` of a class until somebody looks it up: then that is made and takes its place."""

    cls: type[Any]

    def __get__(self, instance: object, owner: type[Any]) -> object:
        made = _made_init(self.cls)
        type.__setattr__(self.cls, "__init__", made)
        return made.__get__(instance, owner)


def _made_init(cls: type[Any]) -> FunctionType:
    """One of the two functions below, with the fields as its arguments: compiling a text takes ten times longer."""
    members = _members(cls)
    taken = [each for each in members if each.init]
    by_place, by_name = [each for each in taken if not each.kw_only], [each for each in taken if each.kw_only]
    code = (_init_and_more if hasattr(cls, "__post_init__") else _init).__code__
    names = (*code.co_varnames, *(each.name for each in (*by_place, *by_name)))
    code = code.replace(
        co_argcount=1 + len(by_place), co_kwonlyargcount=len(by_name), co_nlocals=len(names), co_varnames=names
    )
    made = FunctionType(code, {"_fill": _filling(members)}, "__init__", _defaults(by_place))
    made.__kwdefaults__ = {each.name: each.default for each in by_name if each.has_default}
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _init(self: object) -> None:
    _fill(locals())


def _init_and_more(self: Any) -> None:  # noqa: ANN401 - of any class
    _fill(locals())
    self.__post_init__()


def _fill(values: Mapping[str, Any]) -> None:
    """Gives an instance, which comes first, the values that follow."""
    items = iter(values.items())
    _, self = next(items)
    for name, value in items:
        _set(self, name, value)


def _filling(members: Iterable[_Member]) -> Callable[[dict[str, Any]], None]:
    """`_fill`, or, where not all values are arguments, a function that makes the others first."""
    added = [each for each in members if each.default_factory is not None or (each.has_default and not each.init)]
    if not added:
        return _fill

    def fill(values: dict[str, Any]) -> None:
        for each in added:
            if values.get(each.name, _MISSING) is _MISSING:
                values[each.name] = each.default if each.default_factory is None else each.default_factory()
        _fill(values)

    return fill


def _defaults(by_place: Iterable[_Member]) -> tuple[object, ...]:
    """Those of the last arguments.

    Raises:
        TypeError: an argument without a default follows one with a default.
    """
    defaults: list[object] = []
    for each in by_place:
        if each.has_default:
            defaults.append(each.default)
        elif defaults:
            raise TypeError(f"non-default argument {each.name!r} follows default argument")
    return tuple(defaults)


def _comparing(names: tuple[str, ...], frozen: bool) -> dict[str, object]:
    compared: Any = attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)

    def equal(self: object, other: object) -> bool:
        return bool(compared(self) == compared(other)) if type(other) is type(self) else NotImplemented

    return {"__eq__": equal, "__hash__": (lambda self: hash(compared(self))) if frozen else None}


def _repr(self: object) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in _members(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise _standard().FrozenInstanceError(f"cannot assign to field {name!r}")


def _values(self: Any) -> list[Any]:  # noqa: ANN401 - of any class
    return [getattr(self, name) for name in self.__written__]


def _restore(self: Any, values: list[Any]) -> None:  # noqa: ANN401 - of any class
    for name, value in zip(self.__written__, values, strict=True):
        _set(self, name, value)


def known_attribute(name: str) -> Callable[[Any], Any]:
    """Reads the attribute of a dotted name; None where an object on the way is None."""
    way, _, last = name.rpartition(".")
    read = attrgetter(last)
    if not way:
        return read
    above = known_attribute(way)
    return lambda source: None if (of := above(source)) is None else read(of)
