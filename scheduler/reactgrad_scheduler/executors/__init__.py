"""Ways to execute a plan."""

from reactgrad_scheduler.executors import serial as serial
