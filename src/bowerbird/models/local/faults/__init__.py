"""Code that is wrong: the function that is meant, its tests, what a small model is asked.

Here: decisions and texts, purely, and the program that runs tests. Not here: asking the model
(`exchange.py`).
"""
