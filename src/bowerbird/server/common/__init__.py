"""What every door of the server stands on: context, errors, forms of answers.

Must not be here: any route.
"""
