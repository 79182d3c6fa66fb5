"""Ways to execute a plan: one node after the other, or several at the same time."""

from reactgrad_scheduler.executors import compared as compared
from reactgrad_scheduler.executors import reading as reading
from reactgrad_scheduler.executors import serial as serial
from reactgrad_scheduler.executors import stopwatch as stopwatch
from reactgrad_scheduler.executors import threads as threads
