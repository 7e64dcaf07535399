import ast,pathlib,sys,collections
sys.path.insert(0,'/work/rooms')
from placement import *
root=pathlib.Path(sys.argv[1] if len(sys.argv)>1 else '/work/main'); src=root/'src'/'thresher'
mods={}
for p in src.rglob('*.py'):
    n='.'.join(p.relative_to(src).with_suffix('').parts)
    if n.endswith('.__init__'): n=n[:-9]
    mods[n]=p
def resolve(full):  # 'thresher.a.b' -> module below thresher or None
    b=full.removeprefix('thresher').lstrip('.')
    return b if b in mods else None
def imports(n):
    tree=ast.parse(mods[n].read_text()); pk=mods[n].name=='__init__.py'
    base=(['thresher']+([] if n=='__init__' else n.split('.')))
    if not pk: base=base[:-1]
    for node in ast.walk(tree):
        if isinstance(node,ast.ImportFrom):
            pre='.'.join(base[:len(base)-node.level+1]+([node.module] if node.module else [])) if node.level else node.module or ''
            if pre.split('.')[0]!='thresher': continue
            for a in node.names:
                f=resolve(pre+'.'+a.name)
                if f is not None: yield f,None,node,a
                else: yield resolve(pre) or '__init__',a.name,node,a
        elif isinstance(node,ast.Import):
            for a in node.names:
                if a.name.split('.')[0]=='thresher': yield resolve(a.name) or '__init__',None,node,a
if __name__=='__main__':
    up=collections.defaultdict(list)
    pkgs={'kernels','inputs','neighbors','games','passes','sides','live','payouts','findings','tables','report','cli','runs','retrain','privacy','market','federate','attack','paper'}
    for n in sorted(mods):
        if n in pkgs or n=='__init__': continue
        r=room(n)
        if r=='root': continue
        for t,name,node,a in imports(n):
            if t in ('__init__',) : up[(r,'ROOT')].append((n,name)); continue
            q=room(t) if t not in pkgs else PACK[t].split('.')[0]
            if q in('root',): continue
            if ORDER.index(q)>ORDER.index(r): up[(r,q)].append((n,t,name))
    for k,v in sorted(up.items(), key=lambda x:(ORDER.index(x[0][0]),x[0][1])):
        print(k,len(v))
        for e in v: print('    ',*e)
