cat > text/slug.py <<'X'
"""Titles as parts of addresses.

Owner: text team
"""

import re


def slug(title):
    """Return the words of a title, joined by hyphens."""
    return "-".join(re.findall(r"[^\W_]+", title.lower()))
X
printf 'initials\nslug\nwrap\n' > text/MODULES
cat > checks/check_slug.py <<'X'
import sys

sys.path.insert(0, ".")
from text.slug import slug

assert slug("  Hello, World! ") == "hello-world"
print("ok")
X
sed -i '1i + slug: words of a title, joined by hyphens' CHANGES
