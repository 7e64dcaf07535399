"""After move.py: doors, the root, the command's verbs, forwards."""
import json,pathlib,re,sys,subprocess,textwrap
R=pathlib.Path(sys.argv[1]); S=R/'src/thresher'
doors=json.load(open('/work/rooms/doors.json')); inits=json.load(open('/work/rooms/inits.json')); rootnames=json.load(open('/work/rooms/rootnames.json'))
doors['command'].update({n:'command.options' for n in "Adjacency Categorical Delimiter Encoding Force Id Ignore Json Label Metric PublicValidation PublicFill Radius Rings Standardize TableFile Trees Leaves number check_needs rings_and_leaves given argument panel OnceCommand".split() if n not in doors['command']})
DOC={
"base":"What every room stands on: errors, array types, threads, progress, files, doors.",
"kernels":None,
"inputs":"What a caller passes, as arrays and numbers that a kernel may trust; and distances.",
"near":"Who is near whom: within a radius, in rings of a kernel, or in the same leaf of a tree.",
"games":"What is counted, and the prices that follow: for classes, numbers and owners.",
"walk":"Count, price, pay: the walk, here, in parts, on a cluster or live; and what it results in.",
"values":"The functions that value points, by a radius, by neighbors, by forests; owners and payouts.",
"findings":"Which labels are wrong, and what to do about each row.",
"tables":None,
"report":"A valuation or a private release as one self-contained page: gather, render, write.",
"command":"The command: its options, its verbs, and the runs behind them.",
"retrain":"Values by retraining a model for every coalition, for comparison with other methods.",
"privacy":None,"market":None,"federate":None,
"lab":"The paper again, attacks on values, and audits of the privacy that releases claim.",
}
def docstring(room):
    if DOC.get(room): return f'"""{DOC[room]}"""'
    old={"kernels":"kernels","tables":"tables","privacy":"privacy","market":"market","federate":"federate"}.get(room)
    return re.match(r'""".*?"""',inits[old],re.S)[0]
def table(room):
    homes={}
    for name,mod in doors[room].items(): homes.setdefault(mod,[]).append(name)
    return {m:sorted(ns) for m,ns in sorted(homes.items())}
def door_text(room):
    homes=table(room); out=[docstring(room),"","from __future__ import annotations",""]
    imp="from .doors import door" if room=="base" else "from thresher.base import door"
    tail=extra_after.get(room,"")
    out+=["TYPE_CHECKING = False  # without the time that it takes to import `typing`","if TYPE_CHECKING:"]
    for mod,ns in homes.items():
        rel="."+mod.split('.',1)[1] if mod.split('.')[0]==room else "thresher."+mod.split('.')[0]
        out.append(f"    from {rel} import "+", ".join(f"{n} as {n}" for n in ns))
    out+=["else:",f"    {imp}","","    __getattr__, __dir__, __all__ = door(","        __name__,","        {"]
    for mod,ns in homes.items():
        rel="."+mod.split('.',1)[1] if mod.split('.')[0]==room else "thresher."+mod.split('.')[0]; text=" ".join(ns)
        line=f'            "{rel}": "{text}",'
        if len(line)<=100: out.append(line)
        else:
            out.append(f'            "{rel}": (')
            chunks=textwrap.wrap(text,76)
            for i,c in enumerate(chunks): out.append(f'                "{c}{" " if i<len(chunks)-1 else ""}"')
            out.append("            ),")
    out+=["        },","    )"]
    return "\n".join(out)+"\n"+tail
