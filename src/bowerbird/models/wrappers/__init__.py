"""What goes around a model: retries, fallbacks, tiers, traces, spans.

Must not be here: the wires (`providers`).
"""
