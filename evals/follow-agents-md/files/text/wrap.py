"""Lines of a width.

Owner: text team
"""

import textwrap


def wrap(text, width=72):
    return textwrap.fill(text, width)
