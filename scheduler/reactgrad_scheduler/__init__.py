"""The scheduler of reactgrad: it decides what to run and when, for any kind of value.

Map, from the bottom up:

- ``texts``         texts of limited length for messages
- ``errors``        exceptions
- ``exceptions``    exceptions of users, whatever their classes refuse
- ``block``         ``with`` blocks that every exception passes untouched
- ``overlay``       columns of tables that forks share
- ``topology``      nodes and edges in flat tables; ``hubs``: nodes with many consumers
- ``order``         topological ranks under edits; cycles
- ``ranges``        ranges of rows
- ``run``           the record of one read
- ``plan``          plans of bound steps; ``hot``: plans that run often; ``latest``, ``plan_cache``: how plans
                    are found again
- ``versions``      value versions, parent versions, the journal
- ``staleness``     marks: nodes that a change may have made stale
- ``failure``       errors of nodes, stored without frames
- ``host``          the interface of the owner of the values
- ``dirty``         rows of values that have changed, so that only these are computed again
- ``mending``       repairs after errors that come at any line
- ``gates``         ways in for threads that a function waits for
- ``lock``          one thread at a time, and the threads that it waits for
- ``tasks``         blocks that belong to one task of several in a thread
- ``processes``     locks in a forked process
- ``waits``         threads that wait for each other
- ``collector``     Python's cyclic collector, paused
- ``edit``          transactions, and edits that can be taken back
- ``tables``        all tables of one graph
- ``standing``      whether a node is clean, stale or failed, by the versions of its parents
- ``reads``         edges found while nodes run
- ``changes``       changes of leaves and edges
- ``executors``     how a plan is run: one node after the other, or in several threads
- ``runs``          runs of a plan, and the tables after them
- ``finding``       the nodes that a read has to run, found or remembered
- ``reads_inside``  reads made by nodes that are being computed
- ``scheduler``     the class that joins all of it
- ``watch``         listeners, at no cost while there are none
- ``invariants``    a check of all tables against each other

``tables`` to ``scheduler`` hold one class each, which inherits from the one before. Together they are one
object, with its methods in the file of their subject.
"""

from reactgrad_scheduler.block import Block as Block
from reactgrad_scheduler.block import block as block
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
from reactgrad_scheduler.exceptions import add_note as add_note
from reactgrad_scheduler.exceptions import is_interrupt as is_interrupt
from reactgrad_scheduler.executors.serial import released as released
from reactgrad_scheduler.executors.stopwatch import Stopwatch as Stopwatch
from reactgrad_scheduler.executors.stopwatch import Timed as Timed
from reactgrad_scheduler.executors.threads import Serial as Serial
from reactgrad_scheduler.executors.threads import Threads as Threads
from reactgrad_scheduler.failure import FLEETING as FLEETING
from reactgrad_scheduler.host import Course as Course
from reactgrad_scheduler.host import Host as Host
from reactgrad_scheduler.hot import Calls as Calls
from reactgrad_scheduler.hot import Row as Row
from reactgrad_scheduler.invariants import check_invariants as check_invariants
from reactgrad_scheduler.mending import is_stray as is_stray
from reactgrad_scheduler.overlay import Blank as Blank
from reactgrad_scheduler.overlay import Column as Column
from reactgrad_scheduler.overlay import Overlay as Overlay
from reactgrad_scheduler.overlay import share as share
from reactgrad_scheduler.plan import UNCHANGED as UNCHANGED
from reactgrad_scheduler.plan import Plan as Plan
from reactgrad_scheduler.plan import Script as Script
from reactgrad_scheduler.plan import Step as Step
from reactgrad_scheduler.ranges import MOST_RANGES as MOST_RANGES
from reactgrad_scheduler.ranges import SHARE as SHARE
from reactgrad_scheduler.ranges import Ranges as Ranges
from reactgrad_scheduler.ranges import count as count
from reactgrad_scheduler.ranges import joined as joined
from reactgrad_scheduler.reads_inside import note_read as note_read
from reactgrad_scheduler.run import Run as Run
from reactgrad_scheduler.scheduler import Repeat as Repeat
from reactgrad_scheduler.scheduler import Scheduler as Scheduler
from reactgrad_scheduler.staleness import CLEAN as CLEAN
from reactgrad_scheduler.staleness import FAILED as FAILED
from reactgrad_scheduler.staleness import MAYBE as MAYBE
from reactgrad_scheduler.staleness import STALE as STALE
from reactgrad_scheduler.staleness import UNSETTLED as UNSETTLED
from reactgrad_scheduler.tables import UNKNOWN as UNKNOWN
from reactgrad_scheduler.tasks import Owner as Owner
from reactgrad_scheduler.texts import error_text as error_text
from reactgrad_scheduler.texts import listed as listed
from reactgrad_scheduler.texts import safe_repr as safe_repr
from reactgrad_scheduler.texts import shortened as shortened
from reactgrad_scheduler.topology import RANK_GAP as RANK_GAP
from reactgrad_scheduler.versions import Leaves as Leaves
from reactgrad_scheduler.watch import at_work as at_work
from reactgrad_scheduler.watch import unwatch as unwatch
from reactgrad_scheduler.watch import watch as watch
