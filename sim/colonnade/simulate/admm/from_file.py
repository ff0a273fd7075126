"""Clients from one file: by a column that says whose each row is, or dealt out."""

from collections.abc import Sequence

import numpy as np

from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.fixedpoint import GRID, quantise
from colonnade.methods.admm.prox import ClientRows
from colonnade.simulate.admm.run import MAX_HOSTS, Dealt
from colonnade.simulate.data.from_file import FileTable
from colonnade.simulate.inprocess.admm import deal
from colonnade.simulate.sites import Site, SiteColumn


def people_from(
    table: FileTable,
    *,
    clients: int,
    hosts: int = 1,
    skewed: bool = False,
    held_out: int = 0,
    seed: int = 0,
) -> Dealt:
    """Assign the rows of a table to clients, and clients to hosts.

    Parameters
    ----------
    clients
        How many the rows are dealt out to, where the table does not say whose they are.
    skewed
        Deal rows of like labels to each of them.
    held_out
        Rows, chosen at random, that no client gets.
    """
    order = np.random.default_rng(seed).permutation(table.n_rows)
    apart, fitted = np.sort(order[:held_out]), np.sort(order[held_out:])
    parts = _parts(table, fitted, clients=clients, skewed=skewed, seed=seed)
    if not 1 <= hosts <= min(len(parts), MAX_HOSTS):
        raise BadArgument("hosts", f"must lie between 1 and {MAX_HOSTS}, and not above the clients")
    shares = np.array_split(np.arange(len(parts)), hosts)
    sites = tuple(
        _site(f"host-{number + 1}", table, [parts[place] for place in share])
        for number, share in enumerate(shares)
    )
    encoded = [made for column in table.features for made in column.filled()]
    columns = np.stack([_on_grid(column) for column in encoded])
    label = _on_grid(table.label)

    def rows(part: IntArray) -> ClientRows:
        return ClientRows(np.ascontiguousarray(columns[:, part]), label[part])

    return Dealt(sites, tuple(map(rows, parts)), rows(apart) if held_out else None)


def _parts(
    table: FileTable, fitted: IntArray, *, clients: int, skewed: bool, seed: int
) -> list[IntArray]:
    """Return the rows of each client."""
    if table.clients is None:
        if not 1 <= clients <= fitted.size:
            raise BadArgument("clients", f"must lie between 1 and the {fitted.size} rows to fit")
        dealt = deal(table.label.values[fitted], clients, seed=seed, skewed=skewed)
        return [fitted[rows] for rows in dealt]
    order = np.argsort(table.clients[fitted], kind="stable")
    _, firsts = np.unique(table.clients[fitted][order], return_index=True)
    return np.split(fitted[order], firsts[1:])


def _site(name: str, table: FileTable, parts: Sequence[IntArray]) -> Site:
    rows = np.concatenate(parts)
    owners = np.repeat(np.arange(len(parts)), [part.size for part in parts])

    return Site(name, [each.rows(rows) for each in table.features], table.label.rows(rows), owners)


def _on_grid(column: SiteColumn) -> Int16Array:
    """Return a column as parties ingest it: clipped, on the grid."""
    return quantise(column.values, column.bounds, grid=GRID)
