"""What a federated release costs each party, and what one lying silo does to prices.

.venv/bin/python benchmarks/federate.py [--silos 5 10 25 50 100] [--entries 100000]

CPU seconds and bytes of bodies. "A silo" is everything from keys to seeds with its share of the
noise, without counting its points. The coordinator's time is without and with silos that drop out
after the shares, as many as may: then masks have to be made again. In the last table all silos are
processes that talk HTTP over loopback.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import threading
import time
from pathlib import Path

import numpy as np
from provenance import store

import thresher as th
from thresher.federate import primitives
from thresher.federate.coordinator_round import CoordinatorRound
from thresher.federate.http_client import Link, play
from thresher.federate.http_server import RoundServer
from thresher.federate.round_release import Holding, outcome
from thresher.federate.round_terms import Terms, least_survivors
from thresher.federate.silo_round import SiloRound
from thresher.privacy.noise import Seeded
from thresher.privacy.tabled_noise import TabledSystem

HERE = Path(__file__).parent
SIGMA = 4000.0  # of a share: 50,000 validation points, epsilon 1, delta 1e-6, and B = 5,000
COLLUDING = 0.1  # of the silos
OWN = b"c" * 32


def secret(number):
    return number.to_bytes(32, "big")


def make_terms(silos, entries):
    colluding = max(1, int(COLLUDING * silos))
    return Terms(
        b"t" * 32, primitives.public_signing_key(OWN), tuple(map(str, range(silos))),
        tuple(primitives.public_signing_key(secret(i)) for i in range(silos)),
        least_survivors(silos, colluding), colluding, entries,
    )  # fmt: skip


def contribution(entries):
    return TabledSystem().gaussian(SIGMA, entries)


class Clock:
    """CPU seconds of calls."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self, function, *args):
        start = time.process_time()
        found = function(*args)
        self.seconds += time.process_time() - start
        return found


def in_memory(silos, entries, dropouts):
    """Seconds of the coordinator and of a silo, bytes sent and received by a silo."""
    terms = make_terms(silos, entries)
    ours, theirs, sent, got = Clock(), Clock(), [0] * silos, [0] * silos
    coordinator = ours(CoordinatorRound, terms, OWN)
    parties = [
        theirs(SiloRound, terms, secret(i), coordinator.opening, lambda _: contribution(entries))
        for i in range(silos)
    ]
    for i, party in enumerate(parties):
        sent[i] += len(party.first)
        ours(coordinator.receive, party.first)
    alive = range(silos)
    for stage in range(1, 6):
        messages = {i: ours(coordinator.outgoing, stage, i) for i in alive}
        alive = range(dropouts, silos) if stage >= 2 else alive
        for i in alive:
            got[i] += len(messages[i])
            answer = theirs(parties[i].receive, messages[i])
            sent[i] += len(answer)
            if answer:
                ours(coordinator.receive, answer)
        if stage == 2 and dropouts:
            ours(coordinator.close)
    assert coordinator.result is not None
    survivors = len(alive)
    return {
        "silos": silos, "entries": entries, "dropouts": dropouts, "coordinator": ours.seconds,
        "silo": theirs.seconds / survivors, "sent": max(sent), "received": max(got),
        "fewest": terms.fewest,
    }  # fmt: skip


def run_silo(url, number, silos, entries, queue):
    terms, link = make_terms(silos, entries), Link(url, 60.0)
    start = time.process_time()

    def begin(opening):
        return SiloRound(terms, secret(number), opening, lambda _: contribution(entries))

    for _ in play(link, begin, number, terms.longest, 600.0):
        pass
    queue.put((time.process_time() - start, link.sent, link.received))


