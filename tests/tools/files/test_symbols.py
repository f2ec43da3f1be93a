"""Symbols by tree-sitter: TO-20."""

import pytest

from bowerbird.core.errors import InvalidArgument
from bowerbird.tools.files.symbols import language_of, symbols

SOURCES = {
    "a.py": (
        "class A:\n  def m(self):\n    def inner(): pass\n@deco\nasync def f(): pass\n",
        ["1 class A", "2 method m", "3 function inner", "5 function f"],
    ),
    "a.js": (
        "class A { m() {} static s() {} }\nconst f = (x) => x\nfunction* g() {}\nvar n = 3\n",
        ["1 class A", "1 method m", "1 method s", "2 function f", "3 function g"],
    ),
    "a.ts": (
        "interface I {}\ntype T = 1\nenum E {}\nexport default function d() {}\nnamespace N { class C {} }\n",
        ["1 interface I", "2 type T", "3 enum E", "4 function d", "5 namespace N", "5 class C"],
    ),
    "a.tsx": ("const C = () => <div/>\n", ["1 function C"]),
    "a.go": (
        "package p\ntype S struct{}\ntype I interface{}\ntype X int\nfunc (s S) M() {}\nfunc F() {}\n",
        ["2 struct S", "3 interface I", "4 type X", "5 method M", "6 function F"],
    ),
    "a.rs": (
        "struct S;\ntrait T { fn t(&self); }\nimpl T for S { fn t(&self) {} }\nfn main() {}\nmod m {}\n",
        ["1 struct S", "2 trait T", "2 method t", "3 impl S", "3 method t", "4 function main", "5 module m"],
    ),
    "a.java": (
        "class A {\n  A() {}\n  void m() {}\n  interface I {}\n  enum E { X }\n  record R(int x) {}\n}\n",
        ["1 class A", "2 constructor A", "3 method m", "4 interface I", "5 enum E", "6 record R"],
    ),
    "a.c": (
        "struct s { int x; };\nstruct s *f(struct s *a) { return a; }\ntypedef struct { int q; } t;\n"
        "static int (*g(void))(int) { return 0; }\nenum e { A };\nunion u { int a; };\n",
        ["1 struct s", "2 function f", "3 type t", "4 function g", "5 enum e", "6 union u"],
    ),
    "a.cpp": (
        "namespace n { class C { void m() {} }; }\nvoid n::C::z() {}\n"
        "template<class T> T& f(T a) { return a; }\n",
        ["1 namespace n", "1 class C", "1 method m", "2 function n::C::z", "3 function f"],
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_language_shows_its_definitions_in_order(name: str) -> None:
    source, expected = SOURCES[name]
    assert [f"{s.line} {s.kind} {s.name}" for s in symbols(source.encode(), language_of(name))] == expected


def test_broken_and_deeply_nested_code_gives_what_can_be_read() -> None:
    language = language_of("a.py")
    assert [s.name for s in symbols(b"def good(): pass\ndef (broken\n", language)][:1] == ["good"]
    assert symbols(b"(" * 100_000, language) == []
    assert symbols(b"", language) == []
    assert symbols(b"\xff\xfe def f", language) == []


def test_another_language_is_refused_naming_those_that_work() -> None:
    with pytest.raises(
        InvalidArgument, match=r"a\.rb: .*Python, JavaScript, TypeScript, Go, Rust, Java, C, C\+\+"
    ):
        language_of("a.rb")
