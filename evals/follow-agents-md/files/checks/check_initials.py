import sys

sys.path.insert(0, ".")
from text.initials import initials

assert initials("ada lovelace") == "AL"
print("ok")
