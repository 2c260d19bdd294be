"""Kernels made by hand, op by op, for what no compiled one shows."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.files.mlir import Made, Ref, Writer


class Kernel:
    """Collects the ops of a kernel's function: methods that make a value return it."""

    def __init__(self, grid: Sequence[int] = (), writer: Writer | None = None) -> None:
        self.writer = writer or Writer()
        self.grid = tuple(grid)
        self.ops: list[Made] = []
        self.indices = [Ref(self.writer.integer_type(32)) for _ in grid]
        self.arguments: list[Ref] = []
        self.windows: list[int] = []
        self.functions: list[Made] = []
        self.prefetched = self.scratch = 0

    def add(self, name: str, operands: Sequence[Ref], type: int | None = None, **attributes: int) -> Ref:
        result = [Ref(type)] if type is not None else []
        self.ops.append(Made(name, list(operands), result, attributes))
        return result[0] if result else Ref(-1)

    def argument(self, dimensions: Sequence[int], element: str, space: str = "vmem") -> Ref:
        made = Ref(self.writer.memref(dimensions, element, space))
        self.arguments.append(made)
        return made

    def window(self, bounds: Sequence[int], body: Sequence[Made], returned: Sequence[Ref], **more: int) -> None:
        """A window of the last argument, and the function that says which block it is."""
        name = f"transform_{len(self.windows)}"
        ops = [*body, Made("func.return", list(returned))]
        self.functions.append(self.writer.function(name, self.indices, ops))
        entry = {"transform_indices": self.writer.symbol(name), "window_bounds": self.writer.numbers(bounds)}
        self.windows.append(self.writer.dictionary(entry | more))

    def constant(self, value: int) -> tuple[Made, Ref]:
        made = Ref(self.writer.integer_type(32))
        return Made("arith.constant", [], [made], {"value": self.writer.integer(value, 32)}), made

    def number(self, value: int) -> Ref:
        op, made = self.constant(value)
        self.ops.append(op)
        return made

    def compared(self, predicate: int, a: Ref, b: Ref) -> Ref:
        return self.add("arith.cmpi", [a, b], self.writer.integer_type(1), predicate=self.writer.integer(predicate))

    def vector(self, dimensions: Sequence[int], element: str = "bf16") -> Ref:
        return self.add("vector.load", [], self.writer.vector(dimensions, element))

    def product(self, m: int, k: int, n: int) -> None:
        """A matrix product of [m, k] by [k, n]."""
        numbers = self.writer.written("#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>")
        operands = [self.vector((m, k)), self.vector((k, n)), self.vector((m, n), "f32")]
        self.add("tpu.matmul", operands, self.writer.vector((m, n), "f32"), dimension_numbers=numbers)

    def inside(self) -> Kernel:
        """Collects ops for a region of this kernel."""
        return Kernel(writer=self.writer)

    def under(self, condition: Ref, then: Kernel, otherwise: Kernel | None = None) -> None:
        regions: list[tuple[list[Ref], list[Made]]] = [([], [*then.ops, Made("scf.yield")])]
        regions.append(([], [*(otherwise.ops if otherwise else []), Made("scf.yield")]))
        self.ops.append(Made("scf.if", [condition], regions=regions))

    def loop(self, lower: Ref, upper: Ref, step: Ref, body: Kernel, index: Ref | None = None) -> None:
        turn = index or Ref(self.writer.integer_type(32))
        self.ops.append(Made("scf.for", [lower, upper, step], regions=[([turn], [*body.ops, Made("scf.yield")])]))

    def module(self) -> bytes:
        writer = self.writer
        attributes = {
            "scalar_prefetch": writer.integer(self.prefetched),
            "scratch_operands": writer.integer(self.scratch),
        }
        if self.grid:
            attributes["iteration_bounds"] = writer.numbers(self.grid)
        if self.windows:
            attributes["window_params"] = writer.items(self.windows)
        ops = [*self.ops, Made("func.return")]
        main = writer.function("made", [*self.indices, *self.arguments], ops, attributes)
        return writer.module([main, *self.functions])
