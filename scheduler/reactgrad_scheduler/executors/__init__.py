"""Ways to execute a plan: one node after the other, or several at the same time.

- ``serial``: in the calling thread; the bare loop of a certain plan, and checked runs.
- ``reading``: certain plans of nodes that read others while they run.
- ``compared``: plans in which versions decide which nodes run.
- ``stopwatch``: the same loops with a clock, for listeners.
- ``costs``: expected times of nodes.
- ``threads``: ``Serial`` and ``Threads``; the decision whether several threads run a plan.
- ``crew``: the threads of one run. ``straight``: a certain plan as tasks for a crew.
"""

from reactgrad_scheduler.executors import compared as compared
from reactgrad_scheduler.executors import reading as reading
from reactgrad_scheduler.executors import serial as serial
from reactgrad_scheduler.executors import stopwatch as stopwatch
from reactgrad_scheduler.executors import threads as threads
