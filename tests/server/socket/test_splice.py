"""The splice of replay and live has neither gap nor duplicate, whenever a viewer comes (SV-45, SV-46). Pure.

A journal that grows, a publisher that tells of each record a little later (or not at all, as another
process does), and viewers that come at any moment with any cursor: each ends with what the journal says.
"""

import json
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from support.live_server import text_of

from bowerbird.core.events import AssistantStep, TextLive
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.usage import Usage
from bowerbird.core.wire import Compact, TextDelta, ThinkingDelta
from bowerbird.server.socket.event_order import Order
from bowerbird.server.socket.frames import Frame, joined
from bowerbird.server.socket.translate import Translator
from bowerbird.server.socket.viewer import Backlog
from bowerbird.sessions.live.hub import Published

THREAD = "t"


def said(seq: int, text: str, live_id: str | None = None) -> Published:
    message = Message("assistant", (TextBlock(text),), live_id or f"msg_{seq}")
    return Published(THREAD, "t_1", seq, AssistantStep(message, "end_turn", "m", Usage()))


def piece(text: str, live_id: str, at: int = 0) -> Published:
    return Published(THREAD, "t_1", None, TextLive(text, live_id, at))


@dataclass
class Desk:
    """A room without a loop: what `room.py` does at once, in the same order."""

    journal: list[str] = field(default_factory=list)
    order: Order = field(default_factory=lambda: Order(0))
    translator: Translator = field(default_factory=Translator)
    viewers: list[list[Frame]] = field(default_factory=list)

    def heard(self, published: Published) -> None:
        self.emit(self.order.arrive(published))
        while (gap := self.order.gap) is not None:
            after, upto = gap
            found = [said(seq, self.journal[seq - 1]) for seq in range(after + 1, upto + 1)]
            self.emit(self.order.filled(found, upto))

    def look(self) -> None:
        """Another process's records are found."""
        upto, after = len(self.journal), self.order.head
        self.emit(self.order.filled([said(s, self.journal[s - 1]) for s in range(after + 1, upto + 1)], upto))

    def emit(self, shown: list[Published]) -> None:
        for published in shown:
            for frame in self.translator.frames(published):
                for viewer in self.viewers:
                    viewer.append(frame)

    def enter(self, after: int) -> list[Frame]:
        """Replay, then the text so far, then live: `Room.enter`."""
        mine: list[Frame] = []
        replay = Translator(replay=True, aliases=self.translator.aliases, cursor=after)
        for seq in range(after + 1, self.translator.cursor + 1):
            mine += replay.frames(said(seq, self.journal[seq - 1]))
        mine += self.translator.so_far()
        self.viewers.append(mine)
        return mine


moves = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4)),
        st.tuples(st.just("elsewhere"), st.text("xyz", min_size=1, max_size=4)),
        st.tuples(st.just("unpublished"), st.text("uvw", min_size=1, max_size=4)),
        st.tuples(st.just("look"), st.none()),
        st.tuples(st.just("come"), st.floats(0, 1)),
    ),
    max_size=12,
)