extra_after={}
# report: its own function goes to a module
own=inits["report"]; a=own.index("def report_valuation(")
(S/"report/write.py").write_text('"""The page of whatever has one, written as a file."""\n\nfrom __future__ import annotations\n\nfrom pathlib import Path\nfrom typing import Any\n\nfrom thresher.base import InputError, StatementPage\nfrom thresher.report.evidence import gather\nfrom thresher.report.page import check_target, write_report\nfrom thresher.report.statements import owner_page, write_statement\nfrom thresher.walk import OwnerValuation, Valuation\n\n\n'+own[a:])
doors["report"]["report_valuation"]="report.write"
doors["federate"]["public_forest"]="privacy.leaf_setting"
doors["base"]["StatementPage"]="base.statement_page"
for n in ("door","wing","forward"): doors["base"][n]="base.doors"
doors["base"].pop("lazy_names",None)
doors["base"]["lend_pages"]="base.hooks"
_t=(S/"base/errors.py").read_text()
for _c in re.findall(r"^class (\w+(?:Error|Warning))",_t,re.M): doors["base"][_c]="base.errors"
for n in ("beta_shapley","data_banzhaf","data_shapley","leave_one_out"): doors["retrain"][n]="retrain.methods"
doors["command"]["app"]="command.program"; doors["command"]["main"]="command.program"; doors["command"]["HELP"]="command.program"
(S/"base/doors.py").write_text('''"""Doors: what a room gives to others, imported when it is first asked for; and wings."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def door(
    room: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a room; `homes` maps modules to their names."""
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            message = f"module {room!r} has no attribute {name!r}"
            raise AttributeError(message)
        found = getattr(import_module(modules[name], room), name)
        setattr(sys.modules[room], name, found)
        return found

    return find, lambda: sorted({*vars(sys.modules[room]), *modules}), sorted(modules)


def forward(old: str, room: str, *inner: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has moved to a room; `inner` are modules it had."""

    def find(name: str) -> Any:
        if name not in import_module(room).__all__:
            message = f"module {old!r} has no attribute {name!r}"
            raise AttributeError(message)
        message = f"{old} has moved: import {name} from {room}"
        warn(message, DeprecationWarning, stacklevel=2)
        return getattr(import_module(room), name)

    for each in inner:
        sys.modules[f"{old}.{each}"] = moved = ModuleType(f"{old}.{each}")
        moved.__getattr__ = find  # type: ignore[method-assign]
        setattr(sys.modules[old], each, moved)
    return find


def wing(name: str) -> ModuleType | None:
    """A wing by its name, such as "market", or None where it was taken off."""
    full = f"{__name__.partition('.')[0]}.{name}"
    return import_module(full) if find_spec(full.partition(".verbs")[0]) else None
''')
for room in doors:
    if room in("root",): continue
    (S/room/"__init__.py").parent.mkdir(exist_ok=True)
    if room=="command":
        # the command itself goes to a module of its own
        pass
    (S/room/"__init__.py").write_text(door_text(room) if room!="command" else door_text(room).replace('"""None"""',''))
for sub in ("walk/live","lab/attack","lab/paper","command/verbs","command/runs"):
    d=S/sub
    if d.is_dir():
        old={"walk/live":"live","lab/attack":"attack","lab/paper":"paper","command/verbs":None,"command/runs":"runs"}[sub]
        doc=re.match(r'""".*?"""',inits[old],re.S)[0] if old else '"""The verbs of the command: each file parses, calls one function and prints."""'
        (d/"__init__.py").write_text(doc+"\n")
# ---- the command
cli=inits["cli"]
a=cli.index('HELP = """'); b=cli.index('app = typer.Typer('); c=cli.index('INTERRUPTED, TERMINATED')
help_text=cli[a:b]; rest=cli[c:]
names="demo inspect value clean payout plan release appraise attack audit embed reproduce serve work".split()
(S/"command/program.py").write_text('''"""The command `thresher`: its verbs, those of the wings among them, and how it ends.

Data go to stdout, words to stderr. Exit codes: 0 done, 1 refused, 2 usage, 3 budget, 4 an audited
claim is violated.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import warnings
from typing import Annotated

import typer

from thresher.base import BudgetError, ThresherError, UndecidedError, in_options, wing
from thresher.command.options import OnceCommand, given
from thresher.command.verbs.clean import clean
from thresher.command.verbs.demo import demo
from thresher.command.verbs.embed import embed
from thresher.command.verbs.inspect import inspect
from thresher.command.verbs.payout import payout
from thresher.command.verbs.value import value
from thresher.command.words import flushed, in_words, say, say_warning, say_whole
from thresher.version import versions

'''+help_text+'''WINGS = "privacy", "market", "federate", "lab"  # those with verbs
ORDER = (  # of verbs and groups in the help
    "demo", "inspect", "value", "clean", "payout", "plan", "release", "appraise", "attack", "audit",
    "embed", "reproduce", "serve", "work", "ledger", "federate", "market",
)  # fmt: skip

app = typer.Typer(
    no_args_is_help=True, help=HELP, pretty_exceptions_enable=False, rich_markup_mode="markdown"
)
for verb in (demo, inspect, value, clean, payout, embed):
    app.command()(verb)
for verbs in filter(None, (wing(f"{name}.verbs") for name in WINGS)):
    verbs.register(app)
app.registered_commands.sort(key=lambda each: ORDER.index(each.callback.__name__))  # type: ignore[union-attr]
app.registered_groups.sort(key=lambda each: ORDER.index(str(each.name)))
for group in (app, *(each.typer_instance for each in app.registered_groups)):
    for each in group.registered_commands if group else ():
        each.cls = OnceCommand

'''+rest)
VERBS={"privacy":('"""`thresher plan`, `release`, `appraise` and `ledger`."""',["appraise import appraise","ledger import app as ledger","plan import plan","release import release"],["plan","release","appraise"],{"ledger":"ledger"}),
"market":('"""`thresher serve`, `work` and `market`."""',["market import app as market","serve import serve, work"],["serve","work"],{"market":"market"}),
"federate":('"""`thresher federate`."""',["federate import app as federate"],[],{"federate":"federate"}),
"lab":('"""`thresher attack`, `audit` and `reproduce`."""',["attack import attack, audit","reproduce import reproduce"],["attack","audit","reproduce"],{})}
for w,(doc,imps,cmds,groups) in VERBS.items():
    t=[doc,"","from __future__ import annotations","","import typer","",*[f"from thresher.{w}.verbs.{i}" for i in imps],"","","def register(app: typer.Typer) -> None:",'    """Add the verbs of this wing to the command."""']
    if len(cmds)>1: t+=[f"    for verb in ({', '.join(cmds)}):","        app.command()(verb)"]
    for g,n in groups.items(): t+=[f'    app.add_typer({g}, name="{n}")']
    (S/w/"verbs/__init__.py").write_text("\n".join(t)+"\n")
