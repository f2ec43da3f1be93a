"""Running code against a branch: Python in Monty (SB-43 … SB-49).

Lives here: interpreters and, with them, the limits, isolation and capture of what runs.
Must not be here: settings, the database, tools, permission.
"""

from bowerbird.sandbox.python.record import PythonRecord
from bowerbird.sandbox.python.sessions import DumpFiles, DumpStore, PythonSessions
from bowerbird.sandbox.python.steps import PythonLimits

__all__ = ["DumpFiles", "DumpStore", "PythonLimits", "PythonRecord", "PythonSessions"]
