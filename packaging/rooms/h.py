import sys; src=open('/work/shared/tools/house.py').read().replace('if "--json" in sys.argv:','for path in sorted((root / "tests").rglob("*.py")):\n    own = path.relative_to(root / "tests").parts[0]\n    tree = ast.parse(path.read_text(encoding="utf-8"))\n    o=sorted({t for t in imports(tree, "tests", True) if t.count(".") > 1 and room(t) != own})\n    if o: print(path.relative_to(root),o)\nif "--json" in sys.argv:')
sys.argv=['x','.']
exec(src)
