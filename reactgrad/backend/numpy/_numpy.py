"""Kernels of NumPy, and of libraries that mirror its functions (CuPy)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from reactgrad.backend._libraries import add_library
from reactgrad.backend._parts import numbers_check, numbers_key, placed, split_key, unbind_key
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy import _chain, _scatter
from reactgrad.backend.numpy._in_turn import InTurn, Joined
from reactgrad.backend.numpy._stretched import stretched
from reactgrad.backend.numpy._sums import ALONE, WIDER, axes_to, slices_step, sum_step
from reactgrad.backend.numpy._views import copied, refilled

UFUNCS = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_not", "isnan", "isfinite"),
    *("add", "subtract", "multiply", "divide", "power", "floor_divide", "remainder"),
    *("hypot", "arctan2", "logaddexp", "negative", "absolute", "sign", "floor", "ceil"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "reciprocal"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
)

# On so few elements the start of a call costs more than moving the elements.
FEW = 4096

# With more products of half floats BLAS in float32 is faster: 1 ms in place of 200 ms for 256 x 256 x 256. NumPy
# adds them up in float32, too.
FEW_HALVES = 512

# On so few elements NumPy's masked copy is as fast as a product with the mask; on many it is ten times slower.
FEW_MASKED = 512
_ADDED = object()  # in place of an index: the term is a call that adds itself
_BITS = {np.dtype(f"f{size}"): np.dtype(f"i{size}") for size in (2, 4, 8)}


def filled_keys(at: Any, indices: Sequence[Any], shape: Sequence[int]) -> Callable[[], Any]:
    """Return a call that gives the index of a value of this shape, with the present values of its operands."""
    return partial(at.filled, [None, *indices], shape)


def register_like_numpy(xp: Any, kind: str, keys: Callable[..., Any] = filled_keys) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do.

    Parameters
    ----------
    keys
        As ``filled_keys``, for libraries that take no arrays of NumPy as an index.
    """
    for name in UFUNCS:
        register_kernel(name, kind, getattr(xp, name))

    # NumPy deprecates a positional `out` for these two.
    def bind_maximum(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.maximum, *inputs, out=out)

    def bind_minimum(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.minimum, *inputs, out=out)

    def masked(out: Any, x: Any, where: Any) -> Callable[[], object]:
        return partial(xp.copyto, out, x, "same_kind", where)  # by position: faster than keywords

    def bind_where(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        condition, x, y = inputs
        if condition.dtype.kind == "b":
            bits = _BITS.get(out.dtype)
            if bits is None or out.size <= FEW_MASKED or not x.dtype == y.dtype == out.dtype:
                return InTurn(partial(xp.copyto, out, y), masked(out, x, condition))
            # As bits, `x` less what `y` differs from it where the condition is false. A masked copy takes
            # up to ten times as long where the mask has no pattern. `out` may be the memory of `y`.
            off, result = xp.empty(condition.shape, bool), out.view(bits)
            return InTurn(
                partial(xp.logical_not, condition, off),
                partial(xp.bitwise_xor, x.view(bits), y.view(bits), result),
                partial(xp.multiply, result, off, result),
                partial(xp.bitwise_xor, result, x.view(bits), result),
            )

        def where() -> None:
            xp.copyto(out, y)
            xp.copyto(out, x, where=condition.astype(bool))

        return where

    def clip(x: Any, low: Any, high: Any, out: Any) -> None:
        xp.clip(x, low, high, out=out)

    def bind_clip(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        bounds = dict(zip(attrs[0], inputs[1:], strict=True))
        return partial(clip, inputs[0], bounds.get("l"), bounds.get("h"), out)

    def bind_astype(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.copyto, out, inputs[0], casting="unsafe")

    def beside(out: Any) -> Any:
        """Return memory for an intermediate result of `out`.

        That is `out` itself, except on a few elements, where writing over an operand is slower than
        using another array.
        """
        return out if out.size > FEW else xp.empty_like(out)

    def number(value: float, dtype: Any) -> Any:
        """Return a number as an operand of kernels, which costs less than a Python number."""
        return xp.asarray(value).astype(dtype)

    if xp is np:  # elsewhere an array belongs to the device that was current when it was made
        number = cache(_number)

    def bind_relu(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.maximum, inputs[0], number(0, out.dtype), out=out)

    def wide(out: Any) -> Any:
        """Return the dtype in which several operations compute `out`: a half float is rounded once."""
        return np.dtype(np.float32) if out.dtype.char == "e" else out.dtype

    def first(function: Any, x: Any, scratch: Any) -> Callable[[], object]:
        """Return the call of a function of one operand in the dtype of `scratch`."""
        if x.dtype.char == "e" != scratch.dtype.char:
            return partial(function, x, scratch, dtype=scratch.dtype)
        return partial(function, x, scratch)

    def bind_sigmoid(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        (x,) = inputs
        dtype = wide(out)
        scratch = xp.empty(out.shape, dtype) if dtype != out.dtype else beside(out)
        target = scratch if dtype != out.dtype else out
        one, minus_one = number(1, dtype), number(-1, dtype)
        return InTurn(
            partial(xp.multiply, x, minus_one, scratch),
            partial(xp.exp, scratch, target),
            partial(xp.add, target, one, scratch),
            partial(xp.reciprocal, scratch, out),
        )

    def tanh_grad(g: Any, y: Any, out: Any) -> None:  # of files of 0.1, as the next one
        xp.multiply(g, 1.0 - y * y, out)

    def sigmoid_grad(g: Any, y: Any, out: Any) -> None:
        xp.multiply(g, y * (1.0 - y), out)

    # tanh' is 1 / cosh**2; its square could leave the dtype.
    def bind_tanh_grad(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        g, _, x = inputs
        dtype = wide(out)
        scratch = xp.empty(out.shape, dtype)
        over = out.size > FEW and dtype == out.dtype
        quotient = out if over else xp.empty(out.shape, dtype)
        return InTurn(
            first(xp.cosh, x, scratch),
            partial(xp.divide, g, scratch, quotient),
            partial(xp.divide, quotient, scratch, out),
        )

    # 1 - y is 1 / (1 + exp(x)).
    def bind_sigmoid_grad(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        g, y, x = inputs
        a = xp.empty(out.shape, wide(out))
        b = a if out.size > FEW else xp.empty_like(a)
        return InTurn(
            first(xp.exp, x, a),
            partial(xp.add, a, number(1, a.dtype), b),
            partial(xp.divide, y, b, a),
            partial(xp.multiply, g, a, out),
        )

    def bind_one_minus_square(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        (x,) = inputs
        one = number(1, out.dtype)
        below, above = xp.empty_like(out), xp.empty_like(out)
        return InTurn(
            partial(xp.subtract, one, x, below),
            partial(xp.add, one, x, above),
            partial(xp.multiply, below, above, out),
        )

    def bind_unit(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.divide, inputs[0], inputs[2], out)

    def bind_angle_slope(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        a, b, length = inputs
        dtype, calls = wide(out), []
        if dtype != out.dtype:  # the length of half floats may be none
            high, length = xp.empty(out.shape, dtype), xp.empty(out.shape, dtype)
            calls = [partial(xp.copyto, high, a), partial(xp.hypot, high, b, length)]
        quotient, origin = xp.empty(out.shape, dtype), xp.empty(length.shape, bool)
        return InTurn(
            *calls,
            partial(xp.divide, b, length, quotient),
            partial(xp.divide, quotient, length, out),
            partial(xp.equal, length, number(0, dtype), origin),
            masked(out, number(0, out.dtype), origin),
        )

    def chain(ufunc: Any, wins: Callable[[Any, Any], Any]) -> Callable[..., None]:
        def kernel(a: Any, b: Any, out: Any) -> None:
            ufunc(a, b, out)
            out[...] = xp.where(xp.isnan(out) & wins(a, b), xp.zeros_like(out), out)

        return kernel

    def bind_real(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.copyto, out, inputs[0].real)

    def bind_imag(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        return partial(xp.copyto, out, inputs[0].imag)

    def bind_relu_grad(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        g, x = inputs
        off, zero = xp.empty(x.shape, bool), number(0, out.dtype)
        bits = _BITS.get(out.dtype) if g.dtype == out.dtype else None
        if (
            bits is not None
            and out.size > FEW_MASKED
            and g.shape in ((), out.shape)
            and x.shape == out.shape
        ):
            on = xp.empty(x.shape, bool)
            return InTurn(
                partial(xp.less_equal, x, zero, off),
                partial(xp.logical_not, off, on),
                # Multiplied as integers: exactly the bits of `g`, or all zero, for NaN and negative
                # numbers, too.
                partial(xp.multiply, g.view(bits), on, out.view(bits)),
            )
        return InTurn(
            partial(xp.less_equal, x, zero, off),
            partial(xp.copyto, out, g),
            masked(out, zero, off),
        )

    def bind_matmul(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        if xp is np and out.dtype.char == "e" and out.size * inputs[0].shape[-1] > FEW_HALVES:
            a, b, product = (np.empty(one.shape, np.float32) for one in (*inputs, out))
            return InTurn(
                partial(xp.copyto, a, inputs[0]),
                partial(xp.copyto, b, inputs[1]),
                bind_matmul((a, b), product, ()),
                partial(xp.copyto, out, product, "same_kind"),
            )
        # `dot` gives the same bits here, and its call costs less.
        plain = all(map(_dotted, inputs, (out, out))) and out.size and out.flags.c_contiguous
        return partial(xp.dot if plain else xp.matmul, *inputs, out)

    def bind_linear(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        x, w, b = inputs
        plain = x.ndim <= 2 and w.ndim <= 2
        batch = () if plain else np.broadcast_shapes(x.shape[:-2], w.shape[:-2])
        shape = (*batch, *x.shape[-2:-1], *(w.shape[-1:] if w.ndim > 1 else ()))
        over = shape == out.shape and out.size > FEW
        product = out if over else xp.empty(shape, np.result_type(x, w))
        return InTurn(
            bind_matmul((x, w), product, ()), partial(xp.add, *stretched((product, b), out), out)
        )

    copy_view = partial(copied, xp)

    def total(x: Any, axis: Any, out: Any, keepdims: bool) -> Callable[[], object]:
        """Return the call that sums `x`, whose result has the dtype of `x` or a wider one."""
        axis = axis if x.ndim else None  # of a number the first and the last axis are none
        careful = (sum_step(x, axis, out) or slices_step(x, axis, out)) if xp is np else None
        return careful or partial(xp.add.reduce, x, axis, None, out, keepdims)

    def bind_sum(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        return total(inputs[0], attrs[0], out, attrs[1])

    def bind_mean(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,) = inputs
        axis, keepdims = attrs
        # Half floats are summed in float32, as NumPy does without `out`.
        wide = np.dtype(np.float32) if out.dtype.itemsize == 2 else out.dtype
        all_of_it = xp.empty(out.shape, wide)
        count = xp.asarray(x.size // out.size if x.size else 0, wide)
        if x.dtype == wide or x.dtype.char == "e":
            step = total(x, axis, all_of_it, keepdims)
        else:
            step = partial(xp.add.reduce, x, axis, wide, all_of_it, keepdims)
        return InTurn(step, partial(xp.divide, all_of_it, count, out))

    def bind_max(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        axis, keepdims = attrs
        return partial(xp.maximum.reduce, inputs[0], axis, None, out, keepdims)

    def bind_min(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        axis, keepdims = attrs
        return partial(xp.minimum.reduce, inputs[0], axis, None, out, keepdims)

    def bind_sum_to(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        (x,) = inputs
        if x.size == out.size:  # nothing to add: a copy, as the view gives it (0.0 + -0.0 is 0.0)
            return partial(xp.copyto, out, x.reshape(out.shape))
        axes, kept = axes_to(x.shape, out.shape)
        return total(x, axes, out.reshape(kept), True)

    def bind_vdot(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        x, y = inputs
        number = out.reshape(())
        if x.flags.c_contiguous and y.flags.c_contiguous:
            return partial(xp.dot, x.reshape(-1), y.reshape(-1), number)
        product = xp.empty(x.shape, out.dtype)
        return InTurn(
            partial(xp.multiply, x, y, product),
            partial(xp.add.reduce, product, None, None, number, False),
        )

    def reshape_like(x: Any, like: Any, out: Any) -> None:
        xp.copyto(out, x.reshape(like.shape))

    def broadcast_like(x: Any, like: Any, out: Any) -> None:
        xp.copyto(out, x)

    def checked(part: Any, like: Any, out: Any, *attrs: Any) -> None:
        xp.copyto(out, part)

    def bind_sum_like(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        x, like = inputs
        if like.dtype.kind not in "fc":  # integers and booleans have no gradient
            return partial(out.fill, 0)
        # A real operand moves along the real axis only.
        return bind_sum_to((x.real if like.dtype.kind == "f" else x,), out, ())

    def bind_concatenate(inputs: Sequence[Any], out: Any, attrs: tuple[int]) -> Joined:
        return Joined(xp.concatenate, inputs, out, attrs[0])

    def bind_stack(inputs: Sequence[Any], out: Any, attrs: tuple[int]) -> Joined:
        axis = attrs[0] % out.ndim
        return Joined(xp.concatenate, [xp.expand_dims(x, axis) for x in inputs], out, axis)

    def getitem(x: Any, out: Any, index: Any) -> None:
        out[...] = x[index.parts]

    def gather(x: Any, *operands: Any) -> Any:
        *indices, out, index = operands
        found = x[index.filled([None, *indices], x.shape)]
        if out is None:
            return found
        out[...] = found
        return None

    def bind_pick(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        x, numbers = inputs
        key, check = numbers_key(numbers, x.ndim, *attrs), numbers_check(numbers, x.shape, *attrs)

        def pick() -> None:
            check()
            out[...] = x[key]

        return pick

    def bind_place(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        g, numbers, _ = inputs
        key, check = (
            numbers_key(numbers, out.ndim, *attrs),
            numbers_check(numbers, out.shape, *attrs),
        )

        def place() -> None:
            check()
            out.fill(0)
            out[key] = g

        return place

    def add_at(x: Any, key: Callable[[], Any], out: Any) -> None:
        x = x.astype(out.dtype, copy=False)
        if xp is not np and out.dtype.kind == "c":  # CuPy adds real numbers at places
            xp.add.at(out.real, key(), x.real)
            xp.add.at(out.imag, key(), x.imag)
        else:
            xp.add.at(out, key(), x)

    def bind_accumulate(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        places = attrs[1]
        if all(place is None for place in places):
            return _bind_dense_sum(xp, inputs, out)
        terms = [*placed(inputs, places)]
        short = _scatter.bind_rows(terms, out) if xp is np else None
        if short is not None:
            return short
        parts: list[tuple[Any, Any]] = []
        for x, at, indices in terms:
            if at is None or at.basic:
                parts.append((x, None if at is None else at.parts))
            elif xp is np:
                parts.append((_scatter.adder(x, at, indices, out.shape), _ADDED))
            else:
                parts.append((partial(add_at, x, keys(at, indices, out.shape)), _ADDED))

        def accumulate_into(out: Any) -> None:
            out.fill(0)
            for x, at in parts:
                if at is None:
                    xp.add(out, x, out)
                elif at is _ADDED:
                    x(out)
                else:
                    out[at] += x

        # So many may be added to one place that the errors of a short dtype could be seen.
        many = len(parts) > ALONE or any(at is _ADDED for _, at in parts)
        wide = WIDER.get(out.dtype.char) if many or out.dtype.char == "e" else None
        if wide is None:
            return partial(accumulate_into, out)

        def accumulate() -> None:
            total = xp.empty(out.shape, wide)
            accumulate_into(total)
            xp.copyto(out, total, "same_kind")

        return accumulate

    register_binder("where", kind, bind_where)
    register_binder("matmul", kind, bind_matmul)
    register_binder("linear", kind, bind_linear)
    register_binder("tanh_backward", kind, bind_tanh_grad)
    register_binder("sigmoid_backward", kind, bind_sigmoid_grad)
    register_binder("relu_grad", kind, bind_relu_grad)
    register_kernel("tanh_grad", kind, tanh_grad)
    register_kernel("sigmoid_grad", kind, sigmoid_grad)
    register_binder("real", kind, bind_real)
    register_binder("imag", kind, bind_imag)
    register_kernel("conj", kind, xp.conjugate)
    register_binder("one_minus_square", kind, bind_one_minus_square)
    register_binder("unit", kind, bind_unit)
    register_binder("angle_slope", kind, bind_angle_slope)
    register_kernel("chain_times", kind, chain(xp.multiply, lambda a, b: (a == 0) | (b == 0)))
    register_kernel("chain_over", kind, chain(xp.divide, lambda g, x: g == 0))
    register_binder("astype", kind, bind_astype)
    register_binder("relu", kind, bind_relu)
    register_binder("concatenate", kind, bind_concatenate)
    register_binder("stack", kind, bind_stack)
    register_kernel("getitem", kind, getitem)
    register_kernel("gather", kind, gather)
    register_binder("pick", kind, bind_pick)
    register_binder("place", kind, bind_place)
    register_kernel("transpose", kind, copy_view(lambda x, axes: x.transpose(axes)))
    register_kernel("reshape", kind, partial(refilled, xp))
    register_kernel("broadcast_to", kind, copy_view(lambda x, shape: xp.broadcast_to(x, shape)))
    register_kernel("expand_dims", kind, copy_view(lambda x, axes: xp.expand_dims(x, axes)))
    register_kernel("squeeze", kind, copy_view(lambda x, axis: xp.squeeze(x, axis)))
    for name in ("alias", "detach", "scale_grad"):
        register_kernel(name, kind, copy_view(lambda x, *attrs: x))
    for name in ("split", "array_split"):
        register_kernel(name, kind, copy_view(lambda x, *cut: x[split_key(x.shape, *cut)]))
    register_kernel("unbind", kind, copy_view(lambda x, *part: x[unbind_key(x.shape, *part)]))
    register_binder("sum", kind, bind_sum)
    register_binder("mean", kind, bind_mean)
    register_binder("max", kind, bind_max)
    register_binder("min", kind, bind_min)
    register_binder("sum_to", kind, bind_sum_to)
    register_binder("sum_like", kind, bind_sum_like)
    register_binder("vdot", kind, bind_vdot)
    register_kernel("reshape_like", kind, reshape_like)
    register_kernel("broadcast_like", kind, broadcast_like)
    register_kernel("checked", kind, checked)
    register_binder("maximum", kind, bind_maximum)
    register_binder("minimum", kind, bind_minimum)
    register_binder("clip", kind, bind_clip)
    register_binder("sigmoid", kind, bind_sigmoid)
    register_binder("accumulate", kind, bind_accumulate)
    add_library(xp, kind)


def _number(value: float, dtype: Any) -> Any:
    """Return a number as a read-only array, which all kernels share."""
    found = np.asarray(value).astype(dtype)
    found.flags.writeable = False
    return found


def _dotted(x: Any, out: Any) -> bool:
    """Return whether ``dot`` gives the same bits as ``matmul`` for a product with the operand `x`."""
    one_piece = x.flags.c_contiguous or x.flags.f_contiguous
    if x.ndim != 2 or out.ndim != 2 or x.dtype != out.dtype or x.dtype.char not in "fd":
        return False
    return (
        one_piece and x.size > 1
    )  # with a matrix of one element, 0, `dot` gives 0 even where the other operand is infinite


def _bind_dense_sum(xp: Any, inputs: Sequence[Any], out: Any) -> Callable[[], object]:
    """Return a step that adds the inputs in their order, in two arrays by turns, the last in `out`."""
    if len(inputs) == 1:
        return partial(xp.copyto, out, inputs[0])
    if len(inputs) == 2:
        return partial(xp.add, inputs[0], inputs[1], out)
    scratch = xp.empty_like(out)
    steps: list[Callable[[], object]] = []
    # By turns, because on few elements writing over an operand is slower; the last sum lands in `out`.
    source, target = inputs[0], out if len(inputs) % 2 == 0 else scratch
    for one in inputs[1:]:
        steps.append(partial(xp.add, source, one, target))
        source, target = target, scratch if target is out else out
    return InTurn(*steps)


def _accurate(name: str) -> Callable[[Any, Any], None]:
    """Return a kernel of ``_erf``; dtypes that it lacks are computed in the nearest one that it has."""

    def widened(x: Any, out: Any) -> None:
        from reactgrad.backend.numpy import _erf

        kernel = getattr(_erf, name)
        if x.dtype == out.dtype and out.dtype.char in "fd" and x.shape == out.shape:
            kernel(x, out)
        else:
            wide = np.float64 if out.dtype.itemsize >= 8 else np.float32
            result = np.empty(out.shape, wide)
            kernel(np.broadcast_to(x, out.shape).astype(wide), result)
            np.copyto(out, result, casting="unsafe")

    return widened


def _bind_gaussian(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
    from reactgrad.backend.numpy import _gaussian

    return _gaussian.bind(inputs, out, attrs)


register_like_numpy(np, "cpu")
register_kernel("erf", "cpu", _accurate("erf"))
register_kernel("erfc", "cpu", _accurate("erfc"))
register_kernel("norm_cdf", "cpu", _accurate("norm_cdf"))
register_binder("gaussian", "cpu", _bind_gaussian)
register_binder("gather", "cpu", _scatter.bind_gather)
register_binder("getitem", "cpu", _scatter.bind_getitem)
register_binder("chain_times", "cpu", _chain.bind_times)
register_binder("chain_over", "cpu", _chain.bind_over)
