"""The modules of the page: joined, they are one program."""

from __future__ import annotations

import re

import pytest

from reactgrad.viz._page import HERE, MODULES, program, read

IMPORT = re.compile(r"^import \{([^}]*)\} from \"\./([a-z]+)\.js\";$", re.MULTILINE)
DECLARED = re.compile(
    r"^(?:export )?(?:async )?(?:const|let|class|function) ([A-Za-z_]\w*)", re.MULTILINE
)
EXPORTED = re.compile(r"^export (?:async )?(?:const|class|function) ([A-Za-z_]\w*)", re.MULTILINE)


def test_every_module_is_part_of_the_program() -> None:
    others = {"replay", *MODULES}
    assert {path.stem for path in HERE.glob("*.js")} == others
    assert program().count("export default {") == 1
    assert not re.search(r"^(import|export (?!default))", program(), re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_what_it_uses_from_those_before_it(name: str) -> None:
    text = read(f"{name}.js")
    before = MODULES[: MODULES.index(name)]
    imported: set[str] = set()
    for names, module in IMPORT.findall(text):
        assert module in before
        found = {one.strip() for one in names.split(",")}
        assert found <= set(EXPORTED.findall(read(f"{module}.js")))
        imported |= found
    code = IMPORT.sub("", text)
    for one in imported:
        assert re.search(rf"(?<![\w.]){re.escape(one)}\b", code), f"{one} is not used"
    known = {n for module in before for n in EXPORTED.findall(read(f"{module}.js"))}
    bare = re.sub(r"//.*|/\*.*?\*/", "", code)
    for one in known - imported - set(re.findall(r"\b(?:const|let) (\w+) =", bare)):
        assert not re.search(rf"(?<![\w.'\"`$-]){re.escape(one)}\(", bare), f"{one} is not imported"


def test_no_name_is_declared_twice() -> None:
    names = [one for module in MODULES for one in DECLARED.findall(read(f"{module}.js"))]
    assert len(names) == len(set(names))
