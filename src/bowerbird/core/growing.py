"""Values that grow: a longer one shares with the shorter what they have in common.

Here: a sequence and a set of names that cost a turn what was added to them, however long a conversation is.
Not here: what is in them.

A copy of a list of 10,000 messages is quickly made; what costs is the garbage collector, which looks through
each new one several times.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T")
Member = TypeVar("Member")

PIECE = 64  # members that are held, and shared, together
FEW_NAMES = 256  # so many new names are copied with each that is added


class Piece(tuple[T, ...]):
    """Members of a `Growing` that are held together; has attributes, for what is found out about them."""


class Growing(Sequence[T], Generic[T]):
    """A sequence that never changes; equal to a tuple of the same members. A part of it is a tuple.

    Example:
        >>> short = Growing.of("ab")
        >>> short.plus("c")
        Growing(('a', 'b', 'c'))
        >>> len(short), short == ("a", "b")
        (2, True)
    """

    __slots__ = ("_full", "_rest")

    def __init__(self, full: tuple[Piece[T], ...] = (), rest: tuple[T, ...] = ()) -> None:
        self._full = full  # of PIECE members each
        self._rest = rest

    @staticmethod
    def of(members: Iterable[Member]) -> "Growing[Member]":
        """Return these members; nothing is copied when they are held this way already."""
        if isinstance(members, Growing):
            return members
        return Growing[Member]().plus(members)

    def plus(self, more: "Iterable[T]") -> "Growing[T]":
        """Return this one with `more` after it."""
        rest = (*self._rest, *more)
        if len(rest) < PIECE:
            return Growing(self._full, rest)
        end = len(rest) // PIECE * PIECE
        full = (*self._full, *(Piece(rest[at : at + PIECE]) for at in range(0, end, PIECE)))
        return Growing(full, rest[end:])

    def pieces(self, start: int, stop: int) -> tuple[Piece[T], ...]:
        """Return the pieces that hold the members of a part; both its ends are multiples of `PIECE`."""
        return self._full[start // PIECE : stop // PIECE]

    def upto(self, end: int) -> "Growing[T]":
        """Return the first `end` members."""
        whole = end // PIECE
        return Growing(self._full[:whole], self[whole * PIECE : end])

    def replaced(self, at: int, member: T) -> "Growing[T]":
        """Return this one with another member at index `at`."""
        place, within = divmod(at, PIECE)
        if place == len(self._full):
            return Growing(self._full, (*self._rest[:within], member, *self._rest[within + 1 :]))
        piece = self._full[place]
        piece = Piece((*piece[:within], member, *piece[within + 1 :]))
        return Growing((*self._full[:place], piece, *self._full[place + 1 :]), self._rest)

    def __len__(self) -> int:
        return len(self._full) * PIECE + len(self._rest)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: "slice[Any, Any, Any]") -> tuple[T, ...]: ...
    def __getitem__(self, index: "int | slice[Any, Any, Any]") -> "T | tuple[T, ...]":
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._part(start, stop) if step == 1 else tuple(self)[index]
        at = index if index >= 0 else index + len(self)
        place = at // PIECE
        if 0 <= place < len(self._full):
            return self._full[place][at % PIECE]
        if at < 0:
            raise IndexError("index out of range")
        return self._rest[at - len(self._full) * PIECE]

    def _part(self, start: int, stop: int) -> tuple[T, ...]:
        first, last = start // PIECE, -(-stop // PIECE)
        pieces = (*self._full[first:last], self._rest) if last > len(self._full) else self._full[first:last]
        flat = pieces[0] if len(pieces) == 1 else tuple(chain.from_iterable(pieces))
        if len(flat) == stop - start:
            return flat  # a piece itself, with what was found out about it
        return flat[start - first * PIECE : max(0, stop - first * PIECE)]

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self._full), self._rest)

    def __reversed__(self) -> Iterator[T]:
        return chain(reversed(self._rest), chain.from_iterable(map(reversed, reversed(self._full))))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Growing):
            same = cast("Growing[object]", other)
            return self._full == same._full and self._rest == same._rest
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Growing({tuple(self)!r})"


class Names(AbstractSet[str]):
    """A set of names that never changes; equal to a frozenset of the same names.

    Example:
        >>> Names.of(["a"]).plus(["b"]) == {"a", "b"}
        True
    """

    __slots__ = ("_many", "_new")

    def __init__(self, many: frozenset[str] = frozenset(), new: frozenset[str] = frozenset()) -> None:
        self._many = many
        self._new = new  # none of `many`

    @classmethod
    def of(cls, names: Iterable[str]) -> "Names":
        """Return these names; nothing is copied when they are held this way already."""
        return names if isinstance(names, Names) else cls(frozenset(names))

    def plus(self, names: Iterable[str]) -> "Names":
        """Return this set with `names` in it."""
        added = [name for name in names if name not in self]
        if not added:
            return self
        new = self._new.union(added)
        return Names(self._many, new) if len(new) <= FEW_NAMES else Names(self._many | new)

    def __contains__(self, name: object) -> bool:
        return name in self._many or name in self._new

    def __iter__(self) -> Iterator[str]:
        return chain(self._many, self._new)

    def __len__(self) -> int:
        return len(self._many) + len(self._new)

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        return f"Names({set(self)!r})"
