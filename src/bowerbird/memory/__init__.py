"""Memory: files at the workspace's root that enter the system prompt, and what Bowerbird remembers by itself.

Lives here: reading the files (AG-66, AS-41, AS-42), what a model is asked when it rewrites what is
remembered, and readable copies of that. Must not be here: when it is rewritten (`sessions/upkeep`), the
prompt, settings.
"""

from bowerbird.memory.files import MAX_MEMORY_BYTES, MEMORY_FILES, PROTECTED, MemoryFile, read_memory

__all__ = ["MAX_MEMORY_BYTES", "MEMORY_FILES", "PROTECTED", "MemoryFile", "read_memory"]
