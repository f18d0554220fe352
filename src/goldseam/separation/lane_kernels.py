"""Vector instructions for numba: 16 reference rows side by side.

numba has no vector type, and LLVM does not vectorise loops over 16 lanes that may alias. These intrinsics emit the
vector code directly. All arrays are flat and contiguous; an offset `at` is the place of lane 0. LLVM splits the
16 lanes into whatever the processor has (one AVX-512 register in float32, four SSE or NEON registers, ...).
Comparisons are ordered, so NaN never wins: `smaller(NaN, b) = b`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core import cgutils as _cgutils

__all__ = [
    "GROUP",
    "LANES",
    "lanes_add",
    "lanes_add_deviation",
    "lanes_add_seen_deviation",
    "lanes_below",
    "lanes_compare_swap",
    "lanes_copy",
    "lanes_deviation_sums",
    "lanes_distance",
    "lanes_joins",
    "lanes_merge_quad",
    "lanes_merges",
    "lanes_offer",
    "lanes_scale",
    "lanes_sorts",
    "lanes_sum",
]

LANES = 16
GROUP = 4  # blocks of rows that are offered to the lists of a node at a time
cgutils: Any = _cgutils
intrinsic: Any = extending.intrinsic  # typed as Any: what it returns is called with one argument less


class _Lanes:
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

    def deviation(self, x: Any, s: Any, cap: Any) -> Any:
        """min((x - s)^2, cap): cap is infinite for numbers, 1 for categories, 0 for cells not observed."""
        gap = self.builder.fsub(x, s)
        return self.smaller(self.builder.fmul(gap, gap), cap)

    def turned(self, value: Any, shift: int) -> Any:
        """Lane i takes the place of lane i - shift."""
        order = [(lane + shift) % LANES for lane in range(LANES)]
        return self.builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), LANES), order))

    def any_below(self, a: Any, b: Any) -> Any:
        bits = self.builder.bitcast(self.builder.fcmp_ordered("<", a, b), ir.IntType(LANES))
        return self.builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))


def _deviation_sum(count: int) -> Any:
    @intrinsic
    def emit(typing, out, at, block, place, x, cap, j):  # type: ignore[no-untyped-def]
        """out[at] = sum over `count` columns of their deviations, in order."""
        signature = types.void(out, at, block, place, x, cap, j)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = _Lanes(context, builder, sig.args[0])
            out_, at_, block_, place_, x_, cap_, j_ = args
            total = None
            for k in range(count):
                e = lanes.deviation(
                    lanes.scalar(sig.args[4], x_, j_, k),
                    lanes.load(lanes.pointer(sig.args[2], block_, place_, k * LANES)),
                    lanes.scalar(sig.args[5], cap_, j_, k),
                )
                total = e if total is None else builder.fadd(total, e)
            lanes.store(total, lanes.pointer(sig.args[0], out_, at_))
            return context.get_dummy_value()

        return signature, code

    return emit


lanes_deviation_sums: tuple[Any, ...] = tuple(_deviation_sum(count) for count in (1, 2, 3, 4))


@intrinsic
def lanes_add_deviation(typing, out, at, block, place, x, cap):  # type: ignore[no-untyped-def]
    """out[at] += deviation of one column."""
    signature = types.void(out, at, block, place, x, cap)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        target = lanes.pointer(sig.args[0], args[0], args[1])
        s = lanes.load(lanes.pointer(sig.args[2], args[2], args[3]))
        e = lanes.deviation(lanes.spread(args[4]), s, lanes.spread(args[5]))
        lanes.store(builder.fadd(lanes.load(target), e), target)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_add_seen_deviation(typing, out, at, counts, block, seen, place, x, cap, observed):  # type: ignore[no-untyped-def]
    """out[at] += deviation where both are observed; counts[at] += whether both are."""
    signature = types.void(out, at, counts, block, seen, place, x, cap, observed)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        total = lanes.pointer(sig.args[0], args[0], args[1])
        count = lanes.pointer(sig.args[2], args[2], args[1])
        s = lanes.load(lanes.pointer(sig.args[3], args[3], args[5]))
        both = builder.fmul(lanes.load(lanes.pointer(sig.args[4], args[4], args[5])), lanes.spread(args[8]))
        e = lanes.deviation(lanes.spread(args[6]), s, lanes.spread(args[7]))
        lanes.store(builder.fadd(lanes.load(total), builder.fmul(e, both)), total)
        lanes.store(builder.fadd(lanes.load(count), both), count)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_add(typing, out, at, a, b):  # type: ignore[no-untyped-def]
    """out[at] = out[a] + out[b]."""
    signature = types.void(out, at, a, b)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        left, right = (lanes.load(lanes.pointer(sig.args[0], args[0], place)) for place in args[2:])
        lanes.store(builder.fadd(left, right), lanes.pointer(sig.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_scale(typing, out, to, at, values, counts, size):  # type: ignore[no-untyped-def]
    """out[to] = values[at] * (size / counts[at]); infinite where nothing was observed in both rows."""
    signature = types.void(out, to, at, values, counts, size)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        value = lanes.load(lanes.pointer(sig.args[3], args[3], args[2]))
        count = lanes.load(lanes.pointer(sig.args[4], args[4], args[2]))
        nil, far = (ir.Constant(lanes.vector, [constant] * LANES) for constant in (0.0, float("inf")))
        scaled = builder.fmul(value, builder.fdiv(lanes.spread(args[5]), count))
        result = builder.select(builder.fcmp_ordered(">", count, nil), scaled, far)
        lanes.store(result, lanes.pointer(sig.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_below(typing, values, at, bound):  # type: ignore[no-untyped-def]
    """True if any lane of values[at] is below the bound."""
    signature = types.boolean(values, at, bound)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        return lanes.any_below(lanes.load(lanes.pointer(sig.args[0], args[0], args[1])), lanes.spread(args[2]))

    return signature, code


@intrinsic
def lanes_offer(typing, values, at, stride, best, place, count):  # type: ignore[no-untyped-def]
    """Insert values[at], values[at + stride], ... (GROUP vectors) into the ascending lists of `count` at best[place].

    Every slot takes the smallest of what it held and what is carried; the rest is carried on.
    """
    signature = types.void(values, at, stride, best, place, count)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        values_, at_, stride_, best_, place_, count_ = args
        step, places = ir.Constant(at_.type, LANES), [at_]
        for _ in range(GROUP - 1):
            places.append(builder.add(places[-1], stride_))
        offered = [lanes.load(lanes.pointer(sig.args[0], values_, here)) for here in places]
        least = offered[0]
        for value in offered[1:]:
            least = lanes.smaller(value, least)
        last = builder.add(place_, builder.mul(builder.sub(count_, ir.Constant(at_.type, 1)), step))
        worst = lanes.load(lanes.pointer(sig.args[3], best_, last))
        with builder.if_then(lanes.any_below(least, worst)):
            carries = [cgutils.alloca_once_value(builder, value) for value in offered]
            with cgutils.for_range(builder, count_) as loop:
                slot = lanes.pointer(sig.args[3], best_, builder.add(place_, builder.mul(loop.index, step)))
                held = lanes.load(slot)
                for carry in carries:
                    moving = builder.load(carry)
                    builder.store(lanes.larger(moving, held), carry)
                    held = lanes.smaller(moving, held)
                lanes.store(held, slot)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_distance(typing, out, block, place, x, cap, count):  # type: ignore[no-untyped-def]
    """out[0] = sum of the deviations of `count` columns, in four interleaved sums; count is a multiple of 4."""
    signature = types.void(out, block, place, x, cap, count)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        out_, block_, place_, x_, cap_, count_ = args
        nil = ir.Constant(lanes.vector, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, nil) for _ in range(4)]
        with cgutils.for_range(builder, builder.udiv(count_, ir.Constant(count_.type, 4))) as loop:
            j = builder.mul(loop.index, ir.Constant(count_.type, 4))
            here = builder.add(place_, builder.mul(j, ir.Constant(count_.type, LANES)))
            for k, total in enumerate(sums):
                e = lanes.deviation(
                    lanes.scalar(sig.args[3], x_, j, k),
                    lanes.load(lanes.pointer(sig.args[1], block_, here, k * LANES)),
                    lanes.scalar(sig.args[4], cap_, j, k),
                )
                builder.store(builder.fadd(builder.load(total), e), total)
        a, b, c, d = (builder.load(total) for total in sums)
        whole = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        lanes.store(whole, lanes.pointer(sig.args[0], out_, ir.Constant(count_.type, 0)))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_sum(typing, out, at, values, place, count):  # type: ignore[no-untyped-def]
    """out[at] = values[place] + ... over `count` neighbouring vectors, in order."""
    signature = types.void(out, at, values, place, count)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        out_, at_, values_, place_, count_ = args
        step = ir.Constant(at_.type, LANES)
        total = cgutils.alloca_once_value(builder, lanes.load(lanes.pointer(sig.args[2], values_, place_)))
        with cgutils.for_range(builder, builder.sub(count_, ir.Constant(at_.type, 1))) as loop:
            here = builder.add(builder.add(place_, step), builder.mul(loop.index, step))
            value = lanes.load(lanes.pointer(sig.args[2], values_, here))
            builder.store(builder.fadd(builder.load(total), value), total)
        lanes.store(builder.load(total), lanes.pointer(sig.args[0], out_, at_))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_copy(typing, out, at, values, place):  # type: ignore[no-untyped-def]
    """out[at] = values[place]."""
    signature = types.void(out, at, values, place)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        lanes.store(
            lanes.load(lanes.pointer(sig.args[2], args[2], args[3])), lanes.pointer(sig.args[0], args[0], args[1])
        )
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_compare_swap(typing, values, a, b):  # type: ignore[no-untyped-def]
    """values[a], values[b] = the smaller and the larger of the two, lane by lane."""
    signature = types.void(values, a, b)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        pointers = [lanes.pointer(sig.args[0], args[0], place) for place in args[1:]]
        _run_network(lanes, pointers, pointers, [(0, 1)])
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_merge_quad(typing, values, at, half):  # type: ignore[no-untyped-def]
    """Two stages of a bitonic merge in one pass: distances 2 half and half, for the four vectors at, at + half, ..."""
    signature = types.void(values, at, half)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, sig.args[0])
        places = [args[1]]
        for _ in range(3):
            places.append(builder.add(places[-1], args[2]))
        pointers = [lanes.pointer(sig.args[0], args[0], place) for place in places]
        _run_network(lanes, pointers, pointers, [(0, 2), (1, 3), (0, 1), (2, 3)])
        return context.get_dummy_value()

    return signature, code


def _run_network(lanes: _Lanes, sources: list[Any], targets: list[Any], pairs: list[tuple[int, int]]) -> None:
    """Load, compare and exchange in registers, store."""
    values = [lanes.load(source) for source in sources]
    for i, j in pairs:
        values[i], values[j] = lanes.smaller(values[i], values[j]), lanes.larger(values[i], values[j])
    for value, target in zip(values, targets, strict=True):
        lanes.store(value, target)


def odd_even_sort(n: int) -> list[tuple[int, int]]:
    """Comparators of Batcher's odd-even merge sort for n = 1, 2, 4, ...

    >>> odd_even_sort(4)
    [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]
    """
    pairs = []
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                places = range(j, j + min(k, n - j - k))
                pairs += [(i, i + k) for i in places if i // (2 * p) == (i + k) // (2 * p)]
            k //= 2
        p *= 2
    return pairs


def bitonic_merge(n: int) -> list[tuple[int, int]]:
    """Comparators that sort a bitonic list of n = 1, 2, 4, ... values.

    >>> bitonic_merge(4)
    [(0, 2), (1, 3), (0, 1), (2, 3)]
    """
    pairs, k = [], n // 2
    while k:
        pairs += [(i, i + k) for i in range(n) if not i & k]
        k //= 2
    return pairs


def _sort(n: int) -> Any:
    @intrinsic
    def emit(typing, out, at, block, place, x, cap, j):  # type: ignore[no-untyped-def]
        """out[at:] = sorted deviations of n columns."""
        signature = types.void(out, at, block, place, x, cap, j)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = _Lanes(context, builder, sig.args[0])
            out_, at_, block_, place_, x_, cap_, j_ = args
            values = [
                lanes.deviation(
                    lanes.scalar(sig.args[4], x_, j_, k),
                    lanes.load(lanes.pointer(sig.args[2], block_, place_, k * LANES)),
                    lanes.scalar(sig.args[5], cap_, j_, k),
                )
                for k in range(n)
            ]
            for i, k in odd_even_sort(n):
                values[i], values[k] = lanes.smaller(values[i], values[k]), lanes.larger(values[i], values[k])
            for k in range(n):
                lanes.store(values[k], lanes.pointer(sig.args[0], out_, at_, k * LANES))
            return context.get_dummy_value()

        return signature, code

    return emit


def _merge(n: int, order: Callable[[int], int]) -> Any:
    """Bitonic merge of n vectors in registers; `order` says where the i-th of them is read."""

    @intrinsic
    def emit(typing, values, at):  # type: ignore[no-untyped-def]
        signature = types.void(values, at)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = _Lanes(context, builder, sig.args[0])
            pointers = [lanes.pointer(sig.args[0], args[0], args[1], i * LANES) for i in range(n)]
            _run_network(lanes, [pointers[order(i)] for i in range(n)], pointers, bitonic_merge(n))
            return context.get_dummy_value()

        return signature, code

    return emit


def _join(n: int) -> Any:
    """The n smallest of 16 ascending lists of n vectors: lists of lanes 8, 4, 2 and 1 apart are merged in turn.

    Of two ascending lists a and b the n smallest are min(a_i, b_(n-1-i)), a bitonic list.
    """

    @intrinsic
    def emit(typing, lists, at):  # type: ignore[no-untyped-def]
        signature = types.void(lists, at)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = _Lanes(context, builder, sig.args[0])
            pointers = [lanes.pointer(sig.args[0], args[0], args[1], i * LANES) for i in range(n)]
            values = [lanes.load(pointer) for pointer in pointers]
            for shift in (8, 4, 2, 1):
                others = [lanes.turned(value, shift) for value in values]
                values = [lanes.smaller(values[i], others[n - 1 - i]) for i in range(n)]
                for i, j in bitonic_merge(n):
                    values[i], values[j] = lanes.smaller(values[i], values[j]), lanes.larger(values[i], values[j])
            for value, pointer in zip(values, pointers, strict=True):
                lanes.store(value, pointer)
            return context.get_dummy_value()

        return signature, code

    return emit


lanes_joins: tuple[Any, ...] = tuple(_join(n) for n in (1, 2, 4, 8, 16))


def _second_half_reversed(n: int) -> Callable[[int], int]:
    return lambda i: i if i < n // 2 else n - 1 - (i - n // 2)


lanes_sorts: tuple[Any, ...] = tuple(_sort(n) for n in (1, 2, 4, 8, 16))
# merges of two ascending halves (read the second one backwards), then of a bitonic list of 16
lanes_merges: tuple[Any, ...] = (*(_merge(n, _second_half_reversed(n)) for n in (2, 4, 8, 16)), _merge(16, lambda i: i))
