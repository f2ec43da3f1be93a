"""Pictures on their way to a server, as its REST interface takes them (SV-62).

Here: their form. Not here: where a person gives them (`run/pictures.py`), what a server does with them.
"""

import base64
from collections.abc import Sequence
from typing import Any

from bowerbird.core.pictures import picture_type


def body_of(text: str, pictures: Sequence[bytes]) -> dict[str, Any]:
    """Return the body of a message.

    Example:
        >>> body_of("see", [b"GIF89a"])["attachments"]
        [{'url': 'data:image/gif;base64,R0lGODlh'}]
    """
    if not pictures:
        return {"content": text}
    urls = [
        f"data:{picture_type(each) or 'image/png'};base64,{base64.b64encode(each).decode()}"
        for each in pictures
    ]
    return {"content": text, "attachments": [{"url": url} for url in urls]}
