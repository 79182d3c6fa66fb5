"""Plots with matplotlib (extra ``plot``): one call each, which returns the Axes.

- ``_history``: numbers over the runs of a recording.
- ``_ladder``: outputs against one input.
- ``_tornado``: what each input can do to an output.
- ``_histogram``: how random draws of an output are spread.
- ``_convergence``: losses over steps.
- ``_gradient_flow``: the size of the gradients of each layer.
- ``_heat``: the time of each node, run by run.
- ``_axes``: what all of them share.

Each takes ``ax``, the Axes to draw in; by default those of a new figure of pyplot.
"""

from reactgrad._habits import absent_from as _absent_from
from reactgrad._habits import by_name as _by_name
from reactgrad.plot._convergence import convergence as convergence
from reactgrad.plot._gradient_flow import gradient_flow as gradient_flow
from reactgrad.plot._heat import heat as heat
from reactgrad.plot._histogram import histogram as histogram
from reactgrad.plot._history import history as history
from reactgrad.plot._ladder import ladder as ladder
from reactgrad.plot._tornado import tornado as tornado

__getattr__ = _absent_from(
    __name__,
    _by_name(
        (
            "hist distribution monte_carlo",
            "rg.plot.histogram(found) with found = rg.monte_carlo(...)",
        ),
        ("scenarios line sweep", "rg.plot.ladder(y, x, values), or found.to_pandas().plot()"),
        (
            "waterfall bridge explain_change",
            "found.to_pandas().plot.barh() with found = rg.explain_change(...)",
        ),
        (
            "sensitivities bar",
            "rg.plot.tornado(rg.tornado(y)), or rg.sensitivities(y).to_pandas().plot.barh()",
        ),
        ("loss losses training", "rg.plot.convergence(losses)"),
        ("graph network draw", "g.picture()"),
        (
            "show figure savefig",
            "A plot returns its Axes: write ax.figure.savefig(path), or pyplot.show()",
        ),
    ),
)
