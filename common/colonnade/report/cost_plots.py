"""Plots of what a job cost: privacy and bytes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from colonnade.privacy.accounting import RHO_UNIT
from colonnade.report.axes import (
    byte_unit,
    kind_colour,
    legend,
    legend_height,
    name_rows,
    ordered,
    set_rounds,
    stairs,
)
from colonnade.report.cost_sections import promised
from colonnade.report.markup import Markup, clean, short
from colonnade.report.schema import PartySpend, Privacy, Uplink, UplinkRow
from colonnade.report.svg import INK, LINE, MUTED, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_spend(privacy: Privacy, colours: Mapping[str, str]) -> Markup | None:
    """Draw, for each party, what it spent in front of the job's maximum and its cap."""
    parties = privacy["parties"]
    if not parties:
        return None

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        widest = max(promised(party)["max"]["epsilon"] for party in parties) or 1.0
        caps = [party["cap"]["epsilon"] for party in parties if party["cap"]]
        # A cap far above the job's maximum would make all else a dot: its bar leaves the plot.
        limit = max(1.1 * widest, min(max(caps, default=0.0) * 1.05, 4.0 * widest))
        for place, party in enumerate(parties):
            total, cap = promised(party), party["cap"]
            spent, most = total["spent"]["epsilon"], total["max"]["epsilon"]
            if cap:
                axes.barh(place, min(cap["epsilon"], 2 * limit), 0.72, color=LINE)
            axes.barh(place, spent, 0.4, color=colours[party["party"]])
            axes.plot([most, most], [place - 0.36, place + 0.36], color=INK, linewidth=1.8)
            axes.annotate(
                _spend_text(party),
                (1.02, place),
                xycoords=axes.get_yaxis_transform(),
                va="center",
                color=INK,
                annotation_clip=False,
            )
        name_rows(axes, [party["party"] for party in parties])
        axes.annotate(
            "spent / at most / cap",
            (1.02, -0.75),
            xycoords=axes.get_yaxis_transform(),
            va="bottom",
            color=MUTED,
            annotation_clip=False,
        )
        axes.set_xlim(0, limit)
        axes.set_xlabel(f"epsilon at delta = {short(privacy['delta'])}")

    return draw(
        paint,
        key="spend",
        label="Epsilon spent by each party, against the job's maximum and the party's cap",
        height=0.75 + 0.3 * max(2, len(parties)),
    )


def _spend_text(party: PartySpend) -> str:
    cap, total = party["cap"], promised(party)
    amounts = [total["spent"], total["max"], *([cap] if cap else [])]
    return " / ".join(short(amount["epsilon"], 3) for amount in amounts) + ("" if cap else " / –")


def draw_rounds(privacy: Privacy, colours: Mapping[str, str]) -> Markup | None:
    """Draw the sum spent up to each round, stacked by party."""
    charged = {row["round"]: row["spent"] for row in privacy["by_round"]}
    if not charged:
        return None
    rounds = range(min(charged), max(charged) + 1)

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        base = [0.0] * len(rounds)
        for party in (row["party"] for row in privacy["parties"]):
            total, top = 0.0, []
            for place, round_ in enumerate(rounds):
                total += charged.get(round_, {}).get(party, 0) / RHO_UNIT
                top.append(base[place] + total)
            stairs(axes, rounds, (base, top), colour=colours[party], name=party)
            base = top
        most = privacy["joint"]["max"]["rho"]
        axes.axhline(most, color=INK, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.annotate(
            f"the job's joint maximum, rho {short(most, 3)}",
            (0.01, most),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 3),
            textcoords="offset points",
            color=INK,
        )
        axes.set_ylim(0, 1.15 * max(most, *base) or 1.0)
        axes.set_ylabel("rho spent, all rounds so far")
        set_rounds(axes, rounds)
        legend(figure, axes)

    label = "Privacy spent up to each round, stacked by party, under the job's joint maximum"
    return draw(
        paint, key="rounds", label=label, height=2.7 + legend_height(len(privacy["parties"]))
    )


