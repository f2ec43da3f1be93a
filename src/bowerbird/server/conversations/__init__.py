"""What conversation routes share: sessions as REST shows them, files, uploads, review.

Must not be here: routes (`routes`), sockets (`socket`).
"""
