"""The place of a word's lowest bit, as one instruction."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic


@intrinsic
def lowest_bit(typingctx, word):  # type: ignore[no-untyped-def]
    """int64: the number of zeros below the lowest bit of an uint64 that is not zero."""

    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), build
