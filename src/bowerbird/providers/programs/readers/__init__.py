"""Reading what vendors' programs print (PR-26, PR-27): pure, one reader per form of output, never raising.

Here: readers. Not here: which program is read with which (`vendors`), whether what they found is success.
"""
