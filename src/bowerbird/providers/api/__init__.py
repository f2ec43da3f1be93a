"""Agents that are a vendor's model behind HTTP: asked with text, answering with text.

Must not be here: a wire of a vendor (`models/providers` has them), sessions (`registry`).
"""
