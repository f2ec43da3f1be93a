"""One answer put together from its pieces, and its calls made readable.

Must not be here: any provider's wire (`providers`).
"""
