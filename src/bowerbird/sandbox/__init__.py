"""Commands and Python on a branch: isolated as far as this host can, bounded, their changes captured.

Lives here: probing the host, the sandbox of a branch and what it shows, limits, network, background runs, and
Python in Monty for hosts and settings without processes. Must not be here: settings, the database, tools,
permission.
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.sandbox.python.engine import PythonLimits
    from bowerbird.sandbox.python.record import PythonRecord
    from bowerbird.sandbox.python.sessions import DumpFiles, DumpStore, PythonSessions

__all__ = ["DumpFiles", "DumpStore", "PythonLimits", "PythonRecord", "PythonSessions"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "python.engine": "PythonLimits",
        "python.record": "PythonRecord",
        "python.sessions": "DumpFiles DumpStore PythonSessions",
    },
)
