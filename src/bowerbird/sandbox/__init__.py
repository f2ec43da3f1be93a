"""Commands and Python on a branch: isolated as far as this host can, bounded, their changes captured.

Lives here: probing the host, the sandbox of a branch and what it shows, limits, network, background runs, and
Python in Monty for hosts and settings without processes. Must not be here: settings, the database, tools,
permission.
"""

from bowerbird.sandbox.python.record import PythonRecord
from bowerbird.sandbox.python.sessions import DumpFiles, DumpStore, PythonSessions
from bowerbird.sandbox.python.steps import PythonLimits

__all__ = ["DumpFiles", "DumpStore", "PythonLimits", "PythonRecord", "PythonSessions"]
