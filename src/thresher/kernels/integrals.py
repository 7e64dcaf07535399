"""The double integrals behind the prices of rings and the values of owners.

Both are ratio games: an integral over s, the trapezoid rule in log s, of integrals over the chance
p with which each other player is present. Those are Gauss rules that fit X = the sum of 1 - E over
the players: in the complex plane the integrand, a polynomial in p, stays below exp(X |p|) times a
constant.

*Rings.* A ring holds points of one weight w. For one more point of ring l beside some near points,
the rest, the price is made of

    int mu(dp) int_0^inf ds  p (1 - E_l) Q R       E = exp(-w s),  g = 1 - p + p E

with Q the product of g over the rest, and R the sum of w E / g over those of the rest that carry
the label, or over the others: see `games.ring_prices`. All terms are positive: nothing cancels.
Counts need not be whole: Q is then a product of powers. A member leaves its ring with the part of
itself that was counted, which is all of it where at least one was.

*Owners.* A game has players with a mass n > 0 and a gain b; see `games.owner_values` for what is
integrated, and why. Players of the same mass share everything but their own gain, so a game costs
as much as it has *different* masses.

*Rings of numbers.* The same game: a point is a player, its mass is the weight of its ring, and its
gain that times its target; see `games.ring_targets`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Floats, Integers

Rule = tuple[Integers, Floats, Floats]
Rules = tuple[Rule, Rule, tuple[float, float]]

STEP, FINE = 0.27, 0.23  # of the trapezoid rule: its error falls as exp(-pi^2 / step)
WIDE_STEP = 0.5  # for counts that are not whole, which are estimates
RING_LEAST = 2e-5  # over 1 + the mass is where s begins: below, only the cube of that is unknown
LEAST = 1e-8  # over the mass of all owners is where s begins: what lies below is its square
MOST = 40.0  # over the least weight or mass is where s ends
FEWEST = 28  # nodes of a rule for counts that are not whole: powers are no polynomials
SERIES = 0.2  # up to here 1 - (1 + x) exp(-x) is a series: it is 0 to rounding


@njit(cache=True, nogil=True)
def _choose(X: float, players: float, fewest: int, rules: Rules, chances: Floats) -> int:
    """Write the chances and masses of the rule for X, and return how many they are.

    `rules` are (near, far, shape). Rule r of `near` = (sizes, limits, nodes) is
    nodes[r, :, :sizes[r]], chances p and their masses times p. It is good up to X = limits[r], or
    for so few players that the integrand is a polynomial that it integrates exactly; rules of less
    than `fewest` nodes are passed over. Rule r of `far` = (sizes, starts, nodes) is good from
    starts[r] on: nodes y = p (X + excess), with `shape` = (excess, power); masses shrink with
    (X + excess)^power, and are multiplied by (1 - p)^excess.
    """
    sizes, starts, nodes = rules[1]
    excess, power = rules[2]
    for r in range(sizes.shape[0]):
        if starts[r] <= X:
            stretch = X + max(excess, 0.0)
            scale = stretch**-power
            for j in range(sizes[r]):
                p = nodes[r, 0, j] / stretch
                chances[0, j], chances[1, j] = p, nodes[r, 1, j] * scale
                if excess != 0.0:
                    chances[1, j] *= (1.0 - p) ** excess
            return int(sizes[r])
    sizes, limits, nodes = rules[0]
    r = 0
    while r + 1 < sizes.shape[0] and (
        sizes[r] < fewest or (limits[r] < X and players >= 2 * sizes[r])
    ):
        r += 1
    for j in range(sizes[r]):
        chances[0, j], chances[1, j] = nodes[r, 0, j], nodes[r, 1, j]
    return int(sizes[r])


@njit(cache=True, nogil=True)
def _room(rules: Rules) -> Floats:
    """Where `_choose` writes."""
    return np.empty((2, max(rules[0][2].shape[2], rules[1][2].shape[2])))


@njit(cache=True, nogil=True)
def _place(s: float, step: float) -> int:
    """The first place on the grid of s that is not below."""
    return int(np.ceil(np.log(s) / step))


@njit(cache=True, nogil=True)
def decays(weights: Floats, mass: float, whole: bool) -> tuple[int, Floats]:
    """The first place on the grid for this or a smaller mass, and E and 1 - E at all places."""
    step = STEP if whole else WIDE_STEP
    first, last = _place(RING_LEAST / (1.0 + mass), step), _place(MOST / weights.min(), step)
    table = np.empty((last - first, 2, weights.shape[0]))
    for n in range(first, last):
        for k in range(weights.shape[0]):
            x = -weights[k] * np.exp(n * step)
            table[n - first, 0, k], table[n - first, 1, k] = np.exp(x), -np.expm1(x)
    return first, table


@njit(cache=True, nogil=True)
def ring_integrals(
    same: Floats, other: Floats, weights: Floats, grid: tuple[int, Floats], rules: Rules,
    whole: bool, out: Floats,
) -> None:  # fmt: skip
    """Fill out[v] of each validation point v with six integrals for each ring.

    Integrals 0 and 1 are for a newcomer: over the near points that carry the label, and over the
    others. Integrals 2 to 5 are for a member, which is not part of its own rest. 2 and 3 are over
    those that carry the label, if the member does not, and if it does. 4 and 5 are over the others,
    if the member carries the label, and if it does not. They are 0 for rings without points. `grid`
    is that of `decays`, and `rules` are those of `_choose`.
    """
    rings, step = weights.shape[0], STEP if whole else WIDE_STEP
    before, table = grid
    chances, own, sums = _room(rules), np.empty((8, rings)), np.empty((6, rings))
    present = np.empty(rings, np.int64)
    for v in range(same.shape[0]):
        out[v] = 0.0
        count, near, mass, least = 0, 0.0, 1.0, 1.0
        for k in range(rings):
            here = same[v, k] + other[v, k]
            if here > 0:
                present[count] = k
                own[0, count], own[1, count], own[2, count] = same[v, k], other[v, k], weights[k]
                near, mass, least = near + here, mass + here * weights[k], min(least, weights[k])
                count += 1
        if count == 0:
            continue
        first = _place(RING_LEAST / mass, step)
        for n in range(first, _place(MOST / least, step)):
            X = 0.0
            for i in range(count):
                for c in range(2):
                    own[3 + c, i] = table[n - before, c, present[i]]
                X += (own[0, i] + own[1, i]) * own[4, i]
            players, fewest = (near, 0) if whole else (np.inf, FEWEST)
            nodes = _choose(X, players, fewest, rules, chances)
            _add_to_rings(chances, nodes, own, count, whole, sums)
            scale = step * np.exp(n * step)
            if n == first:  # what the places below it add falls as the square of s
                scale /= 1.0 - np.exp(-2.0 * step)
            for c in range(2):
                for k in range(rings):
                    out[v, c, k] += scale * table[n - before, 1, k] * sums[c, 0]
            for c in range(2, 6):
                for i in range(count):
                    out[v, c, present[i]] += scale * own[4, i] * sums[c, i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan", "nsz", "reassoc"})
def _add_to_rings(
    chances: Floats, nodes: int, own: Floats, rings: int, whole: bool, sums: Floats
) -> None:
    """The six integrals over p for each of some rings, at one s; the first two are for all.

    `own` has a row for each of: counts with the label, other counts, weights, E and 1 - E. Further
    rows are work space.
    """
    t, inverse, logs = 5, 6, 7
    largest = 0.0
    for k in range(rings):
        largest = max(largest, own[4, k])
        for c in range(6):
            sums[c, k] = 0.0
    for j in range(nodes):
        _set_logs(chances[0, j], chances[0, j] * largest, own, rings)
        carry = lack = log_Q = 0.0
        for k in range(rings):
            own[t, k] = own[2, k] * own[3, k] * own[inverse, k]
            carry += own[0, k] * own[t, k]
            lack += own[1, k] * own[t, k]
            log_Q += (own[0, k] + own[1, k]) * own[logs, k]
        Q = chances[1, j] * np.exp(log_Q)
        sums[0, 0] += Q * carry
        sums[1, 0] += Q * lack
        if whole:
            for k in range(rings):
                rest = Q * own[inverse, k]
                sums[2, k] += rest * carry
                sums[3, k] += rest * max(carry - own[t, k], 0.0)
                sums[4, k] += rest * lack
                sums[5, k] += rest * max(lack - own[t, k], 0.0)
            continue
        for k in range(rings):
            mine, theirs = min(own[0, k], 1.0), min(own[1, k], 1.0)
            left, stayed = Q * np.exp(-mine * own[logs, k]), Q * np.exp(-theirs * own[logs, k])
            sums[2, k] += stayed * carry
            sums[3, k] += left * max(carry - mine * own[t, k], 0.0)
            sums[4, k] += left * lack
            sums[5, k] += stayed * max(lack - theirs * own[t, k], 0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _set_logs(p: float, largest: float, own: Floats, rings: int) -> None:
    """Set 1 / g and log g of each ring, where x = p (1 - E) is at most `largest`.

    log g is a series in x / (2 - x) if x is at most 1/2, which can be vectorized. If all x are
    small, a few terms are enough.
    """
    if largest <= 0.0625:
        for k in range(rings):
            own[6, k], own[7, k] = _by_series(p * own[4, k], 6)
        return
    for k in range(rings):
        own[6, k], own[7, k] = _by_series(min(p * own[4, k], 0.5), 18)
    if largest > 0.5:
        for k in range(rings):
            if p * own[4, k] > 0.5:
                own[6, k] = 1.0 / ((1.0 - p) + p * own[3, k])
                own[7, k] = -np.log(own[6, k])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _by_series(x: float, terms: int) -> tuple[float, float]:
    """1 / (1 - x) and log(1 - x)."""
    both = 1.0 / ((1.0 - x) * (2.0 - x))
    z, series = x * both * (1.0 - x), 0.0
    for i in range(terms):
        series = series * (z * z) + 1.0 / (2 * (terms - i) - 1)
    return both * (2.0 - x), -2.0 * z * series


@njit(cache=True, nogil=True)
def add_owner_values(
    near: Floats, gains: Floats, weights: Floats, empty: Floats, apart_by: Floats, square: bool,
    alone: Floats, rules: Rules, out: Floats,
) -> None:  # fmt: skip
    """Add to out[o] what owner o is worth in each game.

    In game v, owner o has the mass near[v, o] and the gain gains[v, o], which includes the factor
    weights[v]. A coalition is worth its gain over its mass, or with `square` minus the square of
    that ratio plus apart_by[v]. Without mass, the ratio is empty[v]. `alone` has the chance that
    none of the other players is present, for 1, 2, ... players. `rules` are those of `_choose`.
    """
    owners = near.shape[1]
    chances = _room(rules)
    for v in range(near.shape[0]):
        if weights[v] <= 0.0:
            continue
        players = np.empty(owners, np.int64)
        count = 0
        for o in range(owners):
            if near[v, o] > 0.0:
                players[count] = o
                count += 1
        if count == 0:
            continue
        players = players[:count]
        gain, own = gains[v][players] / weights[v], near[v][players]
        center = gain.sum() / own.sum()
        apart = gain - center * own
        masses, group, times, some = _groups(own, apart)
        sums = np.zeros((6, masses.shape[0]))
        if count > 1:
            _integrate(masses, times, some, count, square, rules, chances, sums)
        for i in range(count):
            k, b = group[i], apart[i]
            r = b / own[i]
            first = r * sums[0, k] - sums[1, k]
            share = center + r
            if square:
                second = r * r * sums[2, k] + b * (b * sums[3, k] + sums[4, k]) - sums[5, k]
                none = (empty[v] - share) * (empty[v] + share + 2.0 * apart_by[v])
                value = none * alone[count - 1] - 2.0 * (apart_by[v] + center) * first - second
            else:
                value = (share - empty[v]) * alone[count - 1] + first
            out[players[i]] += weights[v] * value


@njit(cache=True, nogil=True)
def ring_target_integrals(
    counts: Integers, gains: Floats, weights: Floats, rules: Rules, out: Floats
) -> None:
    """Fill out[v] of each validation point v with fifteen integrals for each ring.

    gains[v] has two rows: for each ring, the sum of its points' gains, and that of their squares.
    """
    chances = _room(rules)
    for v in range(counts.shape[0]):
        out[v] = 0.0
        near = counts[v].sum()
        if near > 0:
            _integrate(
                weights, counts[v], gains[v], near + 1, square=True, rules=rules, chances=chances,
                out=out[v],
            )  # fmt: skip


@njit(cache=True, nogil=True)
def _groups(near: Floats, gain: Floats) -> tuple[Floats, Integers, Integers, Floats]:
    """The distinct masses, the one of each player, how many have it, sums of gains and squares."""
    order = np.argsort(near, kind="mergesort")
    group = np.empty(near.shape[0], np.int64)
    masses, times = np.empty(near.shape[0]), np.zeros(near.shape[0], np.int64)
    sums = np.zeros((2, near.shape[0]))
    count = 0
    for i in order:
        if count == 0 or masses[count - 1] != near[i]:
            masses[count] = near[i]
            count += 1
        group[i] = count - 1
        times[count - 1] += 1
        sums[0, count - 1] += gain[i]
        sums[1, count - 1] += gain[i] * gain[i]
    return masses[:count], group, times[:count], sums[:, :count]


@njit(cache=True, nogil=True)
def _integrate(
    masses: Floats, times: Integers, gains: Floats, players: int, square: bool, rules: Rules,
    chances: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add to out[:, k] the integrals of each mass: two, or with `square` six.

    If there is room for fifteen, nine more follow: four for what is left when a member leaves, and
    five for a newcomer of that mass. Masses without players then have those of a newcomer.
    """
    E, e, u = np.empty(masses.shape[0]), np.empty(masses.shape[0]), np.empty(masses.shape[0])
    sums = np.empty((9, masses.shape[0]))
    step, others = FINE if square else STEP, out.shape[0] > 6
    mass, least = (masses * times).sum(), masses[times > 0].min()
    s_log = np.log(LEAST / (mass + masses.max() if others else mass))
    end = np.log((MOST + 5.0 if square else MOST) / least)
    while s_log < end:
        s = np.exp(s_log)
        s_log += step
        X = 0.0
        for k in range(masses.shape[0]):
            x = masses[k] * s
            E[k], e[k] = np.exp(-x), -np.expm1(-x)
            u[k] = _second(x) if x < SERIES else e[k] - x * E[k]
            X += times[k] * e[k]
        nodes = _choose(X, players, 0, rules, chances)
        _add_to_owners(chances[:, :nodes], masses, times, gains, square, E, e, sums)
        scale = step * s
        for k in range(masses.shape[0]):
            out[0, k] += scale * e[k] * sums[0, k]
            out[1, k] += scale * e[k] * sums[1, k]
            if square:
                own = (s * e[k] - u[k] / masses[k]) * sums[2, k] - 2.0 * s * sums[3, k]
                out[2, k] += scale * u[k] * sums[0, k]
                out[3, k] += scale * own
                out[4, k] += scale * 2.0 * s * sums[4, k]
                out[5, k] += scale * s * e[k] * sums[5, k]
            if others:
                out[6, k] += scale * e[k] * sums[2, k]
                out[7, k] += scale * u[k] * sums[2, k]
                out[8, k] += scale * s * E[k] * sums[1, k]
                out[9, k] += scale * s * E[k] * sums[2, k]
                out[10, k] += scale * e[k] * sums[6, 0]
                out[11, k] += scale * e[k] * sums[7, 0]
                out[12, k] += scale * u[k] * sums[6, 0]
                out[13, k] += scale * 2.0 * s * E[k] * sums[7, 0]
                out[14, k] += scale * s * e[k] * sums[8, 0]


