"""Move every module to its room and every import through a door: python move.py CHECKOUT"""
import ast, collections, pathlib, re, subprocess, sys
sys.path.insert(0, "/work/rooms")
CHECK = pathlib.Path(sys.argv[1]); DRY = "--dry" in sys.argv
sys.argv = ["x", str(CHECK)]
exec(open("/work/rooms/graph.py").read().split("if __name__")[0])
import placement
from placement import *
from test_rooms import TESTS
PKGS = set(PACK)
src = CHECK/"src"/"thresher"
def git(*a): subprocess.run(["git","-C",str(CHECK),*a],check=True,stdout=subprocess.DEVNULL)
DOCS=[p for p in (CHECK/"docs").rglob("*.py") if not {"_build","api","gallery"} & set(p.parts)]
files = [*src.rglob("*.py"), *(CHECK/"tests").rglob("*.py"), *(CHECK/"benchmarks").glob("*.py"), *(CHECK/"packaging").glob("*.py"), *DOCS]
def home(path):
    if path.is_relative_to(src):
        n='.'.join(path.relative_to(src).with_suffix('').parts); n = n.removesuffix('.__init__') if n!='__init__' else n
        return ("root" if n=="__init__" else PACK[n].split('.')[0] if n in PKGS else room(n)), n
    if path.is_relative_to(CHECK/"tests"): return TESTS.get(path.name,""), None
    return "", None
doors = collections.defaultdict(dict); conflicts=set(); problems=[]
WING_VERBS={"cli.release","cli.ledger","cli.plan","cli.private_pay","cli.appraise","cli.market","cli.serve","cli.federate","cli.federate_demo","cli.attack","cli.reproduce"}
def pass_door(q,mod,name):
    if mod in WING_VERBS: return
    if doors[q].setdefault(name,mod)!=mod: conflicts.add((q,name,doors[q][name],mod))
PACKAGE_NAMES={}; OWN=set()
for pk in PKGS:
    tree=ast.parse(mods[pk].read_text())
    for node in ast.walk(tree):
        if isinstance(node,ast.ImportFrom) and node.module and node.module.startswith("thresher.") and resolve(node.module):
            for a in node.names: PACKAGE_NAMES[pk,a.asname or a.name]=(resolve(node.module),a.name)
    for node in tree.body:
        names=[node.name] if isinstance(node,(ast.FunctionDef,ast.ClassDef)) else [t.id for t in node.targets if isinstance(t,ast.Name)] if isinstance(node,ast.Assign) else []
        OWN|={(pk,x) for x in names if not x.startswith('__')}
edits=collections.defaultdict(list); swaps=collections.defaultdict(list)
IMPORTS_OF={}
def IMPORTED(sub):
    IMPORTS_OF[sub]={name:t for t,name,node,a in imports(sub) if name and t not in PKGS and t!='__init__'}
    return set(IMPORTS_OF[sub])
