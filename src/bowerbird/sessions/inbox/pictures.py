"""A picture of a message: kept once, named in it (SE-12).

Here: from bytes to the block. Not here: where they came from (the doors), limits of a message (`accept.py`).
"""

from typing import Any

from bowerbird.core.messages import BlobSource, ImageBlock, block_to_data
from bowerbird.core.pictures import picture_type
from bowerbird.core.threads import to_thread
from bowerbird.store.store import Store


async def picture_block(store: Store, content: bytes) -> dict[str, Any] | None:
    """Keep a picture and return its block as plain data; None for what is no PNG, JPEG, GIF or WebP."""
    media_type = picture_type(content)
    if media_type is None:
        return None
    return block_to_data(ImageBlock(media_type, BlobSource(await to_thread(store.blobs.put, content))))
