"""What a source file defines, by tree-sitter (TO-20).

Here: languages, which nodes are symbols, walking a tree. Not here: files, tools.
A grammar is loaded when a file of its language is first asked for.
"""

import importlib
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.extras import install_command

SUPPORTED = "Python, JavaScript, TypeScript, Go, Rust, Java, C, C++"


class Symbol(msgspec.Struct, frozen=True):
    """One definition, lines counted from 1."""

    name: str
    kind: str
    line: int
    end_line: int


class Language(msgspec.Struct, frozen=True):
    """A grammar's module and function, and its nodes that define something: type → kind."""

    module: str
    function: str
    nodes: dict[str, str]


_PYTHON = Language(
    "tree_sitter_python", "language", {"class_definition": "class", "function_definition": "function"}
)
_JS_NODES = {
    "class_declaration": "class", "function_declaration": "function",
    "generator_function_declaration": "function", "method_definition": "method",
    "variable_declarator": "function",
}  # fmt: skip
_JAVASCRIPT = Language("tree_sitter_javascript", "language", _JS_NODES)
_TS_NODES = {
    **_JS_NODES, "abstract_class_declaration": "class", "interface_declaration": "interface",
    "type_alias_declaration": "type", "enum_declaration": "enum", "internal_module": "namespace",
    "module": "namespace", "abstract_method_signature": "method", "function_signature": "function",
}  # fmt: skip
_TYPESCRIPT = Language("tree_sitter_typescript", "language_typescript", _TS_NODES)
_TSX = Language("tree_sitter_typescript", "language_tsx", _TS_NODES)
_GO = Language(
    "tree_sitter_go", "language",
    {"function_declaration": "function", "method_declaration": "method", "type_spec": "type",
     "type_alias": "type"},
)  # fmt: skip
_RUST = Language(
    "tree_sitter_rust", "language",
    {"function_item": "function", "function_signature_item": "function", "struct_item": "struct",
     "enum_item": "enum", "union_item": "union", "trait_item": "trait", "impl_item": "impl",
     "mod_item": "module", "macro_definition": "macro", "type_item": "type"},
)  # fmt: skip
_JAVA = Language(
    "tree_sitter_java", "language",
    {"class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
     "record_declaration": "record", "annotation_type_declaration": "annotation",
     "method_declaration": "method", "constructor_declaration": "constructor"},
)  # fmt: skip
_C_NODES = {
    "function_definition": "function", "struct_specifier": "struct", "union_specifier": "union",
    "enum_specifier": "enum", "type_definition": "type",
}  # fmt: skip
_C = Language("tree_sitter_c", "language", _C_NODES)
_CPP = Language(
    "tree_sitter_cpp", "language",
    {**_C_NODES, "class_specifier": "class", "namespace_definition": "namespace",
     "alias_declaration": "type"},
)  # fmt: skip
_BY_SUFFIX: dict[str, Language] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), _PYTHON),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), _TYPESCRIPT),
    ".tsx": _TSX,
    ".go": _GO,
    ".rs": _RUST,
    ".java": _JAVA,
    ".c": _C,
    **dict.fromkeys((".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".ipp", ".inl"), _CPP),
}
_BODY_NEEDED = ("struct_specifier", "union_specifier", "enum_specifier", "class_specifier")
_FUNCTION_VALUES = ("arrow_function", "function_expression", "function", "generator_function", "class")
_METHOD_PARENTS = (
    "class_definition", "impl_item", "trait_item", "class_specifier", "struct_specifier",
)  # fmt: skip


def language_of(path: str) -> Language:
    """Return the language of a file by its suffix.

    Raises:
        InvalidArgument: it is none of those supported; they are named.
    """
    suffix = PurePosixPath(path).suffix
    found = _BY_SUFFIX.get(suffix) or _BY_SUFFIX.get(suffix.lower())
    if found is None:
        raise InvalidArgument(f"{path}: symbols can be listed for {SUPPORTED}")
    return found


def symbols(source: bytes, language: Language) -> list[Symbol]:
    """Return what `source` defines, in its order. Slow for large files: use a thread.

    Raises:
        InvalidArgument: the language's grammar comes with an extra that is not installed.

    Example:
        >>> symbols(b"def f(): pass", language_of("a.py"))[0].name
        'f'
    """
    import tree_sitter

    if find_spec(language.module) is None:
        raise InvalidArgument(
            f"no grammar of this language is installed: {install_command('languages')}; search_files works"
        )
    library: Any = tree_sitter  # its types know only integers as grammars, the wheels give capsules
    module: Any = importlib.import_module(language.module)
    parser = library.Parser(library.Language(getattr(module, language.function)()))
    found: list[Symbol] = []
    cursor: Any = parser.parse(source).walk()
    enclosing: list[str] = []  # node types from the root; the tree may be deeper than Python's stack
    while True:
        node = cursor.node
        kind = language.nodes.get(node.type)
        if kind is not None:
            symbol = _symbol(node, kind, enclosing)
            if symbol is not None:
                found.append(symbol)
        if cursor.goto_first_child():
            enclosing.append(node.type)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found
            enclosing.pop()


def _symbol(node: Any, kind: str, enclosing: list[str]) -> Symbol | None:
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        if value is None or value.type not in _FUNCTION_VALUES:
            return None
        kind = "class" if value.type == "class" else "function"
    elif node.type in _BODY_NEEDED and node.child_by_field_name("body") is None:
        return None  # a mention of the type, not its definition
    elif node.type == "module" and node.child_by_field_name("name") is None:
        return None  # the root of a TypeScript tree on some grammars
    name = _name(node)
    if not name:
        return None
    if node.type == "type_spec":
        inner = node.child_by_field_name("type")
        kind = {"struct_type": "struct", "interface_type": "interface"}.get(inner.type if inner else "", kind)
    if kind == "function" and _is_method(node.type, enclosing):
        kind = "method"
    return Symbol(name, kind, node.start_point[0] + 1, node.end_point[0] + 1)


def _is_method(node_type: str, enclosing: list[str]) -> bool:
    """Whether the nearest definition around is a class, not another function."""
    for outer in reversed(enclosing):
        if outer in _METHOD_PARENTS:
            return True
        if outer == node_type:
            return False
    return False


def _name(node: Any) -> str:
    named = node.child_by_field_name("name")
    if named is None and node.type == "impl_item":
        named = node.child_by_field_name("type")
    if named is None:
        named = _declared(node)
    return named.text.decode("utf-8", "replace") if named is not None and named.text else ""


def _declared(node: Any) -> Any:
    """Follow C's declarators down to the name."""
    inner = node.child_by_field_name("declarator")
    while inner is not None:
        below = inner.child_by_field_name("declarator")
        if below is None:
            if inner.type == "parenthesized_declarator" or inner.type.endswith("reference_declarator"):
                below = next((c for c in inner.named_children), None)
            if below is None:
                return inner
        inner = below
    return None