for path in files:
    rm,n=home(path)
    if n=="cli": continue
    text=path.read_text(); tree=ast.parse(text); lines=text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node,ast.ImportFrom) and not node.level and node.module and node.module.split('.')[0]=="thresher":
            out=collections.OrderedDict()
            def emit(m,name,as_=None): out.setdefault(m,[]).append((name,as_))
            for a in node.names:
                sub=resolve(f"{node.module}.{a.name}")
                if (resolve(node.module),a.name) in PACKAGE_NAMES: sub=None  # a name hides the module
                if sub is not None and sub!='__init__':
                    alias=a.asname or a.name
                    if path.is_relative_to(CHECK/"tests") and sub not in PKGS and room(sub) not in (rm,"root"):
                        full="thresher."+new(sub)
                        rest=re.sub(rf'setattr\(\s*{alias}, "(\w+)"','',text)
                        used=set(re.findall(rf'(?<![\w.]){alias}\.(\w+)',rest))
                        defined={n.id if isinstance(n,ast.Name) else n.name for n in ast.walk(ast.parse(mods[sub].read_text())) if isinstance(n,(ast.FunctionDef,ast.ClassDef)) or (isinstance(n,ast.Name) and isinstance(n.ctx,ast.Store))}
                        bare=re.search(rf'(?<![\w.]){alias}(?![\w.])',re.sub(rf'(import|as) [^\n]*\b{alias}\b','',rest))
                        if not bare and all(u in defined|IMPORTED(sub) and not u.startswith('_') for u in used):
                            swaps[path].append((alias,full))
                            for u in sorted(used):
                                src_mod=sub if u in defined else IMPORTS_OF[sub][u]
                                pass_door(room(src_mod),src_mod,u); emit("thresher."+room(src_mod),u)
                            continue
                    if sub in PKGS:
                        if PACK[sub]!=sub: problems.append((str(path.relative_to(CHECK)),node.lineno,"package",sub))
                        emit("thresher",PACK[sub].split('.')[0],a.asname); continue
                    pre,_,last=("thresher."+new(sub)).rpartition('.')
                    emit(pre,last,a.asname or (a.name if a.name!=last else None))
                    if room(sub) not in (rm,"root"): problems.append((str(path.relative_to(CHECK)),node.lineno,"module",sub))
                    continue
                t=resolve(node.module) if node.module!="thresher" else "__init__"; name=a.name
                if t is None: problems.append((str(path),node.lineno,"unresolved",node.module,name)); emit(node.module,name,a.asname); continue
                if t in PKGS:
                    if (t,name) in PACKAGE_NAMES: t,name=PACKAGE_NAMES[t,name]
                    else:
                        if (t,name) not in OWN: problems.append((str(path),node.lineno,"?",t,name))
                        emit("thresher."+PACK[t].split('.')[0],name,a.asname); continue
                if t=="__init__": emit("thresher",name,a.asname); continue
                q=room(t)
                if q in (rm,"root"): emit("thresher."+new(t),name,a.asname); continue
                pass_door(q,t,name); emit("thresher."+q,name,a.asname)
            ind=" "*node.col_offset; stmts=[]
            for m,names in out.items():
                parts=[x if not y else f"{x} as {y}" for x,y in names]
                one=f"{ind}from {m} import {', '.join(parts)}"
                stmts.append(one if len(one)<=100 else f"{ind}from {m} import (\n"+"".join(f"{ind}    {p},\n" for p in parts)+f"{ind})")
            tail=lines[node.end_lineno-1].encode()[node.end_col_offset:].decode()
            edits[path].append((node.lineno-1,node.end_lineno,"\n".join(stmts)+(tail if tail.strip() else "\n")))
        elif isinstance(node,ast.Import):
            for a in node.names:
                if a.name.startswith("thresher."): problems.append((str(path.relative_to(CHECK)),node.lineno,"import",a.name))
MDS=[p for p in CHECK.rglob("*.md") if not {"_build","api","gallery",".environments","results",".venv"} & set(p.parts)]
LINE=re.compile(r'^(\s*(?:>>> |\.\.\. |"|\x27)?)from (thresher\.[\w.]+) import ([\w, ]+?)(?=$|; )',re.M)
def through(match):
    pre,module,names=match.groups(); t=resolve(module); rooms_={}
    if t is None: return match[0]
    for name in names.split(", "):
        bare=name.split(" as ")[0]
        sub=resolve(f"{module}.{bare}")
        if sub is not None: return match[0]
        o,n=(PACKAGE_NAMES.get((t,bare)) or ((None,None) if t in PKGS else (t,bare)))
        if o is None: rooms_.setdefault(PACK[t].split('.')[0],[]).append(name); continue
        if room(o)=="root": return match[0]
        pass_door(room(o),o,n); rooms_.setdefault(room(o),[]).append(name)
    return "\n".join(f"{pre}from thresher.{q} import {', '.join(ns)}" for q,ns in rooms_.items())
prose={}
for path in [*files,*MDS]:
    s=path.read_text()
    if path.suffix==".md": n_=LINE.sub(through,s)
    else:
        n_=re.sub(r'^( *(?:>>> |\.\.\. ))from (thresher\.[\w.]+) import ([\w, ]+?)(?=$|; )',through,s,flags=re.M)
    if n_!=s: prose[path]=(s,n_)
for mod,name in [("attack.curves","neighbor_effect"),("runs.appraisal","appraise_files"),("runs.memory_run","value_files"),("runs.settings","Settings"),*[("plots",n) for n in "plot_map plot_owners plot_radius plot_removal plot_values".split()],*[("embed",n) for n in "embed_images embed_texts leading_components".split()],*[("report.__init__",n) for n in ()],("report.evidence","gather"),("report.page","render"),("report.page","write_report")]:
    pass_door(room(mod),mod,name)
# names that the root's table and today's packages give out go through doors, too
for (pk,name),(mod,orig) in PACKAGE_NAMES.items():
    if room(mod)==PACK[pk].split('.')[0]: pass_door(room(mod),mod,orig)