def between_processes(silos, entries):
    """The same with processes over HTTP."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "thresher.federate.http_client"])
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    coordinator = CoordinatorRound(make_terms(silos, entries), OWN)
    server = RoundServer(coordinator, b"{}", host="127.0.0.1", port=0, wait=600.0, first_wait=600.0)
    queue = context.Queue()
    children = [
        context.Process(target=run_silo, args=(server.url, i, silos, entries, queue))
        for i in range(silos)
    ]
    threading.Thread(target=server.run, daemon=True).start()
    for child in children:
        child.start()
    parts = [queue.get(timeout=900) for _ in children]
    for child in children:
        child.join()
    server.close()
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds, sent, received = zip(*parts)
    return {
        "silos": silos, "entries": entries, "wall": time.perf_counter() - start,
        "coordinator": used, "silo": float(np.mean(seconds)), "slowest": max(seconds),
        "sent": max(sent), "received": max(received),
    }  # fmt: skip


def lies():
    """How far one lying silo of five moves the prices, and whether the check shows it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2200, 4))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    X_val, y_val, X, y = X[:200], y[:200], X[200:], y[200:]
    keys = {f"silo {i}": th.federate.Key(secret(i + 1)).public for i in range(5)}
    task = th.federate.Task.create(
        X_val, y_val, silos=keys, key=th.federate.Key(OWN), epsilon=1, delta=1e-6, fewest=4
    )
    parts = [
        Holding.of(task, X[part], y[part]).table(task)
        for part in np.array_split(np.arange(2000), 5)
    ]
    noise = Seeded(0)
    honest = [
        part + noise.gaussian(task.share_sigma, part.size).reshape(part.shape) for part in parts
    ]
    mine = honest[0]

    def price(tables):
        found = outcome(task, sum(tables).ravel(), range(5), bytes(32), Holding.none(task))
        return found, found.price_list

    _, truth = price(honest)
    stories = {
        "counts its points ten times": 10 * parts[0] + mine - parts[0],
        "claims 50 more neighbors everywhere": mine + 50 * task.design.scale,
        "claims 1,000 more neighbors everywhere": mine + 1000 * task.design.scale,
        "swaps same and other": parts[0][::-1] + mine - parts[0],
        "sends nothing but noise": mine - parts[0],
        "leaves out its noise": parts[0],
    }
    rows = []
    for story, told in stories.items():
        found, prices = price([told, *honest[1:]])
        moved = np.linalg.norm(prices.gain - truth.gain) / np.linalg.norm(truth.gain)
        checked = th.federate.check_plausibility(found, 2000)
        rows.append({
            "lie": story, "gain": float(moved), "mass": checked.per_point / checked.expected,
            "impossible": checked.impossible, "plausible": checked.is_plausible,
        })  # fmt: skip
    return rows


def render(result):
    """A Markdown page."""
    lines = [
        "# What a federated release costs",
        "",
        "Several parties (*silos*) count at home, and a coordinator adds up their noisy tables. Times "
        "are CPU seconds. What a silo sends and receives is given in multiples of 8 bytes for each "
        f"entry of the table ({8 * result['entries'] / 1e6:.2f} MB in all). With dropouts, some silos "
        "leave before the end.",
        "",
        "| silos | a silo, s | coordinator, s | with dropouts, s | sent, of 8 x entries "
        "| received, of 8 x entries |",
        "|---|---|---|---|---|---|",
    ]
    unit = 8 * result["entries"]
    for plain, dropped in result["memory"]:
        lines.append(
            f"| {plain['silos']} | {plain['silo']:.2f} | {plain['coordinator']:.2f} "
            f"| {dropped['coordinator']:.2f} ({dropped['dropouts']} of {dropped['silos']}) "
            f"| {plain['sent'] / unit:.3f} | {plain['received'] / unit:.3f} |"
        )
    each = result["processes"]
    lines += [
        "",
        f"With {each['silos']} processes over HTTP, a silo took {each['silo']:.2f} s (the slowest "
        f"{each['slowest']:.2f} s), the coordinator took {each['coordinator']:.2f} s, and the whole "
        f"round {each['wall']:.1f} s on the clock. A silo sent {each['sent'] / unit:.3f} times 8 "
        "bytes for each entry.",
        "",
        "In the last table, one silo of five lies. The columns say by how much this moves the gains "
        "that validation points pay, how much a point adds to the table as a multiple of what is "
        "expected, how many counts are impossible, and whether the release looks plausible "
        "(`check_plausibility`).",
        "",
        "| one silo of five | gains move by | mass, of the expected | impossible counts "
        "| plausible |",
        "|---|---|---|---|---|",
    ]
    for row in result["lies"]:
        lines.append(
            f"| {row['lie']} | {100 * row['gain']:.0f} % | {row['mass']:.2f} "
            f"| {row['impossible']} of 200 | {'yes' if row['plausible'] else 'no'} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--silos", type=int, nargs="+", default=[5, 10, 25, 50, 100])
    parser.add_argument("--entries", type=int, default=100_000)
    options = parser.parse_args()
    contribution(options.entries)  # the table of the law is made once
    memory = []
    for silos in options.silos:
        most = silos - make_terms(silos, 1).fewest
        memory.append([in_memory(silos, options.entries, each) for each in (0, most)])
        print(memory[-1])
    result = {
        "entries": options.entries,
        "memory": memory,
        "processes": between_processes(50, options.entries),
        "lies": lies(),
    }
    store("federate", result, render(result))
    print(render(result))


if __name__ == "__main__":
    main()