def draw_uplink(uplink: Uplink) -> Markup | None:
    """Draw each party's payload by kind, and retries behind it."""
    rows = uplink["rows"]
    if not rows:
        return None
    parties, kinds = ordered(row["party"] for row in rows), _payload_kinds(rows)

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        totals = {
            party: sum(r["payload_bytes"] + r["retry_bytes"] for r in rows if r["party"] == party)
            for party in parties
        }
        unit, unit_name = byte_unit(max(totals.values()))
        starts = dict.fromkeys(parties, 0.0)
        for kind in [*kinds, None]:
            bytes_ = [
                sum(
                    row["retry_bytes"] if kind is None else row["payload_bytes"]
                    for row in rows
                    if row["party"] == party and kind in (None, row["kind"])
                )
                / unit
                for party in parties
            ]
            if kind is None and not any(bytes_):
                continue
            look = (
                {"facecolor": "none", "edgecolor": MUTED, "hatch": "/////", "linewidth": 0.6}
                if kind is None
                else {"color": kind_colour(kind, kinds)}
            )
            axes.barh(
                range(len(parties)),
                bytes_,
                0.62,
                left=[starts[party] for party in parties],
                label="sent again" if kind is None else clean(kind),
                **look,
            )
            for party, extent in zip(parties, bytes_, strict=True):
                starts[party] += extent
        _mark_predicted(axes, uplink, parties, unit)
        name_rows(axes, parties)
        axes.set_xlabel(f"payload ({unit_name})")
        legend(figure, axes)

    label = "Bytes sent by each party, stacked by kind of release"
    return draw(paint, key="uplink", label=label, height=1.1 + 0.3 * max(2, len(parties)))


def _payload_kinds(rows: Sequence[UplinkRow]) -> list[str]:
    """Return the kinds that have a payload: messages without one would be a colour of nothing."""
    return ordered(row["kind"] for row in rows if row["payload_bytes"] or row["predicted_bytes"])


def _mark_predicted(axes: "Axes", uplink: Uplink, parties: Sequence[str], unit: float) -> None:
    for place, party in enumerate(parties):
        sizes = [row["predicted_bytes"] for row in uplink["rows"] if row["party"] == party]
        ends = [sum(sizes) / unit] * 2
        label = "predicted" if place == 0 else None
        axes.plot(ends, [place - 0.4, place + 0.4], color=INK, linewidth=1.6, label=label)


def draw_traffic(uplink: Uplink) -> Markup | None:
    """Draw the payload of each round by kind, and what was predicted for it."""
    rows = uplink["rows"]
    if not rows:
        return None
    kinds = _payload_kinds(rows)
    rounds = range(min(row["round"] for row in rows), max(row["round"] for row in rows) + 1)

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        predicted, heights = dict.fromkeys(rounds, 0.0), dict.fromkeys(rounds, 0.0)
        by_kind = {kind: dict.fromkeys(rounds, 0.0) for kind in kinds}
        for row in (row for row in rows if row["kind"] in by_kind):
            by_kind[row["kind"]][row["round"]] += row["payload_bytes"]
            heights[row["round"]] += row["payload_bytes"]
            predicted[row["round"]] += row["predicted_bytes"]
        unit, unit_name = byte_unit(max((*heights.values(), *predicted.values())))
        base = [0.0] * len(rounds)
        for kind in kinds:
            sizes = by_kind[kind].values()
            top = [low + extent / unit for low, extent in zip(base, sizes, strict=True)]
            stairs(axes, rounds, (base, top), colour=kind_colour(kind, kinds), name=kind)
            base = top
        edges = [rounds[0] - 0.5, *(round_ + 0.5 for round_ in rounds)]
        outline = [extent / unit for extent in predicted.values()]
        axes.stairs(outline, edges, color=INK, linewidth=1.0, label="predicted")
        axes.set_ylim(0, 1.08 * max(*base, *outline) or 1.0)
        axes.set_ylabel(f"payload in a round ({unit_name})")
        set_rounds(axes, rounds)
        legend(figure, axes)

    label = "Bytes sent in each round, stacked by kind, and the bytes predicted"
    return draw(paint, key="traffic", label=label, height=2.6)
