"""Which changed paths a person must accept by name, and why.

Must not be here: asking the person, landing (`landing`).
"""
