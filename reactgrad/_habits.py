"""Errors for names that do not exist here, which say what to write, by the habits of other libraries.

The tables are in the words of NumPy, PyTorch, JAX and pandas. A name that is not in them may still be that of
an op, of a function of NumPy, or nearly that of something that exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import getattr_static
from typing import Any, Final, NoReturn

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ReactgradError
from reactgrad._later import as_found
from reactgrad.scheduler import safe_repr, shortened


class AbsentError(ReactgradError, AttributeError):
    """A Var, a graph or the package has no attribute of this name; the message says what to write.

    What the name is near to is only found for the text, since most such errors come of ``hasattr``.
    """

    def __init__(
        self, message: str, name: str, has: Iterable[str] = (), otherwise: str = ""
    ) -> None:
        super().__init__(message, name=name)
        self.has = tuple(has)
        self.otherwise = otherwise

    def __str__(self) -> str:
        from difflib import get_close_matches  # slow to import, and only for this

        close = get_close_matches(
            str(self.name), [one for one in self.has if one[0] != "_"], 3, 0.7
        )
        way = f"Is it {' or '.join(close)}?" if close else self.otherwise
        return f"{self.args[0]} {way}" if way else str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return AbsentError, (self.args[0], self.name, self.has, self.otherwise), vars(self)


def by_name(*rows: tuple[str, str]) -> dict[str, str]:
    """Return what to write for each of the names in the first column."""
    return {name: way for names, way in rows for name in names.split()}


# What to write, as code, or as a sentence if it begins with a capital; {x} is the Var.
OF_VARS: Final = by_name(
    ("data values get read array result cpu tensor", "{x}.value"),
    (
        "eval compute run forward evaluate block_until_ready",
        "A read computes what it needs: write {x}.value",
    ),
    (
        "assign update put set_value set_ write",
        "{x}.set(new), or g.set({{x}: new, ...}) for several leaves at once",
    ),
    (
        "fill fill_ copy_ add_ sub_ mul_ div_ zero_ sort_ clamp_ relu_ exp_ normal_ uniform_ squeeze_ unsqueeze_",
        "Values are never written in place: y = f({x}) makes a new node, {x}.set(new) gives a leaf a new value",
    ),
    (
        "clone copy",
        "Values are never written in place, so take {x} itself, or {x}.snapshot() for a const of the present value",
    ),
    (
        "requires_grad_",
        "Leaves to be trained are made with g.param; {x}.freeze() and {x}.unfreeze() take them out and in",
    ),
    ("detach_ stop_gradient", "{x}.detach()"),
    ("grad_fn", "{x}.parents, or g.why({x})"),
    ("is_leaf", "not {x}.parents"),
    ("cuda", "{x}.to('cuda:0')"),
    ("type", "{x}.dtype, or {x}.astype(dtype)"),
    ("float", "{x}.astype('float32')"),
    ("double", "{x}.astype('float64')"),
    ("half", "{x}.astype('float16')"),
    ("int long", "{x}.astype('int64')"),
    ("bool", "{x}.astype(bool)"),
    ("dim ndimension", "{x}.ndim"),
    ("is_cuda", "{x}.device"),
    ("new_zeros new_ones new_full new_tensor", "rg.zeros(shape, {x}.dtype), or rg.zeros_like({x})"),
    ("storage untyped_storage data_ptr", "{x}.value"),
    ("chunk", "rg.split({x}, n, axis)"),
    ("view", "{x}.reshape(...)"),
    ("view_as", "{x}.reshape(other.shape)"),
    ("permute", "{x}.transpose(...)"),
    ("t", "{x}.T"),
    ("mT", "{x}.T, or {x}.transpose(...) with all axes"),
    ("unsqueeze", "rg.expand_dims({x}, axis)"),
    ("expand", "rg.broadcast_to({x}, shape)"),
    ("clamp", "{x}.clip(min, max)"),
    ("mul", "{x} * other"),
    ("sub", "{x} - other"),
    ("div", "{x} / other"),
    ("pow", "{x} ** other"),
    ("neg", "-{x}"),
    ("mm bmm mv", "{x} @ other"),
    ("iloc", "{x}[index]"),
    ("loc", "{x}[index]; labels are not kept"),
    ("head", "{x}[:5]"),
    ("apply map pipe", "rg.lift(function)({x})"),
    ("subscribe on_change watch bind connect", "{x}.observe(callback)"),
    ("version _version", "{x}.value_version"),
    ("rename", "{x}.name = 'new'"),
    ("inputs dependencies", "{x}.parents"),
    ("dependents consumers", "{x}.children"),
    ("invalidate", "{x}.touch()"),
    ("dirty is_dirty stale", "{x}.is_stale"),
    ("abs", "abs({x})"),
    ("contiguous", "Values are arrays of one layout, so take {x} itself"),
    ("masked_fill masked_fill_", "rg.where(mask, value, {x})"),
    ("gather", "rg.take_along_axis({x}, index, axis)"),
)

OF_GRAPHS: Final = by_name(
    (
        "variable placeholder var Variable signal state",
        "g.input(value), or g.param(value) for what is trained",
    ),
    ("constant Constant", "g.const(value)"),
    ("parameter Parameter weight", "g.param(value)"),
    (
        "run compute evaluate execute calculate value read pull",
        "y.value, or g.forward(y, z) for several nodes",
    ),
    (
        "update assign set_value set_values write",
        "x.set(new), or g.set({x: new, z: newer}) for several leaves",
    ),
    ("backward grad gradient gradients", "y.backward(), or rg.grad(y, x) for a live gradient"),
    ("node get get_node find var_by_name lookup", "g['name']"),
    (
        "add add_node node_from computed derive map apply",
        "Nodes are made by use: write y = rg.lift(function)(x), or ops on Vars",
    ),
    ("observe subscribe watch on_change", "y.observe(callback)"),
    ("copy clone", "g.fork()"),
    ("scenario what_if simulate", "with g.whatif({x: new}) as w: w[y].value"),
    ("batch atomic begin commit", "with g.transaction():"),
    (
        "reset clear invalidate",
        "g.zero_grad() for gradients, x.touch() for what changed outside, rg.Graph() for a new model",
    ),
    ("delete drop remove_node pop", "g.remove(y)"),
    ("plot show visualize render view", "g.draw(path), or g.explore() in a notebook"),
    ("leaves variables", "g.inputs and g.params"),
    (
        "values summary to_pandas to_frame to_dict items",
        "{one.name: one.value for one in g.inputs}, or y.value for a result",
    ),
    ("parameters", "g.params"),
    ("load restore from_file", "rg.load(path)"),
    ("explain reason", "g.why(y)"),
    ("dirty stale", "g.plan(y).nodes, what a read of y would run"),
    ("flush settle propagate sync", "g.stabilize()"),
)

# What to write where an attribute of a graph is assigned that it has, and that cannot be assigned.
SETTINGS_OF_GRAPHS: Final = by_name(
    ("seed", "g.reseed({value})"),
    ("device", "rg.Graph(device={value}), or x.to({value}) for one node"),
    ("training train eval", "g.train(), or g.eval()"),
)

OF_PACKAGE: Final = by_name(
    (
        "variable Variable tensor Tensor array asarray as_tensor placeholder signal Signal",
        "rg.input(value), rg.param(value) if it is trained, or rg.const(value) if it never changes",
    ),
    ("constant", "rg.const(value)"),
    ("parameter Parameter", "rg.param(value)"),
    ("cat concat hstack vstack", "rg.concatenate([x, y], axis=...)"),
    ("clamp", "rg.clip(x, min, max)"),
    ("chunk", "rg.split(x, n, axis)"),
    ("stop_gradient", "x.detach()"),
    ("mm bmm mv", "x @ y"),
    ("mul", "x * y"),
    ("sub", "x - y"),
    ("div", "x / y"),
    ("pow", "x ** y"),
    ("neg", "-x"),
    ("acos asin atan atan2", "NumPy's names, as rg.arctan(x)"),
    ("unsqueeze", "rg.expand_dims(x, axis)"),
    ("permute", "rg.transpose(x, axes)"),
    ("jit compile", "rg.Graph(jit=True)"),
    ("vmap pmap", "Ops work on whole arrays: give the function arrays with one more axis"),
    ("computed derived memo function delayed task cell node", "rg.lift(function)(x)"),
    ("effect watch observe", "y.observe(callback)"),
    ("cond", "rg.switch(condition, a, b)"),
    ("save", "g.save(path), or rg.save_checkpoint(path, model=net)"),
    ("save_weights save_state_dict", "rg.save_checkpoint(path, model=net)"),
    ("from_pandas DataFrame from_frame", "rg.Table(frame, g)"),
    ("read_excel load_workbook open_excel", "rg.from_excel(path)"),
    (
        "to_excel write_excel",
        "Workbooks are read, and not written: write found.to_pandas().to_excel(path) for a table",
    ),
    ("montecarlo simulate", "rg.monte_carlo(y, {x: ('normal', mean, std)})"),
    ("tensorboard", "rg.SummaryWriter(log_dir)"),
    ("tqdm", "rg.progress(batches)"),
    ("jacfwd jacrev", "rg.jacobian(f)"),
    ("gradient gradients", "rg.grad(y, x)"),
    ("manual_seed seed", "g.reseed(7), or rg.Graph(rng=7); layers take a seed of their own, rng=7"),
    ("rand", "rg.random.uniform((2, 3))"),
    ("randn", "rg.random.normal((2, 3))"),
    ("randint", "rg.random.integers(low, high, (2, 3))"),
    ("randperm", "rg.random.permutation(n)"),
    ("from_numpy", "rg.input(array), rg.param(array) if it is trained, or rg.const(array)"),
    (
        "FloatTensor DoubleTensor LongTensor",
        "rg.input(value, dtype='float32') with the dtype that it is of",
    ),
    ("float double half long int", "a dtype of NumPy, as rg.float32 or 'float32'"),
    (
        "set_default_dtype",
        "Each layer and leaf is given its dtype: write rg.nn.Linear(3, 2, dtype='float32'), or net.float()",
    ),
    ("cuda", "rg.devices() for the devices there are, and x.to('cuda:0')"),
    ("device", "the device as text, x.to('cuda:0')"),
    (
        "utils",
        "Datasets and loaders are in rg.data, and clip_grad_norm_ is in rg.optim: write rg.data.DataLoader(...)",
    ),
    ("Module Linear Sequential", "rg.nn.{name}"),
    ("SGD Adam AdamW", "rg.optim.{name}"),
    ("DataLoader Dataset", "rg.data.{name}"),
    ("load_state_dict", "net.load_state_dict(rg.load_weights(path))"),
    (
        "autograd func",
        "rg.grad(y, x), rg.jacobian, rg.hessian, rg.jvp; rg.Function for a rule of your own",
    ),
    ("is_tensor", "isinstance(x, rg.Var)"),
    ("Size", "a tuple: x.shape is one"),
    ("numel", "x.size"),
    ("t", "x.T"),
    ("multinomial bernoulli", "rg.random.{name}"),
    ("rand_like", "rg.random.uniform(x.shape)"),
    ("randn_like", "rg.random.normal(x.shape)"),
    ("cdist", "rg.linalg.norm(x[:, None] - y[None], axis=-1)"),
    ("special", "The functions are in rg itself: write rg.gammaln(x)"),
    ("amp", "rg.autocast('bfloat16') and rg.GradScaler()"),
    ("Generator", "rg.Graph(rng=7): the generator belongs to the graph"),
    ("get_default_dtype", "x.dtype: each layer and leaf has a dtype of its own"),
)

# Arguments of other libraries, by what they are called here, and those that nothing is called here.
_ARGUMENTS: Final = by_name(
    ("dim dims axes", "axis"),
    ("keepdim keep_dims", "keepdims"),
    ("retain retain_grad", "retain_graph"),
    ("grad_tensors grad_outputs grad_output", "gradient"),
    ("seed random_state", "rng"),
    ("wrt", "xs"),
    ("memory max_memory", "max_bytes"),
    ("threads", "executor"),
    ("strict materialize_grads", "allow_unused"),
    ("argnum", "argnums"),
    ("correction", "ddof"),
    ("num_workers", "workers"),
    ("generator", "rng"),
    ("learning_rate", "lr"),
)
_LEFT_OUT: Final = {
    "create_graph": "gradients are nodes that can be differentiated again, so leave it out",
    "retain_graph": "gradients are nodes that stay as long as they are held, so leave it out",
    "dtype": "write .astype(dtype) behind",
    "out": "values are never written in place, so leave it out",
    "where": "write rg.where(condition, x, other) for the operand",
    "initial": "add it, or take rg.maximum or rg.minimum with it, behind",
    "inplace": "values are never written in place, so leave it out",
    "ddof": "it is an argument of rg.var and rg.std",
    "device": "what is made is moved by .to('cuda:0') behind, so leave it out",
    "requires_grad": "params are trained until they are frozen: write .freeze() behind",
    "pin_memory": "batches are arrays in the memory of the host, so leave it out",
    "pin_memory_device": "batches are arrays in the memory of the host, so leave it out",
    "persistent_workers": "workers are threads, which start at once, so leave it out",
    "prefetch_factor": "each worker has two batches loaded or under way, so leave it out",
    "multiprocessing_context": "workers are threads, so leave it out",
    "worker_init_fn": "workers are threads of this process; rg.data.batch_rng() gives each batch random numbers of its "
    "own, so leave it out",
    "timeout": "workers are threads, which cannot be lost, so leave it out",
    "foreach": "all params of a group are changed at once anyway, so leave it out",
    "fused": "all params of a group are changed at once anyway, so leave it out",
    "capturable": "steps are made by NumPy, so leave it out",
    "differentiable": "a step sets leaves, and no gradient passes it, so leave it out",
    "verbose": "the rates are shown by get_last_lr(), so leave it out",
    "size_average": "write reduction='mean' or reduction='sum'",
    "reduce": "write reduction='none' for the costs of all samples",
}


def absent(
    owner: str,
    x: str,
    name: str,
    habits: Mapping[str, str],
    has: Iterable[str] = (),
    ops: Iterable[str] = (),
) -> AttributeError:
    """Return the error for an attribute that does not exist.

    Parameters
    ----------
    owner : str
        What was asked for it, as ``"a Var"``.
    x : str
        How the message calls it.
    habits
        What to write, by names of other libraries.
    has, ops
        The names that it has, and those of all ops.
    """
    if name.startswith("_") and name not in habits:
        return AttributeError(f"{owner} has no attribute {name!r}")
    x = shortened(x, 60)
    way = habits.get(name)
    if way is not None:
        sentence = way[0].isupper()
        way = way.replace("{name}", name).replace("{x}", x)
        way = f"{way}." if sentence else f"Write {way}."
    elif name in ops:
        way = f"Ops are functions: write rg.{name}({x}, ...)."
    elif callable(getattr(np, name, None)) and not isinstance(getattr(np, name), type):
        way = (
            f"There is no such op: write rg.lift(np.{name})({x}, ...), which calls NumPy on the values "
            "(without a gradient, or with vjp=)."
        )
    text = f"{owner} has no attribute {shortened(name, 100)!r}."
    return AbsentError(f"{text} {way}", name) if way else AbsentError(text, name, has)


def check_assigned(
    thing: object,
    owner: str,
    name: str,
    value: object,
    ways: Mapping[str, str],
    has: Iterable[str] | None = None,
    otherwise: str = "It takes none of your own: keep this in a variable, or write a subclass.",
) -> None:
    """Raise ``AbsentError`` unless an attribute can be assigned.

    Python stores what is assigned under any name, so a mistyped setting would change nothing, and say nothing.

    Parameters
    ----------
    owner : str
        What it is, as ``"a Graph"``.
    ways
        What to write, by names of what is not assigned.
    has
        The names that a new one must not be a mistyped form of; ``None`` for an object that has no attributes but
        those of its class.
    otherwise : str
        What to say of an object without further attributes, where a name is near to none.
    """
    if name in ways and not callable(value):
        way = ways[name].replace("{value}", shortened(safe_repr(value), 60))
        raise AbsentError(f"{name!r} of {owner} cannot be assigned. Write {way}.", name)
    found = getattr_static(type(thing), name, None)
    if found is not None and not isinstance(found, Absent):
        return
    text = f"{owner} has no attribute {shortened(name, 100)!r}."
    if has is None:
        meant = _ARGUMENTS.get(name)
        if meant is not None and hasattr(thing, meant):
            otherwise = f"Is it {meant}?"
        raise AbsentError(text, name, present(thing), otherwise)
    if near := [one for one in has if mistyped(name, one)]:
        raise AbsentError(text, name, (), f"Is it {' or '.join(near)}?")


def mistyped(name: str, meant: str) -> bool:
    """Return whether a name is another one with two letters exchanged, one too many, or one too few.

    Names that differ by a digit are two names.

    Examples
    --------
    >>> mistyped("weigth", "weight"), mistyped("biaas", "bias"), mistyped("layer2", "layer")
    (True, True, False)
    """
    if len(name) == len(meant):
        at = [i for i, (a, b) in enumerate(zip(name, meant, strict=True)) if a != b]
        return (
            at[1:] == [at[0] + 1] and name[at[0]] + name[at[1]] == meant[at[1]] + meant[at[0]]
            if at
            else False
        )
    short, long = sorted((name, meant), key=len)
    return len(short) > 3 and any(
        long[:i] + long[i + 1 :] == short for i, a in enumerate(long) if not a.isdigit()
    )


def typing_errors(name: str) -> list[str]:
    """Return what comes of a name with two letters exchanged, one left out, or one twice."""
    at = range(len(name))
    found = {name[:i] + name[i + 1 : i + 2] + name[i] + name[i + 2 :] for i in at}
    found |= {name[:i] + name[i + 1 :] for i in at}
    found |= {name[:i] + name[i] + name[i:] for i in at}
    return sorted(found - {name})


class Absent:
    """An attribute that other libraries have and a class here has not: it says so when it is read.

    Objects with a ``__getattr__`` of their own could say it of all names, but each of their attributes
    would take twice as long to read.
    """

    __slots__ = ("_error", "_name")

    def __init__(self, name: str, error: Callable[[Any, str], AttributeError]) -> None:
        self._name = name
        self._error = error

    def __get__(self, thing: Any, kind: type) -> NoReturn:
        raise self._error(thing, self._name)


class AbsentInSlots(Absent):
    """An ``Absent`` of a class with slots, which also says what to write instead of an assignment."""

    __slots__ = ()

    def __set__(self, thing: Any, value: object) -> NoReturn:
        if OF_VARS.get(self._name) == "{x}.value":
            thing.value = value  # which says how values are set
        raise self._error(thing, self._name)


def refuse(kind: type, names: Iterable[str], error: Callable[[Any, str], AttributeError]) -> None:
    """Let a class say what to write for names of other libraries, where it has no such attribute.

    Parameters
    ----------
    error
        Returns the error for an object, ``None`` if the class itself is asked, and the name.
    """
    for name in names:
        if not hasattr(kind, name):
            absent = Absent if kind.__dictoffset__ else AbsentInSlots
            setattr(kind, name, absent(name, error))


def answer(kind: type, x: str, habits: Mapping[str, str]) -> None:
    """Let a class say what to write for names of other libraries; its objects are called `x`."""

    def error(thing: object, name: str) -> AttributeError:
        called = (kind if thing is None else type(thing)).__name__
        return absent(f"{'an' if called[0] in 'AEIO' else 'a'} {called}", x, name, habits)

    refuse(kind, habits, error)


def present(thing: object) -> list[str]:
    """Return the names of the attributes that an object has, for ``__dir__``."""
    own = getattr(thing, "__dict__", ())
    absent = {
        name
        for one in type(thing).__mro__
        for name, what in vars(one).items()
        if isinstance(what, Absent) and name not in own
    }
    return [name for name in object.__dir__(thing) if name not in absent]


def absent_from(module: str, habits: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """Return a ``__getattr__`` for a module, which says what to write for names that it does not have."""

    def find(name: str) -> NoReturn:
        error = absent(f"module {module!r}", "x", name, habits, vars(sys.modules[module]))
        raise as_found(error, module) from None

    return find


def absent_from_package(name: str, has: Iterable[str]) -> AttributeError:
    """Return the error for a name that the package does not have."""
    return absent("module 'reactgrad'", "x", name, OF_PACKAGE, has)


def unknown_option(owner: str, name: str, value: object, known: Iterable[str]) -> ParameterError:
    """Return the error for a key that a dict of options does not have.

    Parameters
    ----------
    owner : str
        What the options are of, as ``"a group of SGD"``.
    known
        The options that there are.
    """
    from difflib import get_close_matches  # slow to import, and only for this

    known, shown = tuple(known), shortened(safe_repr(value), 60)
    meant = _ARGUMENTS.get(name) if _ARGUMENTS.get(name) in known else None
    meant = meant or next(iter(get_close_matches(str(name), known, 1, 0.7)), None)
    way = f"Write group[{meant!r}] = {shown}." if meant else f"It has {', '.join(known)}."
    return ParameterError(f"{owner} has no option {shortened(name, 100)!r}. {way}")


def unknown_keyword(call: str, given: Mapping[str, Any], known: Iterable[str]) -> DTypeError:
    """Return the error for keyword arguments that a function does not have.

    Parameters
    ----------
    call : str
        The function, as ``"rg.sum"``.
    known
        The names of the arguments that it has.
    """
    known = tuple(known)
    name, value = next(iter(given.items()))
    shown = shortened(safe_repr(value), 60)
    meant = _ARGUMENTS.get(name)
    if name == "unbiased" and "ddof" in known:
        meant, shown = "ddof", "1" if value else "0"
        return DTypeError(
            f"{call} has no argument {name!r}, as in {name}={safe_repr(value)}. Write ddof={shown}."
        )
    if meant not in known:  # or the other way round: lr of a function that says learning_rate
        meant = next((one for one in known if _ARGUMENTS.get(one) == name), None)
    if meant is None and name not in _LEFT_OUT:
        from difflib import get_close_matches  # slow to import, and only for this

        meant = next(iter(get_close_matches(name, known, 1, 0.7)), None)
    if meant is None and name in _LEFT_OUT:
        way = f"{_LEFT_OUT[name][0].upper()}{_LEFT_OUT[name][1:]}."
    elif meant is not None:
        way = f"Write {meant}={shown}."
    else:
        way = f"It takes {', '.join(known)}." if known else "It takes none by name."
    return DTypeError(f"{call} has no argument {name!r}, as in {name}={shown}. {way}")