# ---- the root
root=(S/"__init__.py").read_text()
names=re.search(r"__all__ = \[\n(.*?)\]  # fmt: skip",root,re.S)[0]
by={}
for n,q in rootnames.items(): by.setdefault(q,[]).append(n)
ERR=["BudgetError","ExtraError","FitWarning","InputError","LabelWarning","ReachWarning","ScaleWarning","ThresherError","ThresherWarning","TwinWarning"]
tc="".join(f"    from .{q} import {', '.join(f'{n} as {n}' for n in sorted(by[q]))}\n" for q in sorted(by) if q!="base")
def wrapped(q,text):
    line=f'    ".{q}": "{text}",'
    if len(line)<=100: return line+"\n"
    chunks=textwrap.wrap(text,84)
    return f'    ".{q}": (\n'+"".join(f'        "{c}{" " if i<len(chunks)-1 else ""}"\n' for i,c in enumerate(chunks))+"    ),\n"
homes="".join(wrapped(q," ".join(sorted(by[q]))) for q in sorted(by) if q!="base")
doc=re.match(r'""".*?"""',root,re.S)[0]
(S/"__init__.py").write_text(f'''{doc}

from __future__ import annotations

from importlib import import_module
from os.path import isdir as _isdir

from thresher.base import {", ".join(ERR)}
from thresher.base import door as _door
from thresher.base import lend_pages as _lend_pages
from thresher.version import __version__ as __version__

TYPE_CHECKING = False  # without the time that it takes to import `typing`
if TYPE_CHECKING:
    from typing import Any

{tc}
{names}

# slow to import: only when asked for, so that the command is there at once
_HOMES = {{
{homes}}}
_gone = {{  # names of wings that were taken off
    name: home[1:]
    for home, names in _HOMES.items()
    if not _isdir(f"{{__path__[0]}}/{{home[1:]}}")  # noqa: PTH112 - pathlib is slow to import
    for name in names.split()
}}
if _gone:
    __all__ = [name for name in __all__ if name not in _gone]  # noqa: PLE0605

if not TYPE_CHECKING:  # a type checker would take any name for one of these
    _find = _door(__name__, _HOMES)[0]

    def __getattr__(name: str) -> Any:
        if name in _gone:
            raise ExtraError(
                f"thresher.{{name}} is in the part {{_gone[name]!r}}, which was taken out of this "
                "installation: install Thresher whole"
            )
        if name == "federate":  # a package of its own, with the extra `federate`
            return import_module("thresher.federate")
        return _find(name)


def __dir__() -> list[str]:
    return sorted({{*globals(), *__all__}})


def _write_page(*subject: Any, **options: Any) -> None:
    import_module("thresher.report").report_valuation(*subject, **options)


_lend_pages(_write_page)
''')

FORWARDS={"attack":("lab",["plots","curves","canaries"]),"paper":("lab",["datasets","draws","detection","reproduce"]),"plots":("report",[]),"embed":("tables",[]),"metrics":("inputs",[]),"runs":("command",[])}
for n,(q,inner) in FORWARDS.items():
    args="".join(f', "{i}"' for i in inner)
    (S/f"{n}.py").write_text(f'''"""Moved to `thresher.{q}`; this path is kept for programs that have it."""

from thresher.base import forward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thresher.{q} import *  # noqa: F403
else:
    __getattr__ = forward(__name__, "thresher.{q}"{args})
''')

import ast
t=(S/"base/errors.py").read_text()
classes=[n.name for n in ast.parse(t).body if isinstance(n,ast.ClassDef) and re.search(r"(Error|Warning)$",n.name)]
(S/"errors.py").write_text('''"""The exceptions and warnings of this library, where programs find them."""

from thresher.base import '''+", ".join(sorted(classes))+"\n\n__all__ = "+repr(sorted(classes)).replace("'",'"')+"\n")
t=t.rstrip()+'''


for _each in list(globals().values()):
    if isinstance(_each, type) and issubclass(_each, ThresherError | ThresherWarning):
        _each.__module__ = "thresher.errors"  # the path that programs know, and tracebacks show
'''
(S/"base/errors.py").write_text(t)
dj=None
