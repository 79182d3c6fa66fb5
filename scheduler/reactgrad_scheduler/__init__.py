"""The scheduler of reactgrad: what to run and when, for any kind of value.

Map, from the bottom up:

- ``errors``      what can go wrong, as exceptions
- ``overlay``     columns of tables that forks share
- ``topology``    nodes and edges in flat tables
- ``order``       topological ranks under edits; cycles
- ``plan``        plans of bound steps, and the cache that finds them again
- ``versions``    value versions, parent versions, the journal
- ``staleness``   marks: what a change may have made stale
- ``run``         the record of what one read did
- ``failure``     what a node raised, kept without frames
- ``host``        what is asked of the owner of the values
- ``lock``        one thread at a time, and those it waits for
- ``collector``   Python's cyclic collector, paused
- ``executors``   how a plan is run
- ``edit``        transactions, and edits that are taken back
- ``scheduler``   all of it together
- ``watch``       hearing of all that happens, free when nobody listens
- ``invariants``  what must always hold, as a check
"""

from reactgrad_scheduler.collector import CollectorPause as CollectorPause
from reactgrad_scheduler.edit import Former as Former
from reactgrad_scheduler.edit import Link as Link
from reactgrad_scheduler.errors import BlockError as BlockError
from reactgrad_scheduler.errors import BusyError as BusyError
from reactgrad_scheduler.errors import Cancelled as Cancelled
from reactgrad_scheduler.errors import CycleError as CycleError
from reactgrad_scheduler.errors import ExecutorError as ExecutorError
from reactgrad_scheduler.errors import InvariantError as InvariantError
from reactgrad_scheduler.errors import Later as Later
from reactgrad_scheduler.errors import ReactgradError as ReactgradError
from reactgrad_scheduler.executors.reading import note_read as note_read
from reactgrad_scheduler.executors.stopwatch import Stopwatch as Stopwatch
from reactgrad_scheduler.executors.stopwatch import Timed as Timed
from reactgrad_scheduler.executors.threads import Serial as Serial
from reactgrad_scheduler.executors.threads import Threads as Threads
from reactgrad_scheduler.host import Course as Course
from reactgrad_scheduler.host import Host as Host
from reactgrad_scheduler.hot import Calls as Calls
from reactgrad_scheduler.hot import Row as Row
from reactgrad_scheduler.invariants import check_invariants as check_invariants
from reactgrad_scheduler.overlay import Blank as Blank
from reactgrad_scheduler.overlay import Column as Column
from reactgrad_scheduler.overlay import Overlay as Overlay
from reactgrad_scheduler.overlay import share as share
from reactgrad_scheduler.plan import UNCHANGED as UNCHANGED
from reactgrad_scheduler.plan import Script as Script
from reactgrad_scheduler.plan import Step as Step
from reactgrad_scheduler.run import Run as Run
from reactgrad_scheduler.scheduler import Scheduler as Scheduler
from reactgrad_scheduler.versions import Leaves as Leaves
from reactgrad_scheduler.watch import at_work as at_work
from reactgrad_scheduler.watch import unwatch as unwatch
from reactgrad_scheduler.watch import watch as watch
