cd ${D:-/work/wt/scratch2} && git reset -q --hard && git clean -qfd -e .venv && git checkout -q --detach ${1:-rooms} && ln -sfn /work/main/.venv .venv
python3 /work/rooms/move.py ${D:-/work/wt/scratch2} | grep -v "^problem" && python3 /work/rooms/finish.py ${D:-/work/wt/scratch2}
[ -f /work/rooms/after.py ] && python3 /work/rooms/after.py ${D:-/work/wt/scratch2}
/work/main/.venv/bin/ruff check -q --fix src tests benchmarks packaging docs >/dev/null; /work/main/.venv/bin/ruff format -q .; /work/main/.venv/bin/ruff check --output-format concise . | tail -${2:-30}
