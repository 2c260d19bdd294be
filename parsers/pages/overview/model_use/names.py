"""Which block of a model an op belongs to, by the names of its scopes, its function or its kernel.

Names are those of Flax, Haiku, MaxText, Equinox, Keras, Hugging Face and PyTorch/XLA:
``layers_3/self_attention/query``, ``h_7/mlp/c_fc``, ``transformer/linear_2``. The innermost name that says something
decides, as a norm in an attention block is a norm; names that mean a block only among others of it (``wo``, ``query``)
decide where no other one does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.pages.ops.op_profile import provenance_parts

Block = Literal["embedding", "attention", "mlp", "router", "norm", "loss", "optimizer", "other", "unknown"]
"""A part of a model (see `BLOCK_WORDS`)."""

BLOCKS: tuple[Block, ...] = get_args(Block)

BLOCK_WORDS: Mapping[Block, str] = {
    "embedding": "lookups of tokens, positions, features or patches",
    "attention": "attention with its projections, rotary positions and its cache",
    "mlp": "feed-forward layers and experts",
    "router": "choosing experts and sending tokens to them",
    "norm": "normalization",
    "loss": "logits and the loss, or another head",
    "optimizer": "the update of the weights, clipping of gradients included",
    "other": "ops of a known kind that are in none of these blocks",
    "unknown": "neither names nor the data flow say where an op belongs",
}
"""What is counted as each block."""

_WORD = r"(?:^|_)(?:{})(?:_|$)"


def _words(*words: str) -> re.Pattern[str]:
    return pattern(_WORD.format("|".join(words)))


_OPTIMIZER = _words(
    *("optim", r"optimi[sz]ers?", "opt", "adam[wx]?", "sgd", "lion", "adafactor", "shampoo", "muon", "lamb", "rmsprop"),
    *("momentum", "clip_by", "global_norm", "grads?_norm", "gradient_norm", r"clip_grad\w*", r"apply_updates?"),
    *("apply_gradients?", r"scale_by_\w+", "weight_decay", "update_params", "param_update", "ema"),
)
_ONLY_UPDATE = frozenset(("update", "updates", "clip", "update_step"))
"""Names of scopes outside the passes that are the optimizer's; names of functions do not count."""

_EMBEDDING = _words(
    *(r"\w*embed(?:ding|dings|der|ders|ded|s)?\d*", "emb", "wte", "wpe", "lookup", "pos_emb", "tok_emb"),
    *("positional_encoding", "tables?", r"\w+_table"),
)
_STRONG: tuple[tuple[Block, re.Pattern[str]], ...] = (
    (
        "router",
        _words(
            *("router", "routers", "routing", "route", "gate_logits", "moe_gate", "top_?k_gat(?:e|ing)", "dispatch"),
            *("combine", r"load_balanc\w*", "expert_choice", "router_weights"),
        ),
    ),
    (
        "norm",
        _words(*(r"\w*norm(?:ali[sz]ation|s)?\d*", "ln", r"ln_?(?:\d+|f|[a-z]|post|pre)", r"bn\d*", "adaln", "rms")),
    ),
    (
        "attention",
        pattern(
            r"attention|attn|(?:^|_)(?:atten|att|mha|mqa|gqa|mla|qkv|flash|splash|rope|rotary|kv_cache|kvcache"
            r"|relative_position_bias|to_[qkv]|to_qkv|[qkv]_einsum|kv_einsum|qkv_einsum|[qkvo]_proj|qkv_proj)(?:_|\d|$)"
        ),
    ),
    ("embedding", _EMBEDDING),
    (
        "loss",
        _words(
            *(
                r"\w*loss(?:es)?",
                "logits",
                r"\w*logits",
                "lm_?head",
                r"\w*_head",
                "head",
                r"\w*cross_?entropy\w*",
                "xent",
            ),
            *(
                "nll",
                "unembed",
                "classifier",
                "criterion",
                "log_softmax",
                "logsumexp",
                "output_layer",
                r"kl_?div\w*",
                "vocab",
            ),
        ),
    ),
    (
        "mlp",
        _words(
            *("mlp", r"\w*mlp\d*", "ffn?", "ffw", r"feed_?forward\w*", r"\w*moe", r"\w*experts?", "t?gmm", "megablox"),
            *("swi_?glu", "ge_?glu", "glu", "ffn_layer\\d*", "ff_layer\\d*", "block_sparse_moe"),
        ),
    ),
)
"""Names that decide; the first block wins if a name gives several."""

