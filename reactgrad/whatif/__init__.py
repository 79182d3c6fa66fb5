"""What-if questions: many values at once, and what a result hangs on.

``scenarios(outputs, values)``
    A table of outputs, and of gradients, over grids or lists of inputs.
``monte_carlo(outputs, distributions)``
    The same over random draws: percentiles, means, and their errors.
``sensitivities(output)``, ``tornado(output, inputs, amount)``
    Which input matters most: by live gradients, or by a low and a high value of each.
``goal_seek(output, input, target)``
    The inputs for which outputs have given values.
``explain_change(before, after)``
    How much each input has contributed to a difference.

All but ``sensitivities`` work in forks: nothing is set in the graph of the caller, and none of its nodes is computed.
Sensitivities are nodes of that graph, which follow it.

- ``_inputs``: outputs and leaves as callers name them; ``_points``: the values of all scenarios.
- ``_sweep``: forks that are set and read point by point; ``_batch``: all points as one more axis.
- ``_results``: results by scenario; ``_ranking``: rows by input; ``_table``: rows as text, and as a DataFrame.
- ``_scenarios``, ``_monte_carlo``, ``_sensitivities``, ``_tornado``, ``_goal_seek``, ``_explain_change``: a question
  each.
- ``_errors``: ``GoalError``, ``ScenarioError``.
"""

from reactgrad.whatif._errors import GoalError as GoalError
from reactgrad.whatif._errors import ScenarioError as ScenarioError
from reactgrad.whatif._explain_change import Change as Change
from reactgrad.whatif._explain_change import explain_change as explain_change
from reactgrad.whatif._goal_seek import Goal as Goal
from reactgrad.whatif._goal_seek import goal_seek as goal_seek
from reactgrad.whatif._monte_carlo import MonteCarlo as MonteCarlo
from reactgrad.whatif._monte_carlo import monte_carlo as monte_carlo
from reactgrad.whatif._results import Scenarios as Scenarios
from reactgrad.whatif._scenarios import scenarios as scenarios
from reactgrad.whatif._sensitivities import Sensitivities as Sensitivities
from reactgrad.whatif._sensitivities import sensitivities as sensitivities
from reactgrad.whatif._tornado import Tornado as Tornado
from reactgrad.whatif._tornado import tornado as tornado

__all__ = (
    "Change",
    "Goal",
    "GoalError",
    "MonteCarlo",
    "ScenarioError",
    "Scenarios",
    "Sensitivities",
    "Tornado",
    "explain_change",
    "goal_seek",
    "monte_carlo",
    "scenarios",
    "sensitivities",
    "tornado",
)
