"""Renames before the move; run at a checkout."""
import re,sys,pathlib
R=pathlib.Path(sys.argv[1]); S=R/'src/thresher'
def ren(files,old,new):
    for f in files:
        p=R/f; s=p.read_text(); t=re.sub(rf'(?<![\w.]){old}(?!\w)',new,s)
        if t!=s: p.write_text(t)
src='src/thresher/'
ren([src+x for x in('neighbors/blocks.py','neighbors/rings.py','privacy/contributions.py','privacy/target_contributions.py','games/label_sums.py')],'Block','BitBlock')
ren([src+x for x in('neighbors/tree.py','neighbors/costs.py','neighbors/visits.py','neighbors/ball.py')]+['tests/test_neighbors_ways.py','tests/test_outliers.py','tests/test_neighbors.py','benchmarks/neighbors.py'],'Tree','BoxTree')
ren([src+x for x in('embed.py','cli/embed.py')],'check_target','check_npz')
for f in ('src/thresher/privacy/table_mechanism.py',): pass
