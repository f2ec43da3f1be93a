"""A subject as what somebody is doing: "Add tests" → "Adding tests" (DE-33). Pure.

Here: that derivation. Not here: anything about tasks.
"""

_VERBS = frozenset(
    """
    add adjust align allow analyse analyze apply archive ask audit automate avoid bake benchmark bind boost
    build bump bundle call catch change check choose clarify clean clear close collect combine compare
    compile complete configure connect consolidate convert copy cover create cross-check cut deal debug
    decide declare decouple define delete deliver deploy deprecate derive describe design detect determine
    develop diagnose disable discuss divide document download draft draw drop duplicate edit enable enforce
    enhance ensure escape establish estimate evaluate examine execute expand explain explore export expose
    extend extract fetch figure fill filter find finish fit fix flag flatten follow forbid format gather
    generate get give go group guard handle hide hook identify implement import improve include increase
    index inline insert inspect install integrate introduce inventory investigate join keep label land
    launch learn let limit link lint list load localise localize lock log look lower make manage map mark
    measure merge migrate mock model modify monitor move name normalise normalize note notify open optimise
    optimize order organise organize outline pack package parse patch pin plan plug polish port post
    prepare prevent print prioritise prioritize process profile prototype prove provide publish pull push
    put query raise read reason rebase rebuild record redesign reduce refactor refine refresh register
    release reload remove rename render reorder reorganise reorganize repair repeat replace reply report
    reproduce request require rerun research reset resolve respond restart restore restructure retry return
    reuse reverse revert review revise rework rewrite roll rotate run save scan schedule search secure see
    select send separate serve set setup share ship show shrink sign simplify skip sort specify speed split
    squash stage start stop store streamline strip structure study submit summarise summarize support swap
    switch sync tag take test tidy tie trace track train translate trigger trim try tune turn type unify
    unpack update upgrade upload use validate verify view visit wait walk watch wire wrap write
    """.split()
)
_DOUBLED = frozenset(
    """
    cut debug drop fit forbid get let log map pin plan plug put rerun reset run scan set ship skip split
    stop strip submit swap tag trim wrap
    """.split()
)
_OTHERWISE = {"setup": "setting up", "see": "seeing", "tie": "tying"}


def active_form(subject: str) -> str:
    """Return what somebody who works on `subject` is doing, short enough for one line.

    Example:
        >>> active_form("Add tests"), active_form("run CI"), active_form("Parser")
        ('Adding tests', 'running CI', 'Working on: Parser')
    """
    line = " ".join(subject.split())
    first, space, rest = line.partition(" ")
    word = first.lower()
    if word.endswith("ing") and len(word) > 5:
        return line
    if word not in _VERBS:
        return f"Working on: {line}"
    form = _gerund(word)
    return f"{form.capitalize() if first[0].isupper() else form}{space}{rest}"


def _gerund(verb: str) -> str:
    if verb in _OTHERWISE:
        return _OTHERWISE[verb]
    if verb in _DOUBLED:
        return f"{verb}{verb[-1]}ing"
    return f"{verb[:-1]}ing" if verb.endswith("e") else f"{verb}ing"
