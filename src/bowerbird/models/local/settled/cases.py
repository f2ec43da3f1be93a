"""What a project's own functions give for the case of a question: the model writes the call, code runs it.

Here: whether a question is such a case, what is run before the call, what is asked and shown of it; pure.
Not here: asking the model (`exchange.py`). A small model that reads a rule applies it wrongly; the rule
itself does not.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bowerbird.models.local.task_words import alike, forms_of, parts_of, words_of

ASKED = (
    "The functions and values of the file are already there. Write one line of Python that prints what the "
    "task asks for: call the function that decides it, with the numbers of the task."
)
OPENING, BEGIN = "```python", "print("
MOST_TOKENS = 120
_MARK = "\n\n# What the task asks for:\n"
_MOST_CHARS = 12_000
_AMOUNT = re.compile(
    r"(?<![\w./-])\d+(?:[.,:]\d+)?(?![\w/-]|\.\d)|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b",
    re.IGNORECASE,
)
_LITERAL_CALL = re.compile(r"\b([A-Za-z_]\w*)\(([^()]*)\)")
_NO_CASE = re.compile(
    r"\b(?:lines?|file|where|defined?|parameters?|arguments?|written|version|"
    r"which (?:function|class|method))\b",
    re.IGNORECASE,
)
_MODULES = frozenset(
    "bisect collections copy csv dataclasses datetime decimal functools itertools json math re typing".split()
)
# Said of anything: a function is not told by them.
_GENERAL = frozenset("get has is make of one print set take the two use".split())


@dataclass(frozen=True, slots=True)
class Case:
    """A call that the model is to write, after what makes its functions known."""

    source: str

    def code(self, line: str) -> str:
        """Return what is run."""
        return f"{self.source}{_MARK}{line}"


def case_of(task: str, path: str, text: str, others: Mapping[str, str]) -> Case | None:
    """Return the case that a question asks of a file's functions; None where no function is about it.

    Args:
        task: the question.
        path: of the file that was read last.
        text: all of it.
        others: whole texts of other files by path, of which it may import.

    Example:
        >>> text = "def fee(kg):\\n    return 3 if kg < 20 else 2\\n"
        >>> case_of("What is the fee for 25 kg?", "fees.py", text, {}).code("print(fee(25))").splitlines()[-1]
        'print(fee(25))'
        >>> case_of("Who wrote it?", "fees.py", text, {}) is None
        True
    """
    if not path.endswith(".py") or len(text) > _MOST_CHARS or _NO_CASE.search(task):
        return None
    if not _AMOUNT.search(task) and not _LITERAL_CALL.search(task):
        return None
    tree = _parsed(text)
    if tree is None or not any(_is_about(function, path, task) for function in _functions(tree)):
        return None
    first = [source for name in _imported(tree) for source in _sources(name, others)]
    return Case("\n\n".join((*first, _kept(tree))))


def called_in(code: str) -> str | None:
    """Return the line of a case that was run, without what stood before it; None for other code."""
    before, mark, line = code.partition(_MARK)
    return line if mark and before else None


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and (node.args.args or node.args.kwonlyargs)
    ]


def _is_about(function: ast.FunctionDef, path: str, task: str) -> bool:
    """Whether a question says a function's name, or what it is given, and what its file is about."""
    called = {found[1] for found in _LITERAL_CALL.finditer(task)}
    if function.name in called:
        return True
    words = [word for word in words_of(task) if word not in _GENERAL and len(word) > 2]
    given = " ".join(arg.arg for arg in (*function.args.args, *function.args.kwonlyargs))
    says = ast.get_docstring(function) or ""
    name = parts_of(f"{function.name} {path.rpartition('/')[2].removesuffix('.py')}".replace("_", " "))
    by_name, by_given = _held(words, name), _held(words, parts_of(given.replace("_", " ")))
    return bool(by_name or by_given) and len({*by_name, *by_given, *_held(words, says.lower())}) > 0


def _held(words: Iterable[str], text: str) -> list[str]:
    return [word for word in words if any(re.search(forms_of(other), text) for other in alike(word))]


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _kept(tree: ast.Module) -> str:
    """Return a module without what it does when it is loaded: its names, and nothing that reads or prints."""
    kept = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    body: list[ast.stmt] = [
        node
        for node in tree.body
        if isinstance(node, kept)
        or (isinstance(node, ast.Import) and all(name.name in _MODULES for name in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module in _MODULES)
    ]
    for node in body:
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and len(node.body) > 1:
            node.body = node.body[1:]
    return ast.unparse(ast.Module(body=body, type_ignores=[]))


def _imported(tree: ast.Module) -> list[str]:
    return [
        node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module not in _MODULES
    ]


def _sources(module: str, others: Mapping[str, str]) -> list[str]:
    """Return the names that an imported module of the project gives, if its text is known."""
    ending = module.replace(".", "/") + ".py"
    for path, text in others.items():
        if path == ending or path.endswith(f"/{ending}"):
            tree = _parsed(text)
            return [_kept(tree)] if tree is not None else []
    return []
