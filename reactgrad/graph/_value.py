"""The common part of Vars and their detached views: reading, and building on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Never

import numpy as np

from reactgrad import ops
from reactgrad._calls import explain_methods
from reactgrad._errors import DTypeError, OutdatedRuleError, ReactgradError, SetError, ShapeError
from reactgrad._habits import OF_VARS, absent
from reactgrad.backend import device_of, holder, owner, read_value
from reactgrad.change._remove import Grave
from reactgrad.core._core import Core, V
from reactgrad.core._handles import refuse_tuple
from reactgrad.flow._gate import detach_node, scale_grad
from reactgrad.graph._array_methods import ArrayMethods
from reactgrad.graph._bits import BitOperators
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST, Leaf
from reactgrad.ops import _numpy_protocols
from reactgrad.reading._implicit_values import check_axes, check_conversion
from reactgrad.reading._value import hand_out
from reactgrad.scheduler import safe_repr
from reactgrad.values._columns import MISSING
from reactgrad.values._function_steps import PLAIN
from reactgrad.values._lending import Lease


class CopyError(ReactgradError, ValueError):
    """NumPy asked for the memory of a node itself."""


class Size(int):
    """A number of elements, which says so where it is called as PyTorch's ``x.size()``."""

    __slots__ = ()

    def __call__(self, *axis: Any) -> Never:
        written = ", ".join([f"{one!r:.20}" for one in axis])
        instead = f"x.shape[{written}]" if axis else "x.shape"
        raise DTypeError(
            f"x.size({written}): size is the number of elements here, as in NumPy, and no function. Write {instead}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


class Value(ArrayMethods, BitOperators, Handle, Generic[V]):
    """The common part of Vars and their detached views: reading, and building on them."""

    __slots__ = ()
    _graph: Core[V]

    # --- reading -----------------------------------------------------------------------------

    @property
    def value(self) -> Any:
        """The value, recomputed if it is stale; read-only, and never changed later.

        It is the same object until the value changes. Values of shape () are NumPy scalars. Python
        numbers and results of Python functions are returned as they are.

        Raises
        ------
        UnsetError
            If an input that is needed has no value.
        Exception
            The error of a node that is needed.
        """
        graph = self._graph
        slot = self._slot
        handed = graph._handed
        # Without an entry no caller has got the present value. The check is cheaper than a KeyError.
        if slot in handed:
            try:
                value = handed[slot]
                if not (
                    # The order matters, since other threads may go on meanwhile. A failing transaction
                    # marks its nodes before it ends, and pending changes are marked before they are
                    # no longer pending. So whatever ends between two of these checks is seen by a
                    # later one.
                    graph._noted
                    or graph._pending
                    or graph._mark[slot]
                    or graph._computing
                    or graph._followed
                    # No lock is held: if the entry is the same before and after these checks, it was
                    # the value throughout.
                    or value is not handed[slot]
                ):
                    if type(value) is not Lease:
                        return value
                    value = value()
                    if value is not None:
                        return value
            except KeyError:  # another thread has removed the entry meanwhile
                pass
        if graph._may_read:
            graph._may_read(slot)
        reader = graph._scheduler.reader  # the record of a function that is running, if any
        if reader is not None and not (graph._followed or graph._transient) and reader.notes(slot):
            value = graph._host.data[slot]
            if type(value) in PLAIN:
                return value
            value = graph._handed.get(slot, MISSING)
            return hand_out(graph, slot) if value is MISSING or type(value) is Lease else value
        return graph._value(slot)

    @value.setter
    def value(self, value: Any) -> None:
        raise SetError(
            f"a value cannot be assigned; write {self.label}.set({safe_repr(value):.40})."
        )

    def numpy(self) -> Any:
        """Return the value as a new, writable NumPy array."""
        return np.array(self._to_host())

    def _to_host(self) -> Any:
        value, found = self.value, self._graph._host.specs[self._slot]
        if found is not None:
            return value if found.kind == "cpu" else device_of(found.device).to_numpy(value)
        # Only the value shows where it lives.
        device = holder(value)
        return value if device is None or device.kind == "cpu" else device.to_numpy(value)

    def item(self) -> Any:
        """Return the one element as a Python number.

        Raises
        ------
        ShapeError
            If there is not exactly one element.
        """
        value = np.asarray(self._to_host())
        if value.size != 1:
            raise ShapeError(
                f"{self.label!r} has shape {value.shape}; only a single element is a number. Index "
                "or reduce it first."
            )
        return value.item()

    def tolist(self) -> Any:
        """Return the value as a Python number, or as nested lists of them."""
        return np.asarray(self._to_host()).tolist()

    # --- implicit conversions: only of what never changes, see `check_conversion` ----------------

    # pandas leaves its operators to operands of a higher priority: `series * var` is a node.
    __pandas_priority__ = 10_000

    def __float__(self) -> float:
        check_conversion(self, "float({x})", "number")
        return float(self.item())

    def __int__(self) -> int:
        check_conversion(self, "int({x})", "number")
        return int(self.item())

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the value as a fraction, as ``float.as_integer_ratio``, by which ``statistics`` takes numbers.

        Raises
        ------
        ImplicitValueError
            If the value may change.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().const(1.5).as_integer_ratio()
        (3, 2)
        """
        check_conversion(self, "{x}.as_integer_ratio()", "number")
        return self.item().as_integer_ratio()

    def __index__(self) -> int:
        check_conversion(self, "{x} as an index, a length or a count", "index")
        number = self.item()
        if isinstance(number, bool) or not isinstance(number, int):
            raise DTypeError(
                f"{self.label!r} is of {self.dtype} and cannot be an index; integers can."
            )
        return number

    def __round__(self, ndigits: int | None = None) -> Any:
        digits = "" if ndigits is None else f", {ndigits}"
        check_conversion(self, f"round({{x}}{digits})", "number")
        return round(self.item(), ndigits)

    def __complex__(self) -> complex:
        check_conversion(self, "complex({x})", "number")
        return complex(self.item())

    def __bool__(self) -> bool:
        check_conversion(self, "bool({x})", "bool")
        found = self._graph._host.specs[self._slot]
        if found is None:
            return bool(self.value)
        return bool(self.item())

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        value = self.value
        if type(value) is np.ndarray and value.shape:
            raise DTypeError(
                f"the format {spec!r} is for a number, and {self.label!r} is an array of shape {value.shape}. Write "
                f"np.array2string({self.label}.value, precision=2), or format one element, {self.label}[0]."
            )
        return format(value, spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise CopyError(
                "np.asarray(var, copy=False): a Var gives NumPy a copy, so that writing to it "
                "cannot change the graph; var.value is read-only and costs no copy."
            )
        check_conversion(self, "np.asarray({x})", "array")
        return np.array(self._to_host(), dtype)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        # The array is new, so it is a copy in any case.
        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        options = {name: one for name, one in given.items() if one is not None}
        return self._copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self.device == "cpu" else self.value.__dlpack_device__()

    def _copy(self) -> Any:
        """Return the value as a new array on its device."""
        found = self._graph._host.specs[self._slot]
        if found is None or found.kind == "cpu":
            return self.numpy()
        value, device = self.value, device_of(found.device)
        copy = device.empty(found.storage, found.dtype)
        device.assign(copy, value)
        return device.reshape(copy, tuple(value.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, without computing; ``None`` for lengths not known before an input is set.

        The shape of a Python function's result is computed unless it was declared.
        """
        found = self._graph._host.specs[self._slot]
        return self.value_shape() if found is None else found.shape  # type: ignore[return-value]

    def value_shape(self) -> tuple[int, ...]:
        """Return the shape of the present value, which is computed if needed."""
        value = self._present()
        own = getattr(value, "shape", None)  # of an array of a device NumPy would make a copy first
        shape = own if type(own) is tuple else np.shape(value)
        self._graph._programs.observe(self._slot, shape)
        return shape

    def _present(self) -> Any:
        """Return the value, for a caller that needs its shape or dtype.

        Raises
        ------
        OutdatedRuleError
            If the value is not there, in the middle of a change: nothing may run before it is made.
        """
        graph, slot = self._graph, self._slot
        midst = graph._programs.reshaping or graph._programs.changing
        if midst and (graph._scheduler.is_stale(slot) or graph._host.data[slot] is MISSING):
            raise OutdatedRuleError(
                f"{self.label!r} has a shape that shows only in its value, which was not computed anew "
                "when a gradient was built. Differentiate again once all inputs have values."
            )
        return graph._value(slot)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, without computing; the dtype of a Python function's result is computed."""
        found = self._graph._host.specs[self._slot]
        if found is None:
            value = self._present()
            own = getattr(value, "dtype", None)
            if isinstance(own, np.dtype):
                return own
            known = read_value(value, "a value")[0] if owner(value) else None
            return np.asarray(value).dtype if known is None else known.dtype
        return found.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self.shape:
            if n is None:
                raise self._unknown_length()
            size *= n
        return Size(size)

    def _unknown_length(self) -> ShapeError:
        return ShapeError(
            f"{self.label!r} has shape {self.shape}: the length is not known before the input is set."
        )

    @property
    def device(self) -> str:
        """The device of the value, such as ``"cpu"``; that of a Python function's result is computed."""
        found = self._graph._host.specs[self._slot]
        if found is None:
            found = read_value(self._present(), self.label)[0]
        return "cpu" if found is None else found.device

    @property
    def graph(self) -> Any:
        """The graph that the node belongs to."""
        return self._graph

    def _literal(self) -> int | float | complex | None:
        """Return the Python number that a constant holds, ``None`` if it holds none."""
        host = self._graph._host
        found = host.specs[self._slot]
        if host.ops[self._slot] is CONST and found is not None and found.weak is not None:
            return host.data[self._slot]
        return None

    # --- building ----------------------------------------------------------------------------

    # These are the functions themselves, with the node as their first argument: a method around each
    # would add a call to every node that is built.
    __add__ = ops.add
    __sub__ = ops.subtract
    __mul__ = ops.multiply
    __truediv__ = ops.divide
    __floordiv__ = ops.floor_divide
    __mod__ = ops.remainder
    __pow__ = ops.raised
    __matmul__ = ops.matmul
    __eq__ = ops.equal  # type: ignore[assignment]
    __ne__ = ops.not_equal  # type: ignore[assignment]
    __lt__ = ops.less
    __le__ = ops.less_equal
    __gt__ = ops.greater
    __ge__ = ops.greater_equal

    def __radd__(self, other: Any) -> Any:
        return ops.add(other, self)

    def __rsub__(self, other: Any) -> Any:
        return ops.subtract(other, self)

    def __rmul__(self, other: Any) -> Any:
        return ops.multiply(other, self)

    def __rtruediv__(self, other: Any) -> Any:
        return ops.divide(other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return ops.floor_divide(other, self)

    def __rmod__(self, other: Any) -> Any:
        return ops.remainder(other, self)

    def __rpow__(self, other: Any) -> Any:
        return ops.power(other, self)

    def __rmatmul__(self, other: Any) -> Any:
        return ops.matmul(other, self)

    def __divmod__(self, other: Any) -> Any:
        return ops.floor_divide(self, other), ops.remainder(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return ops.floor_divide(other, self), ops.remainder(other, self)

    def __neg__(self) -> Any:
        return ops.negative(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return ops.absolute(self)

    __floor__ = ops.floor
    __ceil__ = ops.ceil

    def __trunc__(self) -> Any:
        return ops.trunc(self)

    __hash__ = object.__hash__

    def __getitem__(self, key: Any) -> Any:
        if self._graph._host.specs[self._slot] is None:
            check_axes(self)
        return ops.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise SetError(
            f"{self.label}[...] = ... would change a value behind its version. For an input or param "
            f"write `with {self.label}.mutate() as a: a[...] = ...`; for a new node {self.label}.at[...].set(...)."
        )

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise DTypeError(f"{self.label!r} has shape () and so no length.")
        if shape[0] is None:
            raise self._unknown_length()
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not len(self):  # raises where there is none
            check_conversion(self, "iter({x}), of a node without rows,", "rows")
        return iter(ops.unbind(self))  # refuses another length, which `sum(x)` would not follow

    @property
    def T(self) -> Any:
        """The transpose: the axes are reversed."""
        return ops.transpose(self)

    def transpose(self, *axes: Any) -> Any:
        """Return the value with its axes in another order; see ``rg.transpose``."""
        return ops.transpose(self, None if axes in ((), (None,)) else _spread(axes))

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return the elements in another shape; see ``rg.reshape``."""
        return ops.reshape(self, _spread(shape), order)

    def squeeze(self, axis: Any = None) -> Any:
        """Return the value without axes of length 1; see ``rg.squeeze``."""
        return ops.squeeze(self, axis)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the value converted to another dtype; see ``rg.astype``."""
        return ops.astype(self, dtype, copy=copy)

    def sum(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> Any:
        """Return the sum over axes; see ``rg.sum``."""
        return ops.sum(self, axis, keepdims=keepdims, **unknown)

    def mean(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> Any:
        """Return the mean over axes; see ``rg.mean``."""
        return ops.mean(self, axis, keepdims=keepdims, **unknown)

    def max(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> Any:
        """Return the largest element over axes; see ``rg.max``."""
        return ops.max(self, axis, keepdims=keepdims, **unknown)

    def min(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> Any:
        """Return the smallest element over axes; see ``rg.min``."""
        return ops.min(self, axis, keepdims=keepdims, **unknown)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Return the elements limited to an interval; see ``rg.clip``."""
        return ops.clip(self, min, max)

    def snapshot(self) -> Any:
        """Return a constant with the present value."""
        refuse_tuple(self._graph, self._slot, "snapshot")
        graph: Any = self._graph
        return graph.const(self.value)

    def detach_node(self) -> V:
        """Return a node of its own with the same value that passes no gradient.

        ``detach`` blocks the gradient on one edge; this is a node that blocks it. It shows in drawings,
        and still stops gradients after an edit gives it another operand. Its value is a view.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param([1.0, 2.0])
        >>> h = w.detach_node()
        >>> h.requires_grad, rg.grad((h * w).sum(), w).value
        (False, array([1., 2.]))
        """
        return detach_node(self)

    def scale_grad(self, factor: float) -> V:
        """Return a node with the same value and ``factor`` times its gradient.

        Other uses of this node keep their whole gradient. The value of the new node is a view.

        Parameters
        ----------
        factor : float
            -1.0 reverses the gradient. For a factor that changes use ``register_hook``.

        Raises
        ------
        DTypeError
            If ``factor`` is no finite number.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param(3.0)
        >>> y = w.scale_grad(-1.0) ** 2
        >>> y.value, rg.grad(y, w).value
        (np.float64(9.0), np.float64(-6.0))
        """
        return scale_grad(self, factor)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _numpy_protocols.array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _numpy_protocols.array_function(function, args, kwargs)

    def __iadd__(self, other: Any) -> Any:
        return self._augmented(ops.add, other, "+=")

    def __isub__(self, other: Any) -> Any:
        return self._augmented(ops.subtract, other, "-=")

    def __imul__(self, other: Any) -> Any:
        return self._augmented(ops.multiply, other, "*=")

    def __itruediv__(self, other: Any) -> Any:
        return self._augmented(ops.divide, other, "/=")

    def __ifloordiv__(self, other: Any) -> Any:
        return self._augmented(ops.floor_divide, other, "//=")

    def __imod__(self, other: Any) -> Any:
        return self._augmented(ops.remainder, other, "%=")

    def __ipow__(self, other: Any) -> Any:
        return self._augmented(ops.raised, other, "**=")

    def __imatmul__(self, other: Any) -> Any:
        return self._augmented(ops.matmul, other, "@=")

    def _augmented(self, op: Callable[[Any, Any], Any], other: Any, sign: str) -> Any:
        if isinstance(self._graph._host.ops[self._slot], Leaf):
            name = self.label
            raise SetError(
                f"`{name} {sign} ...` would put a new node under this name and leave the leaf as it "
                f"is. To change its value write {name}.set({name}.value {sign[:-1]} ...); for a new "
                f"node, y = {name} {sign[:-1]} ..."
            )
        return op(self, other)


def absent_of(var: Any, name: str) -> AttributeError:
    """Return the error for an attribute of other libraries that Vars do not have."""
    x = "x" if var is None or type(var._graph) is Grave else var.name
    return absent("a Var", x, name, OF_VARS, ops={*vars(ops), *ops.PLACES})


def _spread(numbers: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments of ``reshape(2, 3)`` or ``reshape((2, 3))`` as one tuple."""
    if len(numbers) == 1 and (numbers[0] is None or isinstance(numbers[0], tuple | list)):
        return () if numbers[0] is None else tuple(numbers[0])
    return tuple(numbers)


explain_methods(Value, ("squeeze", "clip", "astype"))
