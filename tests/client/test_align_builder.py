"""How the author of an alignment finds the rule by which ids are written."""

from dataclasses import replace

import pytest

from colonnade.client.align_builder import AlignOptions, id_rule
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.methods.alignment.normalise import IdColumn, IdRule, Repeated

HOSPITAL = PartyOffer(
    party="hospital",
    attached=True,
    dataset="",
    population=0,
    features={},
    fills={},
    label=None,
    cap_units=1,
    used_units=0,
    align_ids=("number", "fold-case"),
    align_repeated="first",
)
LABORATORY = replace(HOSPITAL, party="laboratory")
AGREED = IdRule((IdColumn(number=True), IdColumn(fold_case=True)), Repeated.FIRST)


def test_ids_are_written_as_all_parties_offer() -> None:
    assert id_rule([HOSPITAL, LABORATORY], AlignOptions()) == AGREED


def test_parties_that_write_ids_differently_are_named() -> None:
    other = replace(LABORATORY, align_ids=("number", "plain"))
    with pytest.raises(BadInput, match=r"hospital.*fold-case.*laboratory"):
        id_rule([HOSPITAL, other], AlignOptions())


def test_what_the_author_asks_for_comes_first() -> None:
    asked = AlignOptions(ids=("plain",), repeated="refuse")
    other = replace(LABORATORY, align_ids=("plain",))
    assert id_rule([HOSPITAL, other], asked) == IdRule()


def test_an_unknown_rule_is_refused_by_its_parameter() -> None:
    with pytest.raises(BadArgument, match="'digit'") as refused:
        id_rule([HOSPITAL], AlignOptions(ids=("digit",)))
    assert refused.value.parameter == "ids"
