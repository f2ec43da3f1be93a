"""Web push: browsers without an open page hear that an agent asks, or is done (UI-95).

Must not be here: routes, what a page shows; delivering again (`delivery/`).
"""
