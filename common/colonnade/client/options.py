"""The options of a job; what is not given is recommended."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Hyperparameters of a job over columns; None leaves one to the plan.

    Parameters
    ----------
    method
        ``"frank-wolfe"``, ``"moments"``, ``"sealed"`` or another kind of the registry; by default
        what the other options belong to, or else the method of which more accuracy is expected.
    epsilon
        What the job may cost, together with ``delta``.
    delta
        By default ``min(1e-6, 1 / (10 rows))``.
    scope
        ``"joint"``: epsilon is for a person's rows at all parties together; ``"party"``: at each.
    loss
        ``"squared"`` or ``"logistic"``.
    label_owner
        The party that alone uses the label; by default every party does, if all have it.
    exchange
        Where one party alone holds the label: ``"sketched"`` shares noisy sketches, whose privacy
        holds against everybody; ``"sealed"`` multiplies under encryption (experimental), whose
        privacy rests on the named peers to follow the protocol, which every party's policy has to
        grant. By default sealed if all policies grant it, else sketched.
    correlation
        Expected between columns of different parties, for the plan.
    sketch_dim
        Rows of the sketching matrix.
    radius
        L1 radius, in label deviations for each of a feature: of each party with Frank-Wolfe, of
        the whole model with moments.
    directions
        Moments: directions that each party shares.
    keep_features
        Moments and sealed: features that a wide party keeps.
    buckets
        Sealed: rows are summed into so many public buckets if there are more; fewer send less.
    rounds
        Frank-Wolfe: steps.
    shares
        Frank-Wolfe: features that each party may share.
    sampling
        Frank-Wolfe: parties in a round, ``"all"``, ``"serial"`` or ``"nice"``.
    parties_per_round
        Frank-Wolfe: how many, with ``sampling="nice"``.
    features_per_round
        Frank-Wolfe: candidates in a round; 0 for all.
    evaluate
        Epsilon, of the whole, that is left for an evaluation of the model on people who are held
        out of the fit.
    keep_out
        Fraction of the people to hold out; by default a fifth if an evaluation is to come.

    Examples
    --------
    >>> options = JobOptions(epsilon=2.0, rounds=40)
    >>> options.given(["rounds", "directions"])
    ['rounds']
    """

    method: str | None = None
    epsilon: float = 1.0
    delta: float | None = None
    scope: str = "joint"
    loss: str = "squared"
    label_owner: str | None = None
    exchange: str | None = None
    correlation: float | None = None
    sketch_dim: int | None = None
    radius: float | None = None
    directions: int | None = None
    keep_features: int | None = None
    buckets: int | None = None
    rounds: int | None = None
    shares: int | None = None
    sampling: str = "all"
    parties_per_round: int | None = None
    features_per_round: int = 0
    evaluate: float | None = None
    keep_out: float | None = None

    def given(self, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` that were asked for."""
        default = JobOptions()
        return [name for name in names if getattr(self, name) != getattr(default, name)]


@dataclass(frozen=True, slots=True)
class AdmmOptions:
    """Hyperparameters of a job over clients; None leaves one to the variant.

    Parameters
    ----------
    variant
        ``"planned"``: averaged proximal steps with planned gains and radii, nothing to tune;
        ``"paper"``: consensus ADMM with a dual for each client.
    clients
        Planned: ``"alike"`` if clients have rows of like distributions; ``"different"`` if, say,
        each has rows of one class, which takes gradient steps (federated DP-SGD) instead.
    aggregate
        ``"none"``: every client's answer has its own noise; ``"host"``: a host adds up its clients'
        answers and adds one noise, which protects clients against everybody but their host;
        ``"cohort"``: only the sum over all hosts is opened, which holds if the hosts follow the
        protocol and every host's policy has to grant.
    colluding
        Cohort: how many hosts may tell the coordinator what they know; by default a third, or as
        many as leave three honest ones in every sum.
    expected_rows
        Planned: rows that clients have, roughly; a guess from public knowledge.
    epsilon
        Of each client, for all of its rows, together with ``delta``; its account enforces it.
    delta
        By default ``min(1e-6, 1 / (10 clients))``.
    loss
        ``"squared"`` or ``"logistic"``.
    rounds
        How many cohorts are drawn; a planned job has five more, for the intercept.
    sampled
        Clients in a cohort; by default a fifth of all.
    sampling
        ``"fixed"``: exactly that many; ``"poisson"``: each client with that probability.
    minimum
        Answers that a round needs; by default half of ``sampled``.
    regulariser
        ``"none"``, ``"l1"``, ``"l2"``, ``"elastic-net"`` or ``"box"``.
    strength
        Of the regulariser; by default 0.001, of a box 1.
    gamma
        The proximal step, by default 100, of the paper's variant 5; with different clients the
        length of a gradient step.
    lipschitz
        Norm that displacements are clipped to, over ``gamma``.
    step
        Paper: the relaxation (lambda) of the operator splitting; by default 0.5.
    dual_weight
        Paper: of a client's dual in what it is sent; 1 is the published algorithm, which strong
        noise throws off, and 0 the default.

    Examples
    --------
    >>> AdmmOptions(epsilon=16.0, rounds=20).regulariser
    'l2'
    """

    variant: str = "planned"
    clients: str = "alike"
    aggregate: str = "none"
    colluding: int | None = None
    expected_rows: int | None = None
    epsilon: float = 8.0
    delta: float | None = None
    loss: str = "squared"
    rounds: int = 10
    sampled: int | None = None
    sampling: str = "fixed"
    minimum: int | None = None
    regulariser: str = "l2"
    strength: float | None = None
    gamma: float | None = None
    lipschitz: float | None = None
    step: float | None = None
    dual_weight: float | None = None