_WEAK: tuple[tuple[Block, re.Pattern[str]], ...] = (
    ("attention", _words("query", "keys?", "value", "values", "wq", "wk", "wv", "scores", "c_attn", "dot_product")),
    (
        "mlp",
        _words(
            *(r"wi(?:_\d)?", "wo", r"(?:gate|up|down)(?:_up)?(?:_proj)?", "c_fc", "c_proj", r"fc\d*", "intermediate"),
            *(r"w[123]", "dense", "linear", "lin", r"dense\d+", r"linear\d+", "gelu", "silu", "relu"),
        ),
    ),
)

_CONTROL = pattern(
    r"^(?:while|body|cond|scan|main|closed_call|core_call|checkpoint|remat\d*|rematted_computation|pjit|shard_map|"
    r"branch_\d+_fun|custom_[jv]jp_call\w*|pallas_call|named_call|.*->.*|~|)$"
)
_WRAPPED = pattern(r"^(jit|pjit|jvp|transpose|vmap|checkpoint|remat|custom_jvp|custom_vjp|shard_map|named)\((.*)\)$")
_CAMEL = pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LAYER = pattern(
    r"^(?:(?:\w+_)?(?:layers?|blocks?|h|resblocks?|stages?|units?|cells?)|\w*block|\w*layer)[._\[]?(\d+)\]?$"
)
_STACKED = pattern(r"^(?:\w+_)?(?:layers|blocks|h|resblocks)$")
_MOE = pattern(r"moe|expert|mixture")
_ATTENDS = frozenset(("attend", "decode"))


@dataclass(frozen=True, slots=True)
class Scope:
    """A name in an op's path: as it is written, in small letters with underscores, and whether it is a function's."""

    name: str
    words: str
    is_function: bool


def scopes_of(framework_op: str) -> tuple[Scope, ...]:
    """The names that an op's path has besides the program's and the primitive's, outermost first."""
    parts = provenance_parts(framework_op)
    found: list[Scope] = []
    for place, part in enumerate(parts):
        is_function, name = False, part
        while (wrapped := _WRAPPED.match(name)) is not None:
            is_function = is_function or wrapped[1] in ("jit", "pjit")
            name = wrapped[2]
        if (place == 0 and is_function) or (place == len(parts) - 1 and not is_function):
            continue
        found += [
            Scope(each, _CAMEL.sub("_", each).lower(), is_function)
            for each in re.split("[/.]", name)
            if not _CONTROL.match(each)
        ]
    return tuple(found)


def block_of(scopes: Sequence[Scope], in_passes: bool) -> tuple[Block | None, bool]:
    """The block that names give, None if none does; and whether the names are sure, rather than the best of weak ones.

    Args:
        in_passes: whether the op is in a pass over the model, forward or backward, by its names.
    """
    words = [scope.words for scope in scopes]
    if any(_OPTIMIZER.search(each) for each in words):
        return "optimizer", True
    if not in_passes and any(scope.words in _ONLY_UPDATE and not scope.is_function for scope in scopes):
        return "optimizer", True
    for table in (_STRONG, _WEAK):
        for place in range(len(words) - 1, -1, -1):
            if (block := _named(words, place, table)) is not None:
                return block, table is _STRONG
    return None, False


def _named(words: Sequence[str], place: int, table: Sequence[tuple[Block, re.Pattern[str]]]) -> Block | None:
    """The block that one name gives, by the words around it."""
    word, outer = words[place], words[:place]
    if table is _STRONG:
        if word == "gate" and any(_MOE.search(each) for each in outer):
            return "router"
        if word in _ATTENDS and outer and _EMBEDDING.search(outer[-1]):
            return "loss"
    return next((block for block, pattern in table if pattern.search(word)), None)


def block_of_name(name: str) -> Block | None:
    """The block of a kernel or function by its own name alone; None if that gives none."""
    word = _CAMEL.sub("_", name).lower().replace("-", "_")
    return next((block for block, pattern in _STRONG if pattern.search(word)), None)


def layer_of(scopes: Sequence[Scope]) -> str | None:
    """The layer in the names, with the scopes around it, ``decoder/layers_3``; None if they name none.

    Layers that a loop runs over have one name together, ``decoder/layers``.
    """
    for match in (_LAYER, _STACKED):
        for place, scope in enumerate(scopes):
            if scope.is_function or not match.match(scope.words) or block_of_name(scope.name) is not None:
                continue
            last = place + 1 + (scopes[place + 1 : place + 2] != () and scopes[place + 1].name.isdigit())
            return "/".join(each.name for each in scopes[:last] if not each.is_function)
    return None
