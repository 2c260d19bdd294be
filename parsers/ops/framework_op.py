"""Framework ops: the name and type behind an HLO op's `tf_op` stat, such as ``jit(step)/jvp(mlp)/dot_general:``."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern

UNKNOWN_TYPE = "Unknown"

_TF_NAME = pattern(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*\Z")
_TF_TYPE = pattern(r"[A-Z_][a-zA-Z0-9_]*\Z")
_JAX_TYPE = pattern(r"[a-z_][a-z0-9_]*(\[.*\])?\Z")
_SUFFIX = pattern(r"_[+-]?\d+\Z")
_MEMCPY = {
    "memcpyhtod": "MemcpyHToD",
    "memcpydtoh": "MemcpyDToH",
    "memcpydtod": "MemcpyDToD",
    "memcpyhtoh": "MemcpyHToH",
}


@dataclass(frozen=True, slots=True)
class FrameworkOp:
    """A framework op: its `name` as shown, and its `type` such as ``dot_general`` or ``MatMul``, empty if unknown."""

    name: str
    type: str


def parse_framework_op(full_name: str) -> FrameworkOp:
    """Splits ``name:type``; the rules are those of XProf's ParseTfOpFullname, so that rows group as its rows do.

    Where the type is missing it is the last part of the name without a numeric suffix. A JAX type loses its details in
    brackets. Names of tf.data stages (``Iterator::…``) have the type ``Dataset``.
    """
    name, colon, kind = full_name.partition(":")
    if not colon:
        return FrameworkOp(full_name, _MEMCPY.get(full_name[:10].lower(), ""))
    if name == "Iterator":
        return FrameworkOp(full_name, "Dataset")
    if _TF_NAME.match(name) and _TF_TYPE.match(kind):
        return FrameworkOp(name, kind)
    derived = kind or _SUFFIX.sub("", name.rsplit("/", 1)[-1])
    if _JAX_TYPE.match(derived):
        return FrameworkOp(name, derived.partition("[")[0])
    if not kind:
        return FrameworkOp(name, derived)
    return FrameworkOp(full_name, "")


def scope_end(framework_op: str) -> str:
    """The last parts of a framework op's name that are scopes or ops, ``mlp/dot_general``; empty without any."""
    name = parse_framework_op(framework_op).name if framework_op else ""
    return "/".join([part for part in name.split("/") if part and "(" not in part and ")" not in part][-2:])


def is_gradient(name: str) -> bool:
    """Whether a framework op's name scope says that it computes gradients: JAX ``transpose(…)``, TF ``gradients``."""
    return any(part.startswith(("transpose(", "gradients", "gradient_tape")) for part in name.split("/")[:-1])


def pass_of(framework_op: str, is_rematerialized: bool) -> str:
    """The pass that an op belongs to: ``forward``, ``backward``, ``recomputed``; empty where its names do not say."""
    if is_rematerialized:
        return "recomputed"
    if is_gradient(parse_framework_op(framework_op).name):
        return "backward"
    return "forward" if "jvp(" in framework_op else ""
