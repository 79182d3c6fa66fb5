"""The scheduler under reactgrad, re-exported: what to run and when, for any kind of value."""

from reactgrad_scheduler import UNCHANGED as UNCHANGED
from reactgrad_scheduler import BusyError as BusyError
from reactgrad_scheduler import Cancelled as Cancelled
from reactgrad_scheduler import CollectorPause as CollectorPause
from reactgrad_scheduler import Course as Course
from reactgrad_scheduler import CycleError as CycleError
from reactgrad_scheduler import ExecutorError as ExecutorError
from reactgrad_scheduler import Host as Host
from reactgrad_scheduler import InvariantError as InvariantError
from reactgrad_scheduler import Later as Later
from reactgrad_scheduler import Leaves as Leaves
from reactgrad_scheduler import Link as Link
from reactgrad_scheduler import ReactgradError as ReactgradError
from reactgrad_scheduler import Run as Run
from reactgrad_scheduler import Scheduler as Scheduler
from reactgrad_scheduler import Script as Script
from reactgrad_scheduler import Serial as Serial
from reactgrad_scheduler import Step as Step
from reactgrad_scheduler import Stopwatch as Stopwatch
from reactgrad_scheduler import Threads as Threads
from reactgrad_scheduler import Timed as Timed
from reactgrad_scheduler import check_invariants as check_invariants
from reactgrad_scheduler import note_read as note_read
from reactgrad_scheduler import unwatch as unwatch
from reactgrad_scheduler import watch as watch
