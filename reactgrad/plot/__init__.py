"""Plots with matplotlib (extra ``plot``): one call each, which returns the Axes.

- ``_history``: numbers over the runs of a recording.
- ``_ladder``: outputs against one input.
- ``_tornado``: what each input can do to an output.
- ``_convergence``: losses over steps.
- ``_gradient_flow``: the size of the gradients of each layer.
- ``_heat``: the time of each node, run by run.
- ``_axes``: what all of them share.

Each takes ``ax``, the Axes to draw in; by default those of a new figure of pyplot.
"""

from reactgrad.plot._convergence import convergence as convergence
from reactgrad.plot._gradient_flow import gradient_flow as gradient_flow
from reactgrad.plot._heat import heat as heat
from reactgrad.plot._history import history as history
from reactgrad.plot._ladder import ladder as ladder
from reactgrad.plot._tornado import tornado as tornado
