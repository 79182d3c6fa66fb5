"""What transforms cannot do says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reactgrad as rg

# --- what cannot be done says why (rule D10) -----------------------------------------------------------


def vector() -> Any:
    return rg.Graph().param([1.0, 2.0], name="w")


def identity(x: Any) -> Any:
    return x


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "grad: nothing to differentiate for": (
        lambda: rg.grad(vector().sum()),
        RuntimeError,
        r"rg\.grad of a node needs the nodes.*rg\.grad\(y, x\)",
    ),
    "jacobian: nothing to differentiate for": (
        lambda: rg.jacobian(vector()),
        RuntimeError,
        r"rg\.jacobian\(y, x\)",
    ),
    "jacobian: unused": (
        lambda: (lambda w: rg.jacobian(w, w.graph.param(1.0, name="v")))(vector()),
        RuntimeError,
        r"'w' does not depend on 'v'.*allow_unused=True",
    ),
    "jacobian: mode": (
        lambda: (lambda w: rg.jacobian(w, w, "backward"))(vector()),  # type: ignore[arg-type]
        RuntimeError,
        r"mode='backward'.*'forward'.*'reverse'.*None chooses",
    ),
    "jacobian: no Var": (
        lambda: rg.jacobian(vector(), [1.0]),
        TypeError,
        r"takes Vars of this graph, or names, not float",
    ),
    "jacobian: integers": (
        lambda: (lambda n: rg.jacobian(n * 2.0, n))(rg.Graph().input(3, name="n")),
        TypeError,
        r"'n'.*int64.*3\.0 instead of 3",
    ),
    "jacobian: integer result": (
        lambda: (lambda n: rg.jacobian(n, n))(rg.Graph().input(3)),
        TypeError,
        r"int64.*astype",
    ),
    "hessian: several elements": (
        lambda: (lambda w: rg.hessian(w * w, w))(vector()),
        ValueError,
        r"shape \(2,\).*\.sum\(\).*weights",
    ),
    "hvp: several elements": (
        lambda: (lambda w: rg.hvp(w * w, w, [1.0, 1.0]))(vector()),
        ValueError,
        r"shape \(2,\)",
    ),
    "hvp: direction": (
        lambda: (lambda w: rg.hvp((w * w).sum(), w, 1.0))(vector()),
        ValueError,
        r"direction for 'w' has shape \(\).*\(2,\)",
    ),
    "vjp: shape": (
        lambda: (lambda w: rg.vjp(w * w, w, 1.0))(vector()),
        ValueError,
        r"v has shape \(\).*\(2,\)",
    ),
    "vjp: without v": (
        lambda: (lambda w: rg.vjp(w * w, w))(vector()),
        RuntimeError,
        r"rg\.vjp\(y, xs, v\).*rg\.vjp\(fn, \*primals\)",
    ),
    "value_and_grad: no Var": (
        lambda: rg.value_and_grad(3.0, vector()),
        TypeError,
        r"takes a Var, not float",
    ),
    "grad: a number and no nodes": (
        lambda: rg.grad(3.0),
        TypeError,
        r"rg\.grad\(y, x\); or a function",
    ),
    "function: a node of another graph": (
        lambda: (lambda w: rg.grad(lambda a: (a * w).sum())(2.0))(vector()),
        rg.GraphError,
        r"nodes of a graph of its own.*x\.value",
    ),
    "function: another graph's node first": (
        lambda: (lambda w: rg.grad(lambda a: (w * a).sum())(2.0))(vector()),
        rg.GraphError,
        r"nodes of a graph of its own.*x\.value",
    ),
    "function: several elements": (
        lambda: rg.grad(identity)([1.0, 2.0]),
        ValueError,
        r"rg\.grad\(identity\).*shape \(2,\).*\.sum\(\).*rg\.jacobian\(identity\).*rg\.vjp\(identity",
    ),
    "function: hessian of several elements": (
        lambda: rg.hessian(identity)([1.0, 2.0]),
        ValueError,
        r"rg\.hessian\(identity\).*shape \(2,\)",
    ),
    "function: integers": (
        lambda: rg.grad(identity)(3),
        TypeError,
        r"rg\.grad\(identity\): argument 0 is a Python int.*3\.0 instead of 3",
    ),
    "function: a string": (
        lambda: rg.grad(lambda x, how: x, 1)(3.0, "sum"),
        TypeError,
        r"argument 1 is str.*argnums=",
    ),
    "function: a dictionary": (
        lambda: rg.grad(lambda p: p["w"])({"w": 1.0}),
        TypeError,
        r"rg\.grad\(<lambda>\) was called with dict.*numbers and arrays.*of their own",
    ),
    "function: argnums too large": (
        lambda: rg.grad(identity, 2)(1.0),
        RuntimeError,
        r"argnums=2.*1 positional arguments.*from 0",
    ),
    "function: argnums of another kind": (
        lambda: rg.grad(identity, "x"),
        TypeError,
        r"argnums='x'.*by position",
    ),
    "function: a Var as argnums": (
        lambda: rg.grad(identity, vector()),
        TypeError,
        r"pass a Var first",
    ),
    "function: gradient=": (
        lambda: rg.grad(identity, gradient=1.0),
        RuntimeError,
        r"takes no gradient=; use rg\.vjp\(fn, \*primals\)",
    ),
    "function: allow_unused=": (
        lambda: rg.jacobian(identity, allow_unused=True),
        RuntimeError,
        r"takes no allow_unused=; unused arguments get zeros",
    ),
    "function: returns nothing": (
        lambda: rg.grad(lambda x: None)(1.0),
        TypeError,
        r"returned NoneType; it must return one Var",
    ),
    "function: returns several": (
        lambda: rg.grad(lambda x: (x, x))(1.0),
        TypeError,
        r"returned tuple.*rg\.stack",
    ),
    "function: returns integers": (
        lambda: rg.grad(lambda x: x.astype(int))(1.0),
        TypeError,
        r"int64",
    ),
    "jvp of a function: no tuple": (
        lambda: rg.jvp(identity, 1.0, 1.0),
        TypeError,
        r"tuple of the function's arguments, not float.*\(x,\)",
    ),
    "jvp of a function: fewer directions": (
        lambda: rg.jvp(identity, (1.0, 2.0), (1.0,)),
        RuntimeError,
        r"2 arguments and 1 directions",
    ),
    "jvp of a function: shape": (
        lambda: rg.jvp(identity, ([1.0, 2.0],), ([1.0],)),
        ValueError,
        r"rg\.jvp\(identity\): direction 0 has shape \(1,\).*\(2,\)",
    ),
    "vjp of a function: shape": (
        lambda: rg.vjp(identity, [1.0, 2.0])[1](1.0),
        ValueError,
        r"rg\.vjp\(identity\): v has shape \(\).*\(2,\)",
    ),
    "vjp of a function: complex": (
        lambda: rg.vjp(identity, [1.0, 2.0])[1]([1j, 1j]),
        TypeError,
        r"v is complex128\[2\]; directions are floats",
    ),
    "vjp of a function: named arguments": (
        lambda: rg.vjp(identity, x=1.0),
        RuntimeError,
        r"rg\.vjp of a function takes no x=; differentiate lambda x: fn\(x, \.\.\.\)",
    ),
    "vjp of a function: no arguments": (
        lambda: rg.vjp(identity),
        RuntimeError,
        r"no arguments: rg\.vjp\(fn, \*primals\)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_done_says_why(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


def test_nodes_to_differentiate_for_may_be_named() -> None:
    g = rg.Graph()
    x, w = g.param([1.0, 2.0], name="x"), g.param([3.0, 4.0], name="w")
    y = (x * x * w).sum()
    assert rg.grad(y, "x") is rg.grad(y, x)
    named, given = rg.grad(y, ["x", w]), rg.grad(y, [x, w])
    assert all(a is b for a, b in zip(named, given, strict=True))
    assert rg.jacobian(y, "x") is rg.jacobian(y, x)
    assert rg.hessian(y, "x") is rg.hessian(y, x)
    with pytest.raises(rg.UnknownNameError, match="z"):
        rg.grad(y, "z")
