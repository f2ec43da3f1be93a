"""Events of a session as the socket sends them to `v=2` viewers, for `--output stream-json` (UI-59, SV-41).

Here: one published event to the lines it becomes. Not here: the mapping, which is the socket's own
(`server/socket/translate.py`); reading or printing events. Importing this costs what the socket's frames
cost: commands do it when they are asked for JSON.
"""

from collections.abc import Sequence

from bowerbird.core.wire import FileRow
from bowerbird.server.socket.translate import Closing, Translator
from bowerbird.sessions.live.hub import Published


class WireEvents:
    """Translates one session's events in order.

    Args:
        thread_id: the session; questions of other threads are those of its subagents.
        cursor: place in its journal that the events begin after.

    Example:
        >>> event = Published("t", "t_1", None, TextLive("hi", "m"))
        >>> WireEvents("t", 2).lines(event)
        ['{"type":"text_delta","content":"hi","message_id":"msg_3","cursor":2,"turn_id":"t_1"}']
    """

    def __init__(self, thread_id: str, cursor: int = 0) -> None:
        self._translator = Translator(thread_id=thread_id, cursor=cursor)

    def lines(self, published: Published, *, files: Sequence[FileRow] = (), changed: int = 0) -> list[str]:
        """Return the JSON of each event that viewers would be sent.

        Args:
            files, changed: the branch's files and number of changes, used when a turn ends.
        """
        closing = Closing(files=files, changed=changed)
        return [frame.text for frame in self._translator.frames(published, closing)]
