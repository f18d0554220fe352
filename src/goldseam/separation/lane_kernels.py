"""Sums of squared deviations of one row from 16 reference rows side by side, and lists of the smallest (S11.2)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils

from goldseam.separation.vector_kernels import GROUP, LANES, Lanes, intrinsic

__all__ = [
    "PAIR",
    "lanes_add_column",
    "lanes_add_group",
    "lanes_add_seen_deviation",
    "lanes_category_distances",
    "lanes_leaf_sums",
    "lanes_least",
    "lanes_number_distances",
    "lanes_offer",
    "lanes_plain_sums",
    "lanes_scale",
    "lanes_upto",
]

cgutils: Any = _cgutils
PAIR = 2  # blocks whose distances are taken at a time: with 256 columns they fit into the nearest cache


def _leaf_sum(count: int, capped: bool) -> Any:
    @intrinsic
    def emit(typing, out, at, flat, place, stride, x, cap, j):  # type: ignore[no-untyped-def]
        """out[at], ... = sums over `count` columns of their deviations, in order; GROUP blocks, `stride` apart.

        Without `capped` all caps must be infinite; they are not looked at.
        """
        signature = types.void(out, at, flat, place, stride, x, cap, j)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = Lanes(context, builder, sig.args[0])
            out_, at_, flat_, place_, stride_, x_, cap_, j_ = args
            xs = [lanes.scalar(sig.args[5], x_, j_, k) for k in range(count)]
            caps = [lanes.scalar(sig.args[6], cap_, j_, k) if capped else None for k in range(count)]
            for g in range(GROUP):
                total = None
                for k in range(count):
                    s = lanes.load(lanes.pointer(sig.args[2], flat_, place_, k * LANES))
                    e = lanes.deviation(xs[k], s, caps[k])
                    total = e if total is None else builder.fadd(total, e)
                lanes.store(total, lanes.pointer(sig.args[0], out_, at_, g * LANES))
                place_ = builder.add(place_, stride_)
            return context.get_dummy_value()

        return signature, code

    return emit


lanes_leaf_sums: tuple[Any, ...] = tuple(_leaf_sum(count, capped=True) for count in (1, 2, 3, 4))
lanes_plain_sums: tuple[Any, ...] = tuple(_leaf_sum(count, capped=False) for count in (3, 4))


@intrinsic
def lanes_add_column(typing, out, at, flat, place, stride, x, cap, j):  # type: ignore[no-untyped-def]
    """out[at], ... += deviations of one column; GROUP blocks, `stride` apart."""
    signature = types.void(out, at, flat, place, stride, x, cap, j)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        out_, at_, flat_, place_, stride_, x_, cap_, j_ = args
        value, limit = lanes.scalar(sig.args[5], x_, j_), lanes.scalar(sig.args[6], cap_, j_)
        for g in range(GROUP):
            e = lanes.deviation(value, lanes.load(lanes.pointer(sig.args[2], flat_, place_)), limit)
            target = lanes.pointer(sig.args[0], out_, at_, g * LANES)
            lanes.store(builder.fadd(lanes.load(target), e), target)
            place_ = builder.add(place_, stride_)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_add_seen_deviation(typing, out, at, counts, block, seen, place, x, cap, observed):  # type: ignore[no-untyped-def]
    """out[at] += deviation where both are observed; counts[at] += whether both are."""
    signature = types.void(out, at, counts, block, seen, place, x, cap, observed)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
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
def lanes_add_group(typing, out, at, a, b):  # type: ignore[no-untyped-def]
    """out[at], ... = out[a], ... + out[b], ...; GROUP neighbouring vectors."""
    signature = types.void(out, at, a, b)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        for g in range(GROUP):
            left, right = (lanes.load(lanes.pointer(sig.args[0], args[0], place, g * LANES)) for place in args[2:])
            lanes.store(builder.fadd(left, right), lanes.pointer(sig.args[0], args[0], args[1], g * LANES))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_scale(typing, out, to, at, values, counts, size):  # type: ignore[no-untyped-def]
    """out[to] = values[at] * (size / counts[at]); infinite where nothing was observed in both rows."""
    signature = types.void(out, to, at, values, counts, size)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        value = lanes.load(lanes.pointer(sig.args[3], args[3], args[2]))
        count = lanes.load(lanes.pointer(sig.args[4], args[4], args[2]))
        nil, far = (ir.Constant(lanes.vector, [constant] * LANES) for constant in (0.0, float("inf")))
        scaled = builder.fmul(value, builder.fdiv(lanes.spread(args[5]), count))
        result = builder.select(builder.fcmp_ordered(">", count, nil), scaled, far)
        lanes.store(result, lanes.pointer(sig.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_upto(typing, values, at, bound):  # type: ignore[no-untyped-def]
    """Which lanes of values[at], ... (PAIR neighbouring vectors) are not above the bound: bit i stands for lane i."""
    signature = types.int64(values, at, bound)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes, word = Lanes(context, builder, sig.args[0]), ir.IntType(64)
        found, limit = ir.Constant(word, 0), lanes.spread(args[2])
        for g in range(PAIR):
            part = lanes.load(lanes.pointer(sig.args[0], args[0], args[1], g * LANES))
            bits = builder.zext(lanes.bits_upto(part, limit), word)
            found = builder.or_(found, builder.shl(bits, ir.Constant(word, g * LANES)))
        return found

    return signature, code


@intrinsic
def lanes_least(typing, values, at, count, out):  # type: ignore[no-untyped-def]
    """out[0], ... = the smallest of each lane of values[at], ... (`count` neighbouring vectors)."""
    signature = types.void(values, at, count, out)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        least = cgutils.alloca_once_value(builder, lanes.constant(float("inf")))
        with cgutils.for_range(builder, args[2]) as loop:
            place = builder.add(args[1], builder.mul(loop.index, ir.Constant(args[1].type, LANES)))
            part = lanes.load(lanes.pointer(sig.args[0], args[0], place))
            builder.store(lanes.smaller(part, builder.load(least)), least)
        lanes.store(builder.load(least), lanes.pointer(sig.args[3], args[3], ir.Constant(args[1].type, 0)))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lowest_bit(typing, bits):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; there must be one."""
    signature = types.int64(bits)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return signature, code


