"""Test file -> room."""
import subprocess,sys,re,ast
G={"lab":"attack audit audit_bounds audit_leaks paper_data paper_figures paper_keys paper_methods paper_records reproduce reproduction_pages private_knn",
"privacy":"personal_epsilons witnesses accountants cap chain counted_table entry_weights ledger ledger_damage ledger_locks ledger_races noise plan private_cells private_counts private_frames private_kernels private_leaves private_lines private_owners private_payouts private_rows private_targets mutants public_encoding release release_honesty report_release stated_errors",
"market":"market_access market_answers market_api market_browser market_command market_core market_export market_faults market_files market_leaves market_odd market_pages market_privacy market_schema market_servers market_terms",
"federate":"federate_cli federate_http federate_leaves federate_noise federate_release federate_round federate_secrecy",
"retrain":"retrain retrain_numbers retrain_runs",
"base":"drafts files keeper messages threads",
"kernels":"kernels recursion rows label_sums logistic owner_values",
"inputs":"sparse_distances inputs label_types odd_arguments refused_inputs times",
"near":"directions forest_files judges near neighbors neighbors_ways outliers",
"games":"far_off_targets owner_numbers prices ring_numbers rings threshold regression",
"walk":"number_files checkpoints cluster counts engines forest_walk live live_files live_numbers live_version_1 memory number_parts number_prices passes price_list scanned_files valuation owners",
"values":"closest nearest truncation classifier forest payouts radius",
"findings":"corrupt findings forecast leaf_findings",
"tables":"leaks changes clean clean_kinds columns copies embed embed_models encoder formulas odd_tables scales scaling tables",
"report":"accessibility cards_browser kernel_uses page_browser plots report report_browser report_forest report_inputs report_numbers report_words review_browser why",
"command":"bulk solving_lines cli clean_command decisions hints inspection streamed streamed_runs streams ugly_tables value value_forest value_numbers value_owners value_refusals"}
TESTS={f"test_{t}.py":r for r,ts in G.items() for t in ts.split()}
H={"market":"market_cases.py market_faults.py market_forks.py market_world.py","privacy":"ledgers.py","federate":"federation.py","near":"tree_cases.py","command":"streamed_cases.py value_cases.py","tables":"cleaned_cases.py table_cases.py"}
for r,ts in H.items():
    for t in ts.split(): TESTS[t]=r
