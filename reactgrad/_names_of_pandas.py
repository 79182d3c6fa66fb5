"""Names of pandas, tqdm and TensorBoard that objects here do not have, and what to write; see ``_habits``."""

from __future__ import annotations

from typing import Final

from reactgrad._habits import by_name

OF_TABLES: Final = by_name(
    (
        "loc iloc at iat",
        "t.set_at(key, column, number) to set a cell, and t[column][t.row(key)] for its node",
    ),
    ("groupby", "names, totals = t.groups(by, column), or how='mean'"),
    ("merge join map", "t[column] = other.lookup(other_column, t[keys])"),
    ("sum mean min max std median count", "t[column].{name}(), a node that follows"),
    ("cumsum diff clip round abs", "rg.{name}(t[column])"),
    ("assign insert", "t[column] = values"),
    ("drop pop", "A Table keeps its columns: choose those to show by t.to_pandas()[[column, ...]]"),
    (
        "append concat",
        "A Table keeps its rows: make another one, rg.Table(pd.concat([frame, more]), g)",
    ),
    (
        "query filter",
        "A Table keeps its rows: write rg.where(mask, t[column], 0.0), or t.to_pandas().query(...)",
    ),
    ("shape", "(len(t), len(t.columns))"),
    ("values to_numpy", "t[column].value"),
    ("keys", "t.index for the keys of the rows, and t.columns"),
    (
        "head tail describe sort_values plot items to_csv to_excel to_dict info reset_index pivot pivot_table corr T",
        "The values of now are a DataFrame: write t.to_pandas().{name}(...)",
    ),
)

OF_SCENARIOS: Final = by_name(
    ("df frame to_frame to_dataframe dataframe table", "{x}.to_pandas()"),
    ("pivot pivot_table unstack", "{x}.to_pandas(index=True).unstack()"),
    ("head describe to_csv to_excel plot", "{x}.to_pandas().{name}(...)"),
    ("loc iloc", "{x}.to_pandas().{name}[...]"),
    ("results values", "{x}[output], or {x}.to_pandas()"),
)

OF_DRAWS: Final = by_name(
    ("hist histogram", "{x}.plot()"),
    ("quantile quantiles percentiles", "{x}.percentile(output, [5, 50, 95])"),
    ("describe", "{x}.summary_to_pandas(), or {x}.to_pandas().describe()"),
)

OF_RANKINGS: Final = by_name(
    ("df frame to_frame to_dataframe dataframe table", "{x}.to_pandas()"),
    ("sort_values head plot to_csv to_excel", "{x}.to_pandas().{name}(...)"),
    ("loc iloc", "{x}.to_pandas().{name}[...]"),
    ("hist bar", "{x}.to_pandas().plot.barh()"),
)

OF_WORKBOOKS: Final = by_name(
    (
        "scenarios tornado monte_carlo",
        "rg.{name}(wb[output], ...) with the nodes of cells, as rg.tornado(wb['Sheet1!B9'], [wb['Sheet1!B2']])",
    ),
    ("goal_seek", "rg.goal_seek(wb[output], wb[input], target)"),
    (
        "explain_change",
        "rg.explain_change(before, wb.graph, wb[output]) with before = wb.graph.fork()",
    ),
    ("plan why explore picture draw fork whatif export_html record", "wb.graph.{name}(...)"),
    (
        "save to_excel write",
        "A workbook is read, and never written: set cells in the file with openpyxl, to what wb.value(address) gives",
    ),
    ("to_pandas to_frame", "pd.Series({a: wb.value(a) for a in (*wb.inputs, *wb.formulas)})"),
    ("cells cell range", "wb[address]"),
    ("active worksheets sheetnames", "wb.sheets"),
    ("calculate recalculate compute", "A read computes what is stale: write wb.value(address)"),
)

OF_BARS: Final = by_name(
    ("set_postfix set_postfix_str", "bar.show(loss=loss)"),
    ("set_description desc", "rg.progress(batches, text)"),
    ("update n total", "A bar counts the batches that it gives: write for batch in bar"),
    ("write", "print(text)"),
)

OF_WRITERS: Final = by_name(
    ("add_graph", "g.export_html(path), or g.explore(): a page of the graph"),
    (
        "add_figure",
        "writer.add_image(tag, array), with np.asarray(figure.canvas.buffer_rgba())[..., :3].transpose(2, 0, 1)",
    ),
    ("add_images", "writer.add_image(tag, array) for each"),
    ("add_hparams", "writer.add_text('settings', text), and a log_dir of its own for each run"),
    ("log log_metrics", "writer.add_scalar(tag, number, step), or writer.watch(tag, node)"),
    ("add_embedding add_video add_audio", "writer.add_histogram, add_image or add_text"),
)
