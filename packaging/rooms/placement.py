"""Old module -> new module, below thresher."""
ORDER = ["root", "base", "kernels", "inputs", "near", "games", "walk", "values", "findings", "tables", "report", "command",
         "retrain", "privacy", "market", "federate", "lab"]
PACK = {"kernels":"kernels","inputs":"inputs","neighbors":"near","games":"games","passes":"walk","sides":"walk","live":"walk.live",
 "payouts":"values","findings":"findings","tables":"tables","report":"report","cli":"command.verbs","runs":"command.runs","retrain":"retrain",
 "privacy":"privacy","market":"market","federate":"federate","attack":"lab.attack","paper":"lab.paper"}
ONE = {}
def put(room, *names):
    for n in names:
        n, _, new = n.partition('>')
        ONE[n]=room+'.'+(new or n.split('.')[-1])
put("base","tables.formulas","tables.number_text","errors","array_types","threads","progress","files","keeper","drafts","ranking","lazy_names>doors","hooks","inputs.coded","report.phrases")
put("inputs","metrics","regression")
put("near","growth")
put("walk","counts","price_list","valuation","owner_valuation")
put("walk","sides.ball_side>balls","sides.forest_side>forests","sides.target_side>target_balls","sides.target_forest_side>target_forests")
put("base","statement_page")
put("values","logistic","tknn","knn","forest","owners","radius","classifier","payouts.payout>division","payouts.shared_rows>rows_of_two")
put("findings","corrupt","findings.review_list>review")
put("tables","embed","runs.problems","runs.inspection","runs.roles","runs.sources","runs.scales","runs.settings","runs.choice","runs.hints","runs.unlabeled","runs.leak_hints>leaking")
put("inputs","inputs.far_off>outliers")
put("report","plots")
put("privacy","payouts.private>payout","payouts.private_statements","tables.private_encoding","runs.public_encoding","runs.appraisal","privacy.release_setting>setting")
for v in ("release","ledger","plan","private_pay","appraise"): put("privacy.verbs","cli."+v)
put("market.verbs","cli.market","cli.serve")
put("federate.verbs","cli.federate","cli.federate_demo")
put("lab.verbs","cli.attack","cli.reproduce")
put("lab.paper","privacy.dp_knn")
put("command","cli.options","cli.words","cli.streams")
put("near","neighbors.closest>closest_points","neighbors.tree>box_tree","neighbors.tiles>distance_tiles")
put("games","games.ring_prices>rings")
put("report","report.owner_page>statements")
put("kernels","kernels.ring_codes>rings")
for n in ("__main__","version","__init__"): ONE[n]=n
RENAMES={("neighbors.groups","Block"):"BlockOfGroups",("embed","check_target"):"check_embedding_target"}
def new(mod):
    if mod in ONE: return ONE[mod]
    if mod=="cli": return "command"
    if mod in PACK: return PACK[mod]
    p,rest=mod.split('.',1)
    if p not in PACK: raise SystemExit(f"where does {mod} go?")
    return PACK[p]+'.'+rest
def room(mod):
    n=new(mod)
    return "root" if n in("__main__","version","__init__") else n.split('.')[0]
