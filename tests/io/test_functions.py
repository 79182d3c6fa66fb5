"""Which functions a file may name, and which graphs can be saved at all."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.nodes import _function_names
from tests.io import functions
from tests.io.files import forged, packed, read, there_and_back

pytest.importorskip("safetensors")


def local(a: Any) -> Any:
    return a


local.__qualname__ = "gone"

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "lambda": (lambda: lambda a: a, r"it is a lambda.* Write it as a def at the top level"),
    "named lambda": (lambda: functions.nameless, "it is a lambda"),
    "local": (functions.maker, r"inside of another function \(maker.<locals>.inner\).* top level"),
    "partial": (lambda: functools.partial(functions.double), r"partial.*: rg.lift\(f\)\(x, 3.0\)"),
    "method": (lambda: functions.Holder().method, r"method bound to an object.*as arguments"),
    "array method": (lambda: np.add.reduce, "method bound to an object"),
    "class method": (lambda: dict.fromkeys, "method bound to an object"),
    "instance": (functions.Holder, None),
    "callable": (lambda: functions.Holder(), "an object of class Holder, not a function"),
    "redefined": (lambda: functions.first_redefined, "redefined or reloaded"),
    "gone": (lambda: local, "tests.io.test_functions:gone is not there"),
}  # type: ignore[dict-item]
del REFUSED["instance"]


@pytest.mark.parametrize("kind", REFUSED)
def test_functions_without_a_name_are_refused_and_the_message_says_what_to_write(
    kind: str, tmp_path: Path
) -> None:
    make, message = REFUSED[kind]
    g = rg.Graph()
    y = rg.lift(make())(g.input(1.0))
    g.keep(y).name = "price"
    with pytest.raises(rg.SaveError, match=f"(?s)'price'.*function.*cannot be saved: .*{message}"):
        g.save(tmp_path / "g")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("what", ["vjp", "jvp", "cutoff", "leaf cutoff"])
def test_other_functions_of_a_node_are_refused_likewise(what: str, tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x", cutoff=(lambda a, b: True) if what == "leaf cutoff" else None)
    rules = {what: lambda *args: args[0]} if what in ("vjp", "jvp") else {}
    y = rg.lift(functions.double, **rules)(x)
    y.name = "y"
    if what == "cutoff":
        y.cutoff = lambda a, b: True
    node = "x" if what == "leaf cutoff" else "y"
    with pytest.raises(rg.SaveError, match=rf"'{node}'.*{what.split()[-1]}.*it is a lambda"):
        g.save(tmp_path / "g")


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (object(), "builtins.object has no form"),
        ({1}, "builtins.set has no form"),
        (functions.double, "builtins.function has no form"),
        (np.array(["a"]), "dtype <U1"),
        (np.longdouble(1), "that every machine reads alike"),
    ],
    ids=["object", "set", "function", "text", "long double"],
)
def test_fixed_arguments_without_a_form_are_refused(
    fixed: Any, message: str, tmp_path: Path
) -> None:
    g = rg.Graph()
    y = rg.lift(functions.affine)(g.input(1.0), fixed)
    y.name = "y"
    with pytest.raises(rg.SaveError, match=f"'y'.*'affine'.*fixed argument.*{message}"):
        g.save(tmp_path / "g")


def test_leaves_without_a_form_are_refused(tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(functions.Holder(), name="x")
    with pytest.raises(
        rg.SaveError, match=r"'x' holds <.*Holder.* cannot be saved: .*lists, tuples"
    ):
        g.save(tmp_path / "g")
    x.set("a")
    g.save(tmp_path / "g")


def test_an_endless_list_is_refused(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    g = rg.Graph()
    y = rg.lift(functions.affine)(g.input(1.0), endless)
    with pytest.raises(rg.SaveError, match="nested more than 50 deep"):
        g.save(tmp_path / "g")
    assert y.is_stale


def test_an_op_that_is_not_the_known_one_is_refused(tmp_path: Path) -> None:
    from reactgrad.nodes._handle import apply
    from reactgrad.nodes._op import Op
    from reactgrad.ops._layout import ALIAS

    g = rg.Graph()
    x = g.input(1.0)
    y = apply(Op("alias", ALIAS.infer), (x,))
    with pytest.raises(rg.SaveError, match="an op 'alias' which is not the one known by that name"):
        g.save(tmp_path / "g")
    assert y.is_stale


ACCEPTED = [
    *(math.sin, np.tanh, np.linalg.norm, np.float32, len, functions.double),
    *(functions.Holder.static, functions.decorated.__wrapped__),
]


@pytest.mark.parametrize("function", ACCEPTED, ids=lambda f: getattr(f, "__qualname__", str(f)))
def test_functions_of_modules_come_back(function: Any) -> None:
    g = rg.Graph()
    x = g.input("abc" if function is len else 0.5)
    y = rg.lift(function)(x)
    held = there_and_back(g).nodes
    assert held[1]._graph._host.ops[held[1]._slot].function is function
    assert type(held[1].value) is type(y.value)


def test_functions_behind_decorators_come_back_as_they_are() -> None:
    g = rg.Graph()
    y = functions.twice_decorated(g.input(1.0))
    held = there_and_back(g).nodes
    assert held[1]._graph._host.ops[held[1]._slot].function is y._graph._host.ops[y._slot].function
    assert held[1].value == 3.0


# --- trust ----------------------------------------------------------------------------------------


def with_function(path: Path, name: str, wrappers: int = 0) -> Path:
    """A file with a node that calls the function of this name."""
    g = rg.Graph()
    y = rg.lift(functions.double)(g.input(1.0))
    y.name = "y"
    manifest, tensors = packed(g)
    for definition in manifest["definitions"]:
        if "function" in definition:
            definition["function"] = [name, wrappers]
    return forged(path, manifest, tensors)


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "builtins:exec", "subprocess:run", "numpy:save"),
        *(
            "reactgrad.nodes._function_names:find",
            "tests.io.functions:never_lifted",
            "pickle:loads",
        ),
    ],
)
def test_functions_that_the_program_has_not_lifted_are_refused(name: str, tmp_path: Path) -> None:
    """Also those of modules that are there anyway: a file must not choose what runs."""
    module = name.partition(":")[0]
    path = with_function(tmp_path / "g", name)
    with pytest.raises(rg.LoadError) as caught:
        rg.load(path)
    assert str(path) in str(caught.value)
    assert f"calls {name!r}" in str(caught.value)
    assert f"rg.load(path, trust=['{module}'])" in str(caught.value)


def test_nothing_is_imported_that_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_a_stranger.py").write_text("def f(a):\n    return a\n")
    (tmp_path / "pack_of_a_stranger").mkdir()
    (tmp_path / "pack_of_a_stranger" / "__init__.py").write_text("")
    (tmp_path / "pack_of_a_stranger" / "inner.py").write_text("def f(a):\n    return a + 40\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = with_function(tmp_path / "g", "module_of_a_stranger:f")
    for trust in ((), ["module_of"], ["module_of_a_stranger.f"], "module", ["pack_of_a_stranger"]):
        with pytest.raises(rg.LoadError, match="If you trust this module"):
            rg.load(path, trust=trust)
    assert "module_of_a_stranger" not in sys.modules
    assert rg.load(path, trust="module_of_a_stranger")["y"].value == 1.0
    inner = with_function(tmp_path / "h", "pack_of_a_stranger.inner:f")
    assert rg.load(inner, trust=["pack_of_a_stranger"])["y"].value == 41.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests.io.functions:absent", "no function 'absent'"),
        ("tests.io.functions:np.save", "no function 'np'"),
        ("tests.io.functions:functools.partial", "no function 'functools'"),
        ("tests.io.functions:double.__globals__", "not of the form"),
        ("tests.io.functions:Holder.__init__", "not of the form"),
        ("tests.io.functions:double.method", "goes through something that is no class"),
        ("tests.io.functions:CALLS", "no function"),
        ("tests.io.functions:Any", "belongs to another module|no function"),
        ("tests.io.functions:nameless", "belongs to another module"),
        ("tests.io.absent:f", "cannot be imported"),
        ("tests.io.functions.double:f", "cannot be imported"),
        ("tests.io.functions", "not of the form"),
        ("tests.io..functions:double", "not of the form"),
        ("tests.__main__:main", "not of the form"),
        ("tests.io.functions:__main__", "not of the form"),
        ("../tests/io/functions:double", "not of the form"),
        ("tests.io.functions:double()", "not of the form"),
        ("tests.io.functions:", "not of the form"),
        (":double", "not of the form"),
        ("", "not of the form"),
    ],
)
def test_names_with_tricks_are_refused_even_where_the_module_is_trusted(
    name: str, message: str, tmp_path: Path
) -> None:
    path = with_function(tmp_path / "g", name)
    with pytest.raises(rg.LoadError, match=message):
        rg.load(path, trust=["tests"])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def (", "SyntaxError: invalid syntax"),
    ],
)
def test_a_trusted_module_that_cannot_be_imported_is_an_error_of_loading(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    path = with_function(tmp_path / "g", "broken_module:f")
    with pytest.raises(rg.LoadError) as caught:
        rg.load(path, trust=["broken_module"])
    assert f"broken_module cannot be imported: {says}" in str(caught.value)


def test_trust_in_a_package_runs_no_program_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "trusted_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("trusted_package.__main__:f", "trusted_package.__init__:f"):
        with pytest.raises(rg.LoadError, match="not of the form"):
            rg.load(with_function(tmp_path / "g", name), trust=["trusted_package"])
    assert "trusted_package" not in sys.modules


@pytest.mark.parametrize("wrappers", [1, 8, 9, -1, 10**6])
def test_wrappers_that_are_not_there_are_refused(wrappers: int, tmp_path: Path) -> None:
    path = with_function(tmp_path / "g", "tests.io.functions:double", wrappers)
    with pytest.raises(rg.LoadError, match="wrapped otherwise|should be from 0 to 8"):
        rg.load(path, trust=["tests"])


def test_both_rules_of_a_function_come_back(tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.param(3.0, name="x")
    y = rg.lift(functions.double, vjp=functions.double_vjp, jvp=functions.double_jvp)(x)
    g.keep(y).name = "y"
    g.save(tmp_path / "g")
    h = rg.load(tmp_path / "g")
    assert rg.grad(h["y"], h["x"]).value == 2.0
    assert rg.jvp(h["y"], h["x"], 1.0).value == 2.0


@pytest.mark.parametrize("use", ["lift", "vjp", "jvp", "cutoff", "cutoff of a node"])
def test_what_the_program_uses_itself_is_accepted(
    use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_function_names, "_known", set())
    path = with_function(tmp_path / "g", "tests.io.functions:double")
    with monkeypatch.context() as patch:
        patch.setattr(_function_names, "_known", set())
        with pytest.raises(rg.LoadError, match="has not used in a graph itself"):
            rg.load(path)
        g = rg.Graph()
        if use == "lift":
            rg.lift(functions.double)
        elif use in ("vjp", "jvp"):
            rg.lift(functions.never_lifted, **{use: functions.double})
        elif use == "cutoff":
            g.input(1.0, cutoff=functions.double)
        else:
            g.input(1.0).cutoff = functions.double
        assert rg.load(path)["y"].value == 2.0


@pytest.mark.slow
def test_a_function_is_found_in_another_process(tmp_path: Path) -> None:
    """In a process that has not built the graph: with trust, and with the module that lifts it."""
    (tmp_path / "model_module.py").write_text(
        "import reactgrad as rg\n@rg.lift\ndef triple(a):\n    return a * 3.0\n"
    )
    prefix = f"import sys; sys.path[:0] = {[str(tmp_path), *sys.path]}; import reactgrad as rg; "
    path = repr(str(tmp_path / "g"))

    def python(program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", prefix + program], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() or done.stderr

    assert (
        python(
            "import model_module; g = rg.Graph(); y = model_module.triple(g.input(2.0)); "
            f"y.name = 'y'; g.save({path}); print('saved')"
        )
        == "saved"
    )
    assert "trust=['model_module']" in python(f"rg.load({path})")
    assert python(f"print(rg.load({path}, trust=['model_module'])['y'].value)") == "6.0"
    assert python(f"import model_module; print(rg.load({path})['y'].value)") == "6.0"


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    g = rg.Graph()
    g.save(tmp_path / "g")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    for act in (lambda: g.save(tmp_path / "h"), lambda: rg.load(tmp_path / "g")):
        with pytest.raises(rg.MissingExtraError, match=r'pip install "reactgrad\[io\]"'):
            act()
    assert issubclass(rg.MissingExtraError, ImportError)
    assert [p.name for p in tmp_path.iterdir()] == ["g"]


def test_no_pickle_is_in_the_file(tmp_path: Path) -> None:
    g = rg.Graph()
    y = rg.lift(functions.thing)(g.input("nested"))
    y.value
    g.save(tmp_path / "g")
    manifest, _ = read(tmp_path / "g")
    assert [*map(type, manifest.values())].count(list) == len(manifest) - 3
    assert b"\x80\x04\x95" not in (tmp_path / "g").read_bytes()