@intrinsic
def lanes_offer(typing, values, at, best, place, count):  # type: ignore[no-untyped-def]
    """Insert values[at], ... (GROUP neighbouring vectors) into the ascending lists of `count` at best[place].

    Every slot takes the smallest of what it held and what is carried; the rest is carried on.
    """
    signature = types.void(values, at, best, place, count)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        values_, at_, best_, place_, count_ = args
        step = ir.Constant(at_.type, LANES)
        offered = [lanes.load(lanes.pointer(sig.args[0], values_, at_, g * LANES)) for g in range(GROUP)]
        least = offered[0]
        for value in offered[1:]:
            least = lanes.smaller(value, least)
        last = builder.add(place_, builder.mul(builder.sub(count_, ir.Constant(at_.type, 1)), step))
        worst = lanes.load(lanes.pointer(sig.args[2], best_, last))
        with builder.if_then(lanes.any_below(least, worst)):
            carries = [cgutils.alloca_once_value(builder, value) for value in offered]
            with cgutils.for_range(builder, count_) as loop:
                slot = lanes.pointer(sig.args[2], best_, builder.add(place_, builder.mul(loop.index, step)))
                held = lanes.load(slot)
                for carry in carries:
                    moving = builder.load(carry)
                    builder.store(lanes.larger(moving, held), carry)
                    held = lanes.smaller(moving, held)
                lanes.store(held, slot)
        return context.get_dummy_value()

    return signature, code


def _distances(cap: float | None) -> Any:
    @intrinsic
    def emit(typing, out, at, flat, place, stride, offsets, x, begin, end):  # type: ignore[no-untyped-def]
        """out[at], ... += sums over the columns at `offsets[begin:end]`; PAIR blocks, `stride` apart.

        Columns in turn go to two sums, which are added at the end: a single chain of additions would be waited for.
        """
        signature = types.void(out, at, flat, place, stride, offsets, x, begin, end)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            lanes = Lanes(context, builder, sig.args[0])
            out_, at_, flat_, place_, stride_, offsets_, x_, begin_, end_ = args
            targets = [lanes.pointer(sig.args[0], out_, at_, g * LANES) for g in range(PAIR)]
            first = [cgutils.alloca_once_value(builder, lanes.load(target)) for target in targets]
            second = [cgutils.alloca_once_value(builder, lanes.constant(0.0)) for _ in targets]
            columns = context.make_array(sig.args[5])(context, builder, offsets_).data

            def add(i: Any, sums: list[Any]) -> None:
                value = lanes.scalar(sig.args[6], x_, i)
                here = builder.add(place_, builder.load(builder.gep(columns, [i])))
                limit = None if cap is None else lanes.constant(cap)
                for total in sums:
                    e = lanes.deviation(value, lanes.load(lanes.pointer(sig.args[2], flat_, here)), limit)
                    builder.store(builder.fadd(builder.load(total), e), total)
                    here = builder.add(here, stride_)

            one, count = ir.Constant(begin_.type, 1), builder.sub(end_, begin_)
            with cgutils.for_range(builder, builder.lshr(count, one)) as loop:
                i = builder.add(begin_, builder.shl(loop.index, one))
                add(i, first)
                add(builder.add(i, one), second)
            with builder.if_then(builder.icmp_signed("!=", builder.and_(count, one), ir.Constant(count.type, 0))):
                add(builder.sub(end_, one), first)
            for target, a, b in zip(targets, first, second, strict=True):
                lanes.store(builder.fadd(builder.load(a), builder.load(b)), target)
            return context.get_dummy_value()

        return signature, code

    return emit


lanes_number_distances = _distances(None)
lanes_category_distances = _distances(1.0)