@settings(max_examples=120, deadline=None)
@given(moves=moves, cuts=st.data())
def test_every_viewer_ends_with_what_the_journal_says(
    moves: list[tuple[str, object]], cuts: st.DataObject
) -> None:
    desk = Desk()
    came: list[tuple[int, list[Frame]]] = []

    def maybe_come() -> None:
        if cuts.draw(st.booleans()):
            after = cuts.draw(st.integers(0, desk.translator.cursor))
            came.append((after, desk.enter(after)))

    for number, (kind, value) in enumerate(moves):
        if kind == "say":
            assert isinstance(value, list)
            live_id = f"live_{number}"
            if desk.order.head < len(desk.journal):
                desk.look()  # a driver of ours has read what others wrote before it speaks
            at = 0
            for part in value:
                for _ in range(cuts.draw(st.sampled_from((1, 1, 0, 2)))):  # lost or told twice on the way
                    desk.heard(piece(part, live_id, at))
                at += len(part)
                maybe_come()
            desk.journal.append("".join(value))
            maybe_come()  # committed, not yet published
            desk.heard(said(len(desk.journal), desk.journal[-1], live_id))
        elif kind == "elsewhere":
            desk.journal.append(str(value))
            desk.look()
        elif kind == "unpublished":
            desk.journal.append(str(value))
        elif kind == "look":
            desk.look()
        else:
            after = int(float(str(value)) * desk.translator.cursor)
            came.append((after, desk.enter(after)))
    desk.look()
    for after, frames in came:
        seen = [json.loads(frame.text) for frame in frames]
        kept = text_of(seen).split("\n") if seen else []
        assert [text for text in kept if text] == desk.journal[after:]
        ends = [e["cursor"] for e in seen if e["type"] == "message_end"]
        assert ends == list(range(after + 1, len(desk.journal) + 1))
        cursors = [event["cursor"] for event in seen]
        assert cursors == sorted(cursors)


@given(
    pieces=st.lists(
        st.tuples(st.sampled_from(["m1", "m2"]), st.sampled_from([TextDelta, ThinkingDelta]), st.text("ab")),
        max_size=40,
    ),
    limit=st.integers(1, 10),
)
def test_a_full_backlog_joins_pieces_and_loses_none_before_it_says_so(
    pieces: list[tuple[str, type[TextDelta | ThinkingDelta], str]], limit: int
) -> None:
    """SV-51."""
    backlog = Backlog(max_events=limit)
    said: Counter[tuple[str, type]] = Counter()
    frames: list[Frame] = []
    for message, kind, text in pieces:
        frames.append(piece_of(kind, text, message, said[message, kind]))
        said[message, kind] += len(text)
    taken = [frame for frame in frames if backlog.put(frame)]
    assert taken == frames[: len(taken)]
    assert len(backlog) <= max(limit, 1)
    out: list[Frame] = []
    while (frame := backlog.take()) is not None:
        out.append(frame)
    assert backlog.size == 0
    assert contents(out) == contents(taken)
    assert backlog.is_lossy is (len(taken) < len(frames))


def piece_of(kind: type[TextDelta | ThinkingDelta], text: str, message: str = "m", at: int = 0) -> Frame:
    delta = TextDelta(text, message, at) if kind is TextDelta else ThinkingDelta(text, "high", message, at)
    return Frame(delta, is_live=True)


def contents(frames: list[Frame]) -> list[tuple[str, type, str]]:
    return [
        (f.delta.message_id, type(f.delta), f.delta.content) for f in joined(frames) if f.delta is not None
    ]


def test_other_events_are_never_joined() -> None:
    between = Frame(Compact("m", cursor=1))
    a, b = (piece_of(TextDelta, text) for text in "ab")
    assert joined([a, between, b]) == [a, between, b]


@given(st.permutations([1, 2, 3, 4, 5]), st.sets(st.integers(1, 5)))
def test_order_shows_each_committed_event_once_in_order(arrival: list[int], lost: set[int]) -> None:
    order, shown = Order(0), []
    for seq in [s for s in arrival if s not in lost]:
        shown += order.arrive(said(seq, str(seq)))
        shown += order.arrive(said(seq, str(seq)))  # told twice
        while (gap := order.gap) is not None:
            shown += order.filled([said(s, str(s)) for s in range(gap[0] + 1, gap[1] + 1)], gap[1])
    shown += order.filled([said(s, str(s)) for s in range(order.head + 1, 6)], 5)
    assert [p.seq for p in shown] == [1, 2, 3, 4, 5]


def test_a_held_order_lets_nothing_through() -> None:
    order = Order(0)
    order.hold()
    assert order.arrive(said(1, "a")) == []
    assert order.arrive(piece("b", "m")) == []
    assert [p.seq for p in order.release()] == [1, None]
