"""The separation written down as plainly as possible: one pair, one node, one row at a time."""

from __future__ import annotations

from collections import deque
from itertools import product

import numpy as np

from goldseam.separation.tree import AttributeTree


def deviations(x, s, is_category):
    """Squared deviations of two scaled rows, cell by cell; NaN where a cell is missing in either."""
    gaps = (x - s) * (x - s)
    return np.where(is_category & ~np.isnan(gaps), np.minimum(gaps, x.dtype.type(1)), gaps)


def ranked_distance(e, alpha, dtype):
    """(S-2): the h smallest added up one after another, from the smallest."""
    h = max(1, int(np.floor(alpha * len(e) + 1e-9)))
    total = dtype(0)
    for value in np.sort(e)[:h]:
        total = dtype(total + value)
    return total


def euclid(tree: AttributeTree, node: int, e, dtype):
    """Squared Euclid at a node, added in the order of the kernel: left to right in leaves, then over children."""
    parts = [euclid(tree, child, e, dtype) for child in tree.children(node)] or [
        e[j] for j in range(tree.start[node], tree.stop[node])
    ]
    total = dtype(parts[0])
    for part in parts[1:]:
        total = dtype(total + part)
    return total


def seen_euclid(tree: AttributeTree, node: int, e, dtype):
    """Sum over observed cells and their number, in the order of the kernel."""
    if not tree.n_children[node]:
        total, count = dtype(0), 0
        for j in range(tree.start[node], tree.stop[node]):
            if not np.isnan(e[j]):
                total, count = dtype(total + e[j]), count + 1
        return total, count
    parts = [seen_euclid(tree, child, e, dtype) for child in tree.children(node)]
    total, count = parts[0]
    for more, number in parts[1:]:
        total, count = dtype(total + more), count + number
    return total, count


def distance(tree, node, e, alpha, dtype):
    """Distance at a node; NaN where nothing was observed in both rows."""
    part = e[tree.start[node] : tree.stop[node]]
    if np.isnan(part).any():
        total, count = seen_euclid(tree, node, e, dtype)
        return dtype(total * dtype(dtype(len(part)) / dtype(count))) if count else dtype(np.nan)
    return euclid(tree, node, e, dtype) if alpha >= 1 else ranked_distance(part, alpha, dtype)


def radii(rows, reference, tree, alpha, k, is_category, own=None):
    """K-th smallest distance of every row at every node; `own[i]` is the row's place in the reference, or -1."""
    dtype = rows.dtype.type
    out = np.empty((len(rows), tree.n_nodes), dtype=rows.dtype)
    for i, x in enumerate(rows):
        for node in range(tree.n_nodes):
            found = []
            for r, s in enumerate(reference):
                if own is not None and own[i] == r:
                    continue
                e = deviations(x[tree.order], s[tree.order], is_category[tree.order])
                found.append(distance(tree, node, e, alpha, dtype))
            out[i, node] = np.sort(found)[k - 1]
    return out


def queue_search(tree: AttributeTree, labels, rule):
    """The search as printed: a queue, one row. Returns the declared nodes."""
    declared, queue = [], deque([0])
    while queue:
        n = queue.popleft()
        children = list(tree.children(n))
        if not children:
            if labels[n] and (rule == "paper" or labels[tree.parent[n]]):
                declared.append(n)
            continue
        below = [labels[c] for c in children]
        if labels[n] and all(below) and n != 0:
            declared.append(n)
        elif labels[n] and not any(below) and rule == "paper":
            if n == 0:
                return []
        else:
            queue.extend(children)
    return declared


def mask_of(tree, nodes):
    mask = np.zeros(tree.n_columns, dtype=bool)
    for n in nodes:
        mask[tree.columns(n)] = True
    return mask


def paper_p(radius, members):
    return np.mean([radius <= r for r in members])


def counted_p(radius, members):
    return (1 + sum(radius <= r * (1 + 1e-6) + 1e-12 for r in members)) / (len(members) + 1)


def draw_labels(tree: AttributeTree, tau, gamma, n, rng):
    """Label trees of the model behind the recursion."""
    labels = np.zeros((n, tree.n_nodes), dtype=bool)
    labels[:, 0] = rng.random(n) < tau
    for node in range(1, tree.n_nodes):
        parent = tree.parent[node]
        g = gamma if np.isscalar(gamma) else gamma[tree.depth[parent]]
        copied = rng.random(n) < g
        labels[:, node] = np.where(copied, labels[:, parent], rng.random(n) < tau)
    return labels


def nearest(x, reference, ignored, k, is_category, tree, own=-1):
    """Nearest rows over observed cells that are not ignored, ties by index; float32 sums of groups of four."""
    order = tree.order
    cells = np.where(ignored, np.float32(np.nan), x)[order]
    keys = []
    for r, s in enumerate(reference):
        if r == own:
            continue
        e = deviations(cells, s[order], is_category[order]).astype(np.float64)
        if np.isnan(e).all():
            continue
        keys.append((float(np.nansum(e)), r))
    return [r for _, r in sorted(keys)[:k]]


def box_posterior(evidence, temper):
    """(S-26), (S-27) by listing every box of a grid."""
    runs = [[slice(a, b) for a in range(side) for b in range(a + 1, side + 1)] for side in evidence.shape]
    weight, masses = np.zeros(evidence.shape), []
    for box in product(*runs):
        masses.append(np.exp(temper * evidence[box].sum()))
        weight[box] += masses[-1]
    return weight / (1.0 + sum(masses)), np.log(np.mean(masses))