rootnames={}
for t,name,node,a in imports('__init__'):
    if t not in PKGS and t!='__init__' and name and room(t)!="root": pass_door(room(t),t,name); rootnames[name]=room(t)
for q in doors:
    stems={new(n).split('.')[1] for n in mods if n not in PKGS and n not in("__init__","__main__","version") and room(n)==q}
    for name in doors[q]:
        if name in stems: conflicts.add((q,name,"is a file of the room"))
if conflicts: print("CONFLICTS",*sorted(map(str,conflicts)),sep="\n  ")
for p in problems: print("problem",*p)
print({q:len(d) for q,d in doors.items()})
if conflicts or DRY: sys.exit(bool(conflicts))
# ---- write imports
for path,(s,n_) in prose.items():
    if path.suffix==".md": path.write_text(n_)
    else:  # line by line, since edits count lines
        old,new_=s.split("\n"),n_.split("\n")
        assert len(old)==len(new_),path
        path.write_text(n_)
for path,ed in edits.items():
    lines=path.read_text().splitlines(keepends=True)
    for a,b,s in sorted(ed,reverse=True): lines[a:b]=[s]
    path.write_text("".join(lines))
for path,sw in swaps.items():
    s=path.read_text()
    for alias,full in sw:
        s=re.sub(rf'setattr\(\s*{alias}, "(\w+)"',lambda m: f'setattr("{full}.{m[1]}"',s)
        s=re.sub(rf'(?<![\w.]){alias}\.(\w+)',r'\1',s)
    path.write_text(s)
# ---- dotted names in strings and prose
known=sorted((n for n in mods if n not in ("__init__","errors")),key=len,reverse=True)
table={("thresher."+n):("thresher."+(new(n) if n not in PKGS else PACK[n].split(".")[0])) for n in known}
door_table={k:".".join(v.split(".")[:2]) for k,v in table.items()}
pat=re.compile(r"thresher\.(?:"+"|".join(re.escape(n) for n in known)+r")(?![\w/-])")
slash={("src/thresher/"+n.replace('.','/')+".py"):("src/thresher/"+new(n).replace('.','/')+".py") for n in known if n not in PKGS}
short={(n.replace('.','/')+".py"):(new(n).replace('.','/')+".py") for n in known if n not in PKGS and '.' in n}
SHORT=re.compile(r"(?<![\w/.])(?:"+"|".join(re.escape(k) for k in short)+r")\b")
texts=[*files,*[p for p in CHECK.rglob("*.md") if not {"_build","api","gallery",".environments","results",".venv"} & set(p.parts)],CHECK/"pyproject.toml",CHECK/"Makefile",*(src.rglob("*.jinja"))]
for path in texts:
    s=path.read_text(); t=pat.sub(lambda m: door_table[m[0]] if path.suffix==".md" else table[m[0]],s)
    for a,b in slash.items(): t=t.replace(a,b)
    t=SHORT.sub(lambda m: short[m[0]],t)
    if t!=s: path.write_text(t)
# ---- move files
git("add","-A")
def mv(a,b):
    b.parent.mkdir(parents=True,exist_ok=True); git("mv",str(a.relative_to(CHECK)),str(b.relative_to(CHECK)))
inits={pk:(src/pk/"__init__.py").read_text() for pk in PKGS}
for n in sorted(mods):
    if n in PKGS or n=="__init__": continue
    dest=src/pathlib.Path(*new(n).split('.')).with_suffix('.py')
    if mods[n].name=="__init__.py": dest=src/pathlib.Path(*new(n).split('.'))/"__init__.py"
    if mods[n]!=dest: mv(mods[n],dest)
for pk in PKGS:
    for p in sorted((src/pk).glob("*")):
        if p.suffix!=".py" and p.name!="__pycache__":
            d=src/pathlib.Path(*PACK[pk].split('.'))/p.name
            if d!=p: mv(p,d)
    if PACK[pk]!=pk: git("rm","-q","-f",str((src/pk/"__init__.py").relative_to(CHECK)))
for t,r in TESTS.items():
    if r and (CHECK/"tests"/t).exists(): mv(CHECK/"tests"/t,CHECK/"tests"/r/t)
# ---- doors
import json
json.dump({q:{k:new(v) for k,v in d.items()} for q,d in doors.items()},open("/work/rooms/doors.json","w"),indent=1)
json.dump(inits,open("/work/rooms/inits.json","w")); json.dump(rootnames,open("/work/rooms/rootnames.json","w"))
