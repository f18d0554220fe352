"""Sorting and merging of 16 lists side by side, as straight comparator networks (S11.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils

from goldseam.separation.vector_kernels import GROUP, LANES, Lanes, intrinsic

__all__ = [
    "LONGEST",
    "lanes_compare_swap",
    "lanes_copy",
    "lanes_join",
    "lanes_merge_quad",
    "lanes_merges",
    "lanes_sorts",
    "lanes_sum",
    "lanes_take",
]

cgutils: Any = _cgutils
LONGEST = 8  # lists that fit into registers


@intrinsic
def lanes_copy(typing, out, at, values, place):  # type: ignore[no-untyped-def]
    """out[at] = values[place]."""
    signature = types.void(out, at, values, place)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        lanes.store(
            lanes.load(lanes.pointer(sig.args[2], args[2], args[3])), lanes.pointer(sig.args[0], args[0], args[1])
        )
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_sum(typing, out, at, values, place, count):  # type: ignore[no-untyped-def]
    """out[at] = values[place] + ... over `count` neighbouring vectors, in order."""
    signature = types.void(out, at, values, place, count)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
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
def lanes_compare_swap(typing, values, a, b):  # type: ignore[no-untyped-def]
    """values[a], values[b] = the smaller and the larger of the two, lane by lane."""
    signature = types.void(values, a, b)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        pointers = [lanes.pointer(sig.args[0], args[0], place) for place in args[1:]]
        _run_network(lanes, pointers, pointers, [(0, 1)])
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_merge_quad(typing, values, at, half):  # type: ignore[no-untyped-def]
    """Two stages of a bitonic merge in one pass: distances 2 half and half, for the four vectors at, at + half, ..."""
    signature = types.void(values, at, half)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        places = [args[1]]
        for _ in range(3):
            places.append(builder.add(places[-1], args[2]))
        pointers = [lanes.pointer(sig.args[0], args[0], place) for place in places]
        _run_network(lanes, pointers, pointers, [(0, 2), (1, 3), (0, 1), (2, 3)])
        return context.get_dummy_value()

    return signature, code


def _run_network(lanes: Lanes, sources: list[Any], targets: list[Any], pairs: list[tuple[int, int]]) -> None:
    """Load, compare and exchange in registers, store."""
    values = [lanes.load(source) for source in sources]
    lanes.exchange(values, pairs)
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
    """Comparators that sort a list of n values that goes up, then down.

    Those of the next power of two, less what would compare with values put in front, smaller than all.

    >>> bitonic_merge(4), bitonic_merge(3)
    ([(0, 2), (1, 3), (0, 1), (2, 3)], [(0, 2), (1, 2)])
    """
    size = 1 << (n - 1).bit_length()
    front, pairs, k = size - n, [], size // 2
    while k:
        pairs += [(i - front, i - front + k) for i in range(front, size) if not i & k]
        k //= 2
    return pairs


def _sort(n: int) -> Any:
    @intrinsic
    def emit(typing, out, at, block, place, x, cap, j):  # type: ignore[no-untyped-def]
        """out[at:] = sorted deviations of n columns."""
        signature = types.void(out, at, block, place, x, cap, j)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = Lanes(context, builder, sig.args[0])
            out_, at_, block_, place_, x_, cap_, j_ = args
            values = [
                lanes.deviation(
                    lanes.scalar(sig.args[4], x_, j_, k),
                    lanes.load(lanes.pointer(sig.args[2], block_, place_, k * LANES)),
                    lanes.scalar(sig.args[5], cap_, j_, k),
                )
                for k in range(n)
            ]
            lanes.exchange(values, odd_even_sort(n))
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
            lanes = Lanes(context, builder, sig.args[0])
            pointers = [lanes.pointer(sig.args[0], args[0], args[1], i * LANES) for i in range(n)]
            _run_network(lanes, [pointers[order(i)] for i in range(n)], pointers, bitonic_merge(n))
            return context.get_dummy_value()

        return signature, code

    return emit


def _for_each_length(builder: Any, n: Any, emit: Callable[[int], None]) -> None:
    """Code for every list length up to LONGEST, of which that of length `n` is run."""
    after = builder.append_basic_block("after")
    switch = builder.switch(n, after)
    for length in range(1, LONGEST + 1):
        block = builder.append_basic_block(f"length_{length}")
        switch.add_case(ir.Constant(n.type, length), block)
        builder.position_at_end(block)
        emit(length)
        builder.branch(after)
    builder.position_at_end(after)


@intrinsic
def lanes_join(typing, lists, at, n):  # type: ignore[no-untyped-def]
    """The n smallest of 16 ascending lists of n vectors: lists of lanes 8, 4, 2 and 1 apart are merged in turn.

    Of two ascending lists a and b the n smallest are min(a_i, b_(n-1-i)), which goes up, then down.
    """
    signature = types.void(lists, at, n)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])

        def join(length: int) -> None:
            pointers = [lanes.pointer(sig.args[0], args[0], args[1], i * LANES) for i in range(length)]
            values = [lanes.load(pointer) for pointer in pointers]
            for shift in (8, 4, 2, 1):
                others = [lanes.turned(value, shift) for value in reversed(values)]
                values = [lanes.smaller(a, b) for a, b in zip(values, others, strict=True)]
                lanes.exchange(values, bitonic_merge(length))
            for value, pointer in zip(values, pointers, strict=True):
                lanes.store(value, pointer)

        _for_each_length(builder, args[2], join)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_take(typing, values, at, groups, lists, place, n):  # type: ignore[no-untyped-def]
    """Take groups of GROUP vectors into ascending lists of n vectors, which stay in registers meanwhile.

    Of the list a and a sorted group b the n smallest are a_i or, from the end, min(a_(n-1-i), b_i): up, then down.
    """
    signature = types.void(values, at, groups, lists, place, n)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        values_, at_, groups_, lists_, place_, n_ = args

        def take(length: int) -> None:
            pointers = [lanes.pointer(sig.args[3], lists_, place_, i * LANES) for i in range(length)]
            slots = [cgutils.alloca_once_value(builder, lanes.load(pointer)) for pointer in pointers]
            with cgutils.for_range(builder, groups_) as loop:
                here = builder.add(at_, builder.mul(loop.index, ir.Constant(at_.type, GROUP * LANES)))
                new = [lanes.load(lanes.pointer(sig.args[0], values_, here, g * LANES)) for g in range(GROUP)]
                least = lanes.smaller(lanes.smaller(new[0], new[1]), lanes.smaller(new[2], new[3]))
                with builder.if_then(lanes.any_below(least, builder.load(slots[-1]))):
                    lanes.exchange(new, odd_even_sort(GROUP))
                    held = [builder.load(slot) for slot in slots]
                    for i in range(min(length, GROUP)):
                        held[length - 1 - i] = lanes.smaller(new[i], held[length - 1 - i])
                    lanes.exchange(held, bitonic_merge(length))
                    for value, slot in zip(held, slots, strict=True):
                        builder.store(value, slot)
            for slot, pointer in zip(slots, pointers, strict=True):
                lanes.store(builder.load(slot), pointer)

        _for_each_length(builder, n_, take)
        return context.get_dummy_value()

    return signature, code


def _second_half_reversed(n: int) -> Callable[[int], int]:
    return lambda i: i if i < n // 2 else n - 1 - (i - n // 2)


lanes_sorts: tuple[Any, ...] = tuple(_sort(n) for n in (1, 2, 4, 8, 16))
# merges of two ascending halves (read the second one backwards), then of a bitonic list of 16
lanes_merges: tuple[Any, ...] = (*(_merge(n, _second_half_reversed(n)) for n in (2, 4, 8, 16)), _merge(16, lambda i: i))
