"""The base of values that say what they are: `event.type` is the tag that msgspec writes.

Here: that one property. Not here: any such value.
"""

import msgspec


class Tagged(msgspec.Struct, frozen=True):
    """A struct with a tag.

    Example:
        >>> class Hello(Tagged, frozen=True, tag="hello"):
        ...     pass
        >>> Hello().type
        'hello'
    """

    @property
    def type(self) -> str:
        """The tag, as in the encoded form."""
        return str(self.__struct_config__.tag)
