"""Memory files: text at the workspace's root that enters the system prompt (AG-66, AS-41, AS-42).

Lives here: reading them, as landed or through the branch, and their size limit. Must not
be here: rewriting them (an agent uses the file tools), the prompt, settings.
"""

from bowerbird.memory.files import MAX_MEMORY_BYTES, MEMORY_FILES, PROTECTED, MemoryFile, read_memory

__all__ = ["MAX_MEMORY_BYTES", "MEMORY_FILES", "PROTECTED", "MemoryFile", "read_memory"]
