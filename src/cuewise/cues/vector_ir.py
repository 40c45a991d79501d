"""Vectors of float32 in the compiler's own language, for inner loops that it would not vectorise well by itself.

They run on every processor that the compiler knows. A vector is as long as its registers: 16 numbers with AVX-512, else 8
(twice the registers' length costs a third more time in the diffusion of a processor with AVX2).
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, config


def lanes() -> int:
    """Numbers in a vector: of the processor that code is compiled for."""
    named = config.CPU_FEATURES  # type: ignore[attr-defined]
    host = binding.get_host_cpu_features
    wide = host().get("avx512f", False) if named is None else "+avx512f" in named.split(",")
    return 16 if wide else 8


LANES = lanes()
FLOAT, INT = ir.FloatType(), ir.IntType(32)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)


def load(builder: Any, address: Any, kind: Any, align: int = 1) -> Any:
    """A value of that type from an address."""
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=align)


def store(builder: Any, value: Any, address: Any, align: int = 1) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=align)


def splat(builder: Any, value: Any, count: int) -> Any:
    """A vector with the same number in each of `count` lanes."""
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, count), ir.Undefined), value, INT(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT, count), [0] * count))


class Vectors:
    """Builds operations on whole vectors; an address is an integer of the size of a pointer."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def load(self, address: Any, kind: Any = FLOATS) -> Any:
        """LANES numbers from any address."""
        return load(self.builder, address, kind, align=4)

    def store(self, vector: Any, address: Any) -> None:
        store(self.builder, vector, address, align=4)

    def splat(self, value: Any) -> Any:
        """The same number in every lane."""
        return splat(self.builder, value, LANES)

    def number(self, address: Any) -> Any:
        """The float32 at an address, in every lane."""
        return self.splat(load(self.builder, address, FLOAT, align=4))

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a·b + c, rounded once."""
        kind = ir.FunctionType(FLOATS, [FLOATS] * 3)
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fma.v{LANES}f32")
        return self.builder.call(function, (a, b, c))

    def abs(self, vector: Any) -> Any:
        mask = ir.Constant(INTS, [0x7FFFFFFF] * LANES)
        bits = self.builder.and_(self.builder.bitcast(vector, INTS), mask)
        return self.builder.bitcast(bits, FLOATS)

    def whole(self, vector: Any) -> Any:
        """float32 cut to int32."""
        return self.builder.fptosi(vector, INTS)

    def difference(self, a: Any, b: Any) -> Any:
        """a − b of int32 as float32."""
        return self.builder.sitofp(self.builder.sub(a, b), FLOATS)

    def behind(self, before: Any, vector: Any) -> Any:
        """The vector moved by one lane: the last lane of the one before, then all but its own last."""
        return self.builder.shuffle_vector(
            before, vector, ir.Constant(INTS, list(range(LANES - 1, 2 * LANES - 1)))
        )

    def shifted(self, vector: Any, bits: int) -> Any:
        """The bits of each lane moved to the left, as int32."""
        return self.builder.shl(self.builder.bitcast(vector, INTS), ir.Constant(INTS, [bits] * LANES))

    def polynomial(self, coefficients: list[Any], x: Any) -> Any:
        """Horner's rule, the highest power first: the number of operations binds, not their latency."""
        return reduce(lambda p, c: self.fma(p, x, c), coefficients[1:], coefficients[0])

    def greatest(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def least(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)


def floats(value: float) -> Any:
    """A constant in every lane."""
    return ir.Constant(FLOATS, [float(value)] * LANES)
