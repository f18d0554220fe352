"""Steps of the box posterior for 16 right borders side by side (`segment_kernels`)."""

from __future__ import annotations

from typing import Any

from numba import types

from goldseam.separation.vector_kernels import Lanes, intrinsic

__all__ = ["lanes_backward", "lanes_forward", "lanes_multiply"]


@intrinsic
def lanes_multiply(typing, values, at, factor):  # type: ignore[no-untyped-def]
    """values[at] *= factor."""
    signature = types.void(values, at, factor)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        target = lanes.pointer(sig.args[0], args[0], args[1])
        lanes.store(builder.fmul(lanes.load(target), lanes.spread(args[2])), target)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_backward(typing, below, at, ratio, place, after):  # type: ignore[no-untyped-def]
    """below[at] = 1 + ratio[place] * below[after]."""
    signature = types.void(below, at, ratio, place, after)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        factor = lanes.load(lanes.pointer(sig.args[2], args[2], args[3]))
        old = lanes.load(lanes.pointer(sig.args[0], args[0], args[4]))
        new = builder.fadd(lanes.constant(1.0), builder.fmul(factor, old))
        lanes.store(new, lanes.pointer(sig.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def lanes_forward(typing, above, mass, at, ratio, place, below, after, ends, to):  # type: ignore[no-untyped-def]
    """above[at] = ratio[place] * (1 + above[at]), added to mass[at]; times below[after] it is added to ends[to].

    Returns the sum of what was added to `ends`.
    """
    signature = above.dtype(above, mass, at, ratio, place, below, after, ends, to)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, sig.args[0])
        above_, mass_, at_, ratio_, place_, below_, after_, ends_, to_ = args
        runs, sums, target = (
            lanes.pointer(kind, array, where)
            for kind, array, where in (
                (sig.args[0], above_, at_),
                (sig.args[1], mass_, at_),
                (sig.args[7], ends_, to_),
            )
        )
        factor = lanes.load(lanes.pointer(sig.args[3], ratio_, place_))
        ending = builder.fmul(factor, builder.fadd(lanes.constant(1.0), lanes.load(runs)))
        lanes.store(ending, runs)
        lanes.store(builder.fadd(lanes.load(sums), ending), sums)
        through = builder.fmul(ending, lanes.load(lanes.pointer(sig.args[5], below_, after_)))
        lanes.store(builder.fadd(lanes.load(target), through), target)
        return lanes.total(through)

    return signature, code
