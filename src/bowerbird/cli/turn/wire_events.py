"""Events of a session as the socket sends them to `v=2` viewers, for `--output stream-json` (UI-59, SV-41).

Here: one published event to the lines it becomes. Not here: the mapping, which is the socket's own
(`server/socket/translate.py`); reading or printing events. Importing this costs what the socket's frames
cost: commands do it when they are asked for JSON.
"""

from bowerbird.server.socket.translate import Closing, Translator
from bowerbird.sessions.live.hub import Published


class WireEvents:
    """Translates one session's events in order.

    Args:
        thread_id: the session; questions of other threads are those of its subagents.
        cursor: place in its journal that the events begin after. plan_mode: of the session, there.

    Example:
        >>> event = Published("t", "t_1", None, TextLive("hi", "m", 0))
        >>> WireEvents("t", 2).lines(event)
        ['{"type":"text_delta","content":"hi","message_id":"msg_3","offset":0,"cursor":2,"turn_id":"t_1"}']
    """

    def __init__(self, thread_id: str, cursor: int = 0, *, plan_mode: bool = False) -> None:
        self._translator = Translator(thread_id=thread_id, cursor=cursor, plan_mode=plan_mode)

    def lines(self, published: Published, closing: Closing | None = None) -> list[str]:
        """Return the JSON of each event that viewers would be sent.

        Args:
            closing: the branch's files, used when a turn ends.
        """
        return [frame.text for frame in self._translator.frames(published, closing or Closing())]
