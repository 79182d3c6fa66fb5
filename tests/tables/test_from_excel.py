"""``rg.from_excel``: formulas as a live graph; what is refused, and that nothing in a file is run."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.tables.books import rewritten, with_cached, workbook

pytest.importorskip("openpyxl")

LOAN = {
    "A1": "rate",
    "B1": 0.05,
    "A2": "years",
    "B2": 30,
    "A3": "loan",
    "B3": 200_000,
    "A4": "payment",
    "B4": "=PMT(B1/12,B2*12,-B3)",
    "B5": "=B4*B2*12-B3",
    "B6": '=IF(B4>1000,"dear","cheap")',
}


def payment(rate: float, years: float, loan: float) -> float:
    r, n = rate / 12.0, years * 12.0
    return loan * r / (1.0 - (1.0 + r) ** -n)


def test_a_loan_is_live_and_has_sensitivities() -> None:
    wb = rg.from_excel(workbook(LOAN, {"Payment": "Sheet1!$B$4"}))
    assert wb["B4"].value == pytest.approx(payment(0.05, 30, 200_000))
    assert wb["B4"] is wb["Sheet1!B4"] is wb["payment"]
    assert wb["B4"].name == "Sheet1!B4"
    assert wb.value("B6") == "dear"
    assert sorted(wb.inputs) == ["Sheet1!B1", "Sheet1!B2", "Sheet1!B3"]
    assert sorted(wb.outputs) == ["Sheet1!B5", "Sheet1!B6"]
    slope = rg.grad(wb["B4"], wb["B1"])
    step = (payment(0.05 + 1e-6, 30, 200_000) - payment(0.05 - 1e-6, 30, 200_000)) / 2e-6
    assert slope.value == pytest.approx(step, rel=1e-6)
    wb.set({"B1": 0.03})
    assert wb["Payment"].value == pytest.approx(payment(0.03, 30, 200_000))
    assert wb.value("B6") == "cheap"
    table = wb.sensitivities("B4")
    assert [row.input for row in table] == ["Sheet1!B1", "Sheet1!B2", "Sheet1!B3"]


def test_a_set_runs_only_the_formulas_that_read_it() -> None:
    wb = rg.from_excel(
        workbook({"A1": 1, "A2": 2, "B1": "=EXP(A1)", "B2": "=EXP(A2)", "C1": "=B1+B2"})
    )
    wb.graph.forward(wb["C1"])
    wb.set({"A2": 3})
    run = wb.graph.forward(wb["C1"])
    assert wb["B2"] in run.ran
    assert wb["B1"] not in run.ran
    assert wb["C1"].value == math.exp(1) + math.exp(3)


def test_only_the_chosen_part_of_a_choice_is_computed() -> None:
    wb = rg.from_excel(
        workbook({"A1": 1, "A2": 5, "B1": "=EXP(A2)", "B2": "=SIN(A2)", "C1": "=IF(A1>0,B1,B2)"})
    )
    wb.graph.forward(wb["C1"])
    assert not wb["B1"].is_stale
    assert wb["B2"].is_stale
    assert rg.grad(wb["C1"], wb["A2"]).value == math.exp(5)
    wb.set({"A1": -1})
    assert rg.grad(wb["C1"], wb["A2"]).value == math.cos(5)


VALUES: dict[str, tuple[str, Any]] = {
    "precedence": ("=-2^2+10%*5-3/4", 4 + 0.5 - 0.75),
    "power left": ("=2^3^2", 64.0),
    "percent": ("=50%", 0.5),
    "text": ('="a"&1&TRUE', "a1TRUE"),
    "compare texts": ('="abc"="ABC"', True),
    "text and number": ('="a">9', True),
    "division": ("=1/0", "#DIV/0!"),
    "live division": ("=A1/(A1-1)", "#NUM!"),
    "iferror": ("=IFERROR(A1/(A1-1),7)", 7.0),
    "sum": ("=SUM(A1:A3,10,B1)", 16.0),
    "sum with text": ("=SUM(A1:B3)", 6.0),
    "average": ("=AVERAGE(A1:A3)", 2.0),
    "count": ("=COUNT(A1:B3)", 3.0),
    "counta": ("=COUNTA(A1:B3)", 6.0),
    "stdev": ("=STDEV(A1:A3)", 1.0),
    "median": ("=MEDIAN(A1:A3,9)", 2.5),
    "sumif": ('=SUMIF(A1:A3,">1")', 5.0),
    "sumif by text": ('=SUMIF(B1:B3,"b*",A1:A3)', 2.0),
    "countif": ('=COUNTIF(B1:B3,"<>a")', 2.0),
    "averageifs": ('=AVERAGEIFS(A1:A3,B1:B3,"<>a",A1:A3,"<3")', 2.0),
    "maxifs": ('=MAXIFS(A1:A3,A1:A3,"<3")', 2.0),
    "sumproduct": ("=SUMPRODUCT(A1:A3,A1:A3)", 14.0),
    "sumproduct of conditions": ('=SUMPRODUCT((B1:B3="b")*A1:A3)', 2.0),
    "vlookup": ("=VLOOKUP(2,A1:B3,2,FALSE)", "b"),
    "vlookup near": ("=VLOOKUP(2.7,A1:B3,2)", "b"),
    "vlookup absent": ("=VLOOKUP(7,A1:B3,2,FALSE)", "#N/A"),
    "match": ('=MATCH("c",B1:B3,0)', 3.0),
    "index": ("=INDEX(A1:B3,2,1)", 2.0),
    "index of match": ('=INDEX(A1:A3,MATCH("b",B1:B3,0))', 2.0),
    "xlookup": ('=_xlfn.XLOOKUP("z",B1:B3,A1:A3,-1)', -1.0),
    "choose": ("=CHOOSE(A2,10,20,30)", 20.0),
    "round half": ("=ROUND(2.675,2)", 2.68),
    "round to tens": ("=ROUND(15,-1)", 20.0),
    "int": ("=INT(-1.5)", -2.0),
    "mod": ("=MOD(-3,2)", 1.0),
    "and": ("=AND(A1:A3)", True),
    "not": ("=NOT(A1>0)", False),
    "left": ('=LEFT("hello",2)', "he"),
    "substitute": ('=SUBSTITUTE("aXbX","X","-",2)', "aXb-"),
    "date": ("=DATE(2024,2,29)", 45351.0),
    "edate": ("=EDATE(DATE(2024,1,31),1)", 45351.0),
    "eomonth": ("=DAY(EOMONTH(DATE(2023,1,15),1))", 28.0),
    "weekday": ("=WEEKDAY(DATE(2024,2,29))", 5.0),
    "yearfrac": ("=YEARFRAC(DATE(2024,1,1),DATE(2024,7,1))", 0.5),
    "npv": ("=NPV(0.1,A1:A3)", 1 / 1.1 + 2 / 1.21 + 3 / 1.331),
    "irr": ("=IRR({-100,60,60})", 0.13066238629180738),
    "pv": ("=PV(0.05,10,-100)", 772.1734929184813),
    "fv at no rate": ("=FV(0,10,-100)", 1000.0),
    "nper": ("=NPER(0.01,-100,1000)", 10.588644459423538),
    "rate": ("=RATE(12,-100,1000)", 0.02922854076913404),
    "ipmt and ppmt": ("=IPMT(0.1,2,3,-100)+PPMT(0.1,2,3,-100)", 40.21148036253776),
    "normsdist": ("=NORMSDIST(1)", 0.8413447460685429),
    "norm.inv": ("=NORM.INV(0.975,0,1)", 1.959963984540054),
    "slope": ("=SLOPE(A1:A3,{1;3;5})", 0.5),
    "percentile": ("=PERCENTILE(A1:A3,0.25)", 1.5),
    "large": ("=LARGE(A1:A3,2)", 2.0),
    "blank is zero": ("=Z99+1", 1.0),
    "row": ("=ROW()+COLUMN(C5)", 4.0),
    "intersection of old": ("=A1:A3*10", 10.0),
    "hex": ("=DEC2HEX(-1)", "FFFFFFFFFF"),
    "nested": ("=IF(AND(A1=1,OR(A2=3,A3=3)),SUM(A1:A3)*2,0)", 12.0),
    "switch": ('=SWITCH(A2,1,"one",2,"two","many")', "two"),
    "iserror": ("=ISERROR(1/0)", True),
    "text of number": ('=0.1+0.2&""', "0.3"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_formula_has_the_value_of_excel(name: str) -> None:
    text, expected = VALUES[name]
    cells = {"A1": 1, "A2": 2, "A3": 3, "B1": "a", "B2": "b", "B3": "c", "D1": text}
    wb = rg.from_excel(workbook(cells))
    found = wb.value("D1")
    if isinstance(expected, str) and expected.startswith("#"):
        assert repr(found).startswith("#")
        assert repr(found) == expected
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        assert found == expected


SLOPES: dict[str, tuple[str, float]] = {
    "sum": ("=SUM(A1:A3)", 1.0),
    "average": ("=AVERAGE(A1:A3)", 1 / 3),
    "sumproduct": ("=SUMPRODUCT(A1:A3,C1:C3)", 5.0),
    "sumif": ('=SUMIF(B1:B3,"b",A1:A3)', 1.0),
    "vlookup": ('=VLOOKUP("b",B1:C3,2,FALSE)*A2', 5.0),
    "index": ("=INDEX(A1:A3,2)^2", 4.0),
    "index by a live place": ("=INDEX(A1:A3,A1+1)^2", 4.0),
    "iferror": ("=IFERROR(3/A2,0)", -0.75),
    "choice of kinds": ('=IF(A2>0,A2*3,"none")+1', 3.0),
    "max": ("=MAX(A1:A2)", 1.0),
    "npv": ("=NPV(0.1,A1:A3)", 1 / 1.21),
    "power": ("=A2^3", 12.0),
    "normsdist": ("=NORMSDIST(A2)", math.exp(-2) / math.sqrt(2 * math.pi)),
    "round": ("=ROUND(A2,1)", 0.0),
    "sln": ("=SLN(A2,0,4)", 0.25),
    "nper": ("=NPER(0.01,-100,1000*A2)", 1000 / (100 - 20) / math.log(1.01) * 0.01 / 0.01),
}


@pytest.mark.parametrize("name", SLOPES)
def test_a_cell_has_the_sensitivity_of_calculus(name: str) -> None:
    text, expected = SLOPES[name]
    cells = {"A1": 1, "A2": 2, "A3": 3, "B1": "a", "B2": "b", "B3": "c", "C1": 4, "C2": 5, "C3": 6}
    if name == "nper":
        expected = (1000 / (100 / 0.01 - 2000)) / math.log(1.01)
    wb = rg.from_excel(workbook({**cells, "D1": text}))
    found = rg.grad(wb["D1"], wb["A2"], allow_unused=True)
    assert (0.0 if found is None else found.value) == pytest.approx(expected, rel=1e-6)


def test_an_internal_rate_has_the_derivative_of_the_implicit_function() -> None:
    wb = rg.from_excel(workbook({"A1": -100, "A2": 60, "A3": 60, "B1": "=IRR(A1:A3)"}))
    slope = rg.grad(wb["B1"], wb["A2"]).value
    ends = []
    for flow in (60.001, 59.999):
        wb.set({"A2": flow})
        ends.append(wb["B1"].value)
    assert slope == pytest.approx((ends[0] - ends[1]) / 0.002, rel=1e-6)


def test_formulas_of_several_cells() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.worksheet.formula import ArrayFormula

    book = openpyxl.Workbook()
    sheet = book.active
    for i in range(3):
        sheet.cell(i + 1, 1, float(i + 1))
    sheet["B1"] = ArrayFormula("B1:B3", "=A1:A3*2")
    sheet["C1"] = "=SUM(B1:B3)"
    out = io.BytesIO()
    book.save(out)
    wb = rg.from_excel(out.getvalue())
    assert [wb.value(f"B{i}") for i in (1, 2, 3)] == [2.0, 4.0, 6.0]
    assert wb["C1"].value == 12.0
    assert rg.grad(wb["C1"], wb["A2"]).value == 2.0


def test_a_range_where_a_single_value_is_meant() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.worksheet.formula import ArrayFormula

    book = openpyxl.Workbook()
    sheet = book.active
    for i, key in enumerate("bac"):
        sheet.cell(i + 1, 1, key)
        sheet.cell(i + 1, 3, "abc"[i])
        sheet.cell(i + 1, 4, float(i + 1))
    sheet["B2"] = "=VLOOKUP(A:A,C1:D3,2,FALSE)"  # that of its own row
    sheet["F1"] = ArrayFormula("F1:F3", "=VLOOKUP(A1:A3,C1:D3,2,FALSE)")
    sheet["G1"] = ArrayFormula("G1:G2", '=COUNTIF(A1:A3,{"b";"z"})')
    sheet["H1"] = ArrayFormula("H1:H2", "=ROW(A5:A6)")
    out = io.BytesIO()
    book.save(out)
    wb = rg.from_excel(out.getvalue())
    assert wb.value("B2") == 1.0
    assert [wb.value(f"F{i}") for i in (1, 2, 3)] == [2.0, 1.0, 3.0]
    assert [wb.value(f"G{i}") for i in (1, 2)] == [1.0, 0.0]
    assert [wb.value(f"H{i}") for i in (1, 2)] == [5.0, 6.0]


def test_names_sheets_and_ranges() -> None:
    cells = {
        "A1": 2,
        "Other Sheet!B1": "=Sheet1!A1*3",
        "A2": "='Other Sheet'!B1+Twice",
        "A3": "=A1",
    }
    wb = rg.from_excel(workbook(cells, {"Twice": "Sheet1!$A$1*2"}))
    assert wb["A2"].value == 10.0
    assert wb["Other Sheet!B1"].value == 6.0
    assert wb["A3"] is not wb["A1"]
    assert [one.value for one in wb["A1:A3"][:, 0]] == [2.0, 10.0, 2.0]
    assert "Other Sheet!B1" in wb
    assert "Z1" not in wb
    with pytest.raises(rg.LoadError, match="is no input: it has a formula"):
        wb.set({"A3": 1.0})
    with pytest.raises(rg.LoadError, match="Sheet1!Z1 is empty"):
        wb["Z1"]
    with pytest.raises(rg.LoadError, match="'nothing here' is neither an address"):
        wb["nothing here"]


def test_texts_and_truth_values_are_inputs_too() -> None:
    cells = {"A1": "base", "A2": True, "B1": '=IF(A1="base",1,2)', "B2": "=IF(A2,10,20)"}
    wb = rg.from_excel(workbook(cells))
    assert (wb["B1"].value, wb["B2"].value) == (1.0, 10.0)
    wb.set({"A1": "bull", "A2": False})
    assert (wb["B1"].value, wb["B2"].value) == (2.0, 20.0)


def test_scenarios_and_goal_seek_work_on_a_workbook() -> None:
    wb = rg.from_excel(workbook(LOAN))
    found = rg.scenarios(wb["B4"], {wb["B1"]: [0.03, 0.05]})
    assert found[wb["B4"]] == pytest.approx([payment(r, 30, 200_000) for r in (0.03, 0.05)])
    goal = rg.goal_seek(wb["B4"], wb["B1"], 1000.0)
    assert payment(goal.value, 30, 200_000) == pytest.approx(1000.0)
    assert wb["B1"].value == 0.05


def test_values_are_compared_with_those_in_the_file() -> None:
    data = with_cached(workbook({"A1": 2, "B1": "=A1*2", "B2": "=A1*3"}), {"B1": "4", "B2": "7"})
    wb = rg.from_excel(data)
    assert wb.differences() == {"Sheet1!B2": (6.0, 7.0)}


def test_what_has_no_form_is_named_with_counts_before_anything_is_built() -> None:
    cells = {
        "A1": 1,
        "B1": "=CUBEVALUE(A1)",
        "B2": "=CUBEVALUE(A1)+[1]X!A1",
        "B3": "=OFFSET(A1,1,1)",
        "C1": "=A1+1",
    }
    data = with_cached(workbook(cells), {"B1": "5", "B2": "6", "B3": "8"})
    g = rg.Graph()
    with pytest.raises(rg.LoadError) as caught:
        rg.from_excel(data, graph=g)
    text = str(caught.value)
    assert "3 formulas need what has no form here: CUBEVALUE (2x, as in Sheet1!B1)" in text
    assert "OFFSET (1x" in text
    assert "another workbook" in text
    assert caught.value.functions["CUBEVALUE"] == 2  # type: ignore[attr-defined]
    assert len(g) == 0
    wb = rg.from_excel(data, unread="cached")
    assert wb["B1"].value == 5.0
    assert wb["C1"].value == 2.0
    assert wb.unread["CUBEVALUE"] == 2
    wb.set({"B1": 9.0})


def test_a_circle_is_named_whole() -> None:
    cells = {"A1": "=B1+1", "B1": "=C1", "C1": "=A1"}
    with pytest.raises(rg.LoadError, match="Sheet1!A1 -> Sheet1!B1 -> Sheet1!C1 -> Sheet1!A1"):
        rg.from_excel(workbook(cells))


def _bomb() -> bytes:
    data = workbook({"A1": 1})
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for i in range(9):
            archive.writestr(f"xl/media/{i}.bin", bytes(1 << 26))
    return out.getvalue()


def _entities(text: bytes) -> bytes:
    return text.replace(b"<worksheet", b'<!DOCTYPE a [<!ENTITY b "c">]><worksheet', 1)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "encrypted, or of the old format": lambda: b"\xd0\xcf\x11\xe0" + bytes(600),
    "this is no workbook": lambda: b"hello",
    "no xl/workbook.xml": lambda: _zip({"word/document.xml": b"<a/>"}),
    "declares entities": lambda: rewritten(
        workbook({"A1": 1}), "xl/worksheets/sheet1.xml", _entities
    ),
    "is damaged": lambda: rewritten(
        workbook({"A1": 1}), "xl/worksheets/sheet1.xml", lambda t: t[: len(t) // 2]
    ),
    "nested more than": lambda: workbook({"A1": "=" + "(" * 400 + "1" + ")" * 400}),
    "at most 8,192": lambda: workbook({"A1": "=1" + "+1" * 5000}),
    "cannot be read": lambda: workbook({"A1": "=SUM(1,"}),
    "needs? each other in a circle": lambda: workbook({"A1": "=SUM(A1:A3)"}),
}


def _zip(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_files_are_refused_clearly(text: str) -> None:
    with pytest.raises(rg.LoadError, match=text.replace("needs?", "need")):
        rg.from_excel(HOSTILE[text]())


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(rg.LoadError, match="refused as a bomb"):
        rg.from_excel(_bomb())


def test_a_huge_range_is_refused() -> None:
    cells = {"A1": "=SUM(B1:XFD1048576)", "XFD1048576": 1.0}
    with pytest.raises(rg.LoadError, match="is more than 2,000,000: refused"):
        rg.from_excel(workbook(cells))
    # Whole columns are read as far as anything is in them.
    assert rg.from_excel(workbook({"A1": "=SUM(B:B)", "B3": 2, "B7": 3}))["A1"].value == 5.0


def test_a_name_that_stands_for_itself() -> None:
    with pytest.raises(rg.LoadError, match="stands for itself"):
        rg.from_excel(workbook({"A1": "=Loop"}, {"Loop": "Loop+1"}))


def test_a_path_and_a_file(tmp_path: Path) -> None:
    path = tmp_path / "loan.xlsx"
    path.write_bytes(workbook(LOAN))
    assert rg.from_excel(path)["B3"].value == 200_000.0
    with path.open("rb") as file:
        assert "9 formulas" not in repr(rg.from_excel(file))
    with pytest.raises(FileNotFoundError):
        rg.from_excel(tmp_path / "none.xlsx")
    with pytest.raises(rg.LoadError, match="give a path"):
        rg.from_excel(3)
    with pytest.raises(rg.LoadError, match="unread='no'"):
        rg.from_excel(path, unread="no")


def test_a_long_column_of_formulas_needs_no_recursion() -> None:
    cells: dict[str, Any] = {"A1": 1.0}
    for i in range(2, 3001):
        cells[f"A{i}"] = f"=A{i - 1}+1"
    wb = rg.from_excel(workbook(cells))
    assert wb["A3000"].value == 3000.0
    assert rg.grad(wb["A3000"], wb["A1"]).value == 1.0


def test_numbers_are_floats_of_64_bits() -> None:
    wb = rg.from_excel(workbook({"A1": 3, "A2": "=A1*2"}))
    wb.set({"A1": 4})
    assert wb["A2"].dtype == np.float64
    assert wb["A2"].value == 8.0


EXHAUSTING = {
    "names of names": (
        {"A1": "=N0"},
        {f"N{i}": "+".join([f"N{i + 1}"] * 500) for i in range(15)} | {"N15": "Sheet1!$B$1"},
    ),
    "texts that double": (
        {"A1": '=REPT("ab",9)', **{f"A{i}": f"=A{i - 1}&A{i - 1}" for i in range(2, 60)}},
        {},
    ),
    "texts that multiply": ({"A1": '=REPT("a",30000)', "A2": '=SUBSTITUTE(A1,"a",A1)'}, {}),
    "a factorial": ({"A1": "=FACT(1E9)+COMBIN(1E9,5E8)"}, {}),
    "endless periods": ({"A1": "=VDB(1,0,1E15,0,1E15)+DB(1,0,1E15,1E15)"}, {}),
    "a pattern": ({"A1": '=SEARCH("*a*a*a*a*a*a*a*b",REPT("a",2000))'}, {}),
    "a criterion": ({"A1": '=COUNTIF(B1:B2,"*a*a*a*a*a*a*a*b")', "B1": '=REPT("a",30000)'}, {}),
}


@pytest.mark.parametrize("name", EXHAUSTING)
def test_formulas_that_would_exhaust_memory_or_time_do_not(name: str) -> None:
    cells, names = EXHAUSTING[name]
    wb = rg.from_excel(workbook({"B1": 1.0, **cells}, names))
    for one in wb.formulas:
        found = wb.value(one)
        assert not isinstance(found, str) or len(found) <= 32_767


def test_a_block_of_ranges_that_is_too_large_is_refused() -> None:
    cells = {"A1": "=SUMPRODUCT(B1:B9000*C1:ZZ1)", "B9000": 1.0, "ZZ1": 1.0}
    with pytest.raises(rg.LoadError, match="makes a block of 9,000 x 700 cells"):
        rg.from_excel(workbook(cells))
