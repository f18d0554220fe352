"""16 reference rows side by side: vector instructions for numba, emitted one by one.

numba has no vector type, and LLVM does not vectorise loops over 16 lanes that may alias, so intrinsics emit the vector
code directly. All arrays are flat and contiguous; an offset `at` is the place of lane 0. LLVM splits the 16 lanes into
whatever the processor has (one AVX-512 register in float32, four SSE or NEON registers, ...). Comparisons are ordered,
so NaN never wins: `smaller(NaN, b) = b`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending

__all__ = ["GROUP", "LANES", "Lanes", "intrinsic"]

LANES = 16
GROUP = 4  # blocks of 16 rows that are worked on at a time
intrinsic: Any = extending.intrinsic  # typed as Any: what it returns is called with one argument less


class Lanes:
    """Loads, stores and arithmetic on the lanes of one element type, at one place in the generated code."""

    def __init__(self, context: Any, builder: Any, array_type: Any) -> None:
        self.context, self.builder = context, builder
        self.element = context.get_value_type(array_type.dtype)
        self.vector = ir.VectorType(self.element, LANES)
        self.align = array_type.dtype.bitwidth // 8

    def pointer(self, array_type: Any, array: Any, at: Any, shift: int = 0) -> Any:
        data = self.context.make_array(array_type)(self.context, self.builder, array).data
        place = self.builder.add(at, ir.Constant(at.type, shift)) if shift else at
        return self.builder.bitcast(self.builder.gep(data, [place]), self.vector.as_pointer())

    def scalar(self, array_type: Any, array: Any, at: Any, shift: int = 0) -> Any:
        data = self.context.make_array(array_type)(self.context, self.builder, array).data
        place = self.builder.add(at, ir.Constant(at.type, shift)) if shift else at
        return self.spread(self.builder.load(self.builder.gep(data, [place])))

    def load(self, pointer: Any) -> Any:
        value = self.builder.load(pointer)
        value.align = self.align
        return value

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, pointer).align = self.align

    def spread(self, value: Any) -> Any:
        undefined, word = ir.Constant(self.vector, ir.Undefined), ir.IntType(32)
        first = self.builder.insert_element(undefined, value, ir.Constant(word, 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(word, LANES), [0] * LANES))

    def smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), b, a)

    def exchange(self, values: list[Any], pairs: list[tuple[int, int]]) -> None:
        """Run a network: of every pair of places the first takes the smaller value, the second the larger one."""
        for i, j in pairs:
            values[i], values[j] = self.smaller(values[i], values[j]), self.larger(values[i], values[j])

    def deviation(self, x: Any, s: Any, cap: Any | None) -> Any:
        """min((x - s)^2, cap): cap is infinite (or None) for numbers, 1 for categories, 0 for cells not observed."""
        gap = self.builder.fsub(x, s)
        square = self.builder.fmul(gap, gap)
        return square if cap is None else self.smaller(square, cap)

    def turned(self, value: Any, shift: int) -> Any:
        """Lane i takes the place of lane i - shift."""
        order = [(lane + shift) % LANES for lane in range(LANES)]
        return self.builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), LANES), order))

    def total(self, value: Any) -> Any:
        """Sum of the lanes, as a tree of fixed shape."""
        for shift in (8, 4, 2, 1):
            value = self.builder.fadd(value, self.turned(value, shift))
        return self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    def constant(self, value: float) -> Any:
        return ir.Constant(self.vector, [value] * LANES)

    def bits_below(self, a: Any, b: Any) -> Any:
        return self.builder.bitcast(self.builder.fcmp_ordered("<", a, b), ir.IntType(LANES))

    def bits_upto(self, a: Any, b: Any) -> Any:
        return self.builder.bitcast(self.builder.fcmp_ordered("<=", a, b), ir.IntType(LANES))

    def any_below(self, a: Any, b: Any) -> Any:
        return self.builder.icmp_unsigned("!=", self.bits_below(a, b), ir.Constant(ir.IntType(LANES), 0))