@njit(cache=True, nogil=True)
def _second(x: float) -> float:
    """Compute 1 - (1 + x) exp(-x) for a small x by its series."""
    term, total = x * x / 2.0, 0.0
    for k in range(2, 16):
        total += term * (k - 1)
        term *= -x / (k + 1)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _add_to_owners(
    chances: Floats, masses: Floats, times: Integers, gains: Floats, square: bool,
    E: Floats, e: Floats, sums: Floats,
) -> None:  # fmt: skip
    """The integrals over p for each mass, at one s, with Q over all players but one of that mass.

    The integrands are Q times N, B, t, t^2, B t and V + p B^2, with N the sum of n t, B that of b
    t, and V that of b^2 t (1 - p t). The last three are for all players: Q over all, times N, B and
    V + p B^2.
    """
    t, inverse = np.empty(E.shape[0]), np.empty(E.shape[0])
    sums[:] = 0.0
    for j in range(chances.shape[1]):
        p = chances[0, j]
        N = B = V = log_Q = 0.0
        for k in range(E.shape[0]):
            x = p * e[k]
            g = 1.0 - x if x < 0.5 else (1.0 - p) + p * E[k]
            inverse[k] = 1.0 / g
            t[k] = E[k] * inverse[k]
            N += masses[k] * times[k] * t[k]
            B += gains[0, k] * t[k]
            V += gains[1, k] * t[k] * inverse[k]
            log_Q += times[k] * (np.log1p(-x) if x < 0.5 else np.log(g))
        Q = chances[1, j] * np.exp(log_Q)
        if Q == 0.0:
            continue
        V = V * (1.0 - p) + p * B * B
        sums[6, 0] += Q * N
        sums[7, 0] += Q * B
        sums[8, 0] += Q * V
        for k in range(E.shape[0]):
            rest = Q * inverse[k]
            sums[0, k] += rest * N
            sums[1, k] += rest * B
            if square:
                sums[2, k] += rest * t[k]
                sums[3, k] += rest * t[k] * t[k]
                sums[4, k] += rest * t[k] * B
                sums[5, k] += rest * V
