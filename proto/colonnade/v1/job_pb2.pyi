from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Unit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNIT_UNSPECIFIED: _ClassVar[Unit]
    UNIT_RECORD: _ClassVar[Unit]
    UNIT_CLIENT: _ClassVar[Unit]

class Labels(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LABELS_UNSPECIFIED: _ClassVar[Labels]
    LABELS_SHARED: _ClassVar[Labels]
    LABELS_SKETCHED: _ClassVar[Labels]

class Loss(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_UNSPECIFIED: _ClassVar[Loss]
    LOSS_SQUARED: _ClassVar[Loss]
    LOSS_LOGISTIC: _ClassVar[Loss]

class Sampling(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SAMPLING_UNSPECIFIED: _ClassVar[Sampling]
    SAMPLING_ALL: _ClassVar[Sampling]
    SAMPLING_SERIAL: _ClassVar[Sampling]
    SAMPLING_NICE: _ClassVar[Sampling]
    SAMPLING_GIVEN: _ClassVar[Sampling]

class ClientSampling(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLIENT_SAMPLING_UNSPECIFIED: _ClassVar[ClientSampling]
    CLIENT_SAMPLING_FIXED: _ClassVar[ClientSampling]
    CLIENT_SAMPLING_POISSON: _ClassVar[ClientSampling]

class AdmmVariant(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADMM_VARIANT_UNSPECIFIED: _ClassVar[AdmmVariant]
    ADMM_VARIANT_PAPER: _ClassVar[AdmmVariant]
    ADMM_VARIANT_PLANNED: _ClassVar[AdmmVariant]
    ADMM_VARIANT_GRADIENT: _ClassVar[AdmmVariant]

class ClientAggregate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLIENT_AGGREGATE_UNSPECIFIED: _ClassVar[ClientAggregate]
    CLIENT_AGGREGATE_NONE: _ClassVar[ClientAggregate]
    CLIENT_AGGREGATE_HOST: _ClassVar[ClientAggregate]
    CLIENT_AGGREGATE_COHORT: _ClassVar[ClientAggregate]
UNIT_UNSPECIFIED: Unit
UNIT_RECORD: Unit
UNIT_CLIENT: Unit
LABELS_UNSPECIFIED: Labels
LABELS_SHARED: Labels
LABELS_SKETCHED: Labels
LOSS_UNSPECIFIED: Loss
LOSS_SQUARED: Loss
LOSS_LOGISTIC: Loss
SAMPLING_UNSPECIFIED: Sampling
SAMPLING_ALL: Sampling
SAMPLING_SERIAL: Sampling
SAMPLING_NICE: Sampling
SAMPLING_GIVEN: Sampling
CLIENT_SAMPLING_UNSPECIFIED: ClientSampling
CLIENT_SAMPLING_FIXED: ClientSampling
CLIENT_SAMPLING_POISSON: ClientSampling
ADMM_VARIANT_UNSPECIFIED: AdmmVariant
ADMM_VARIANT_PAPER: AdmmVariant
ADMM_VARIANT_PLANNED: AdmmVariant
ADMM_VARIANT_GRADIENT: AdmmVariant
CLIENT_AGGREGATE_UNSPECIFIED: ClientAggregate
CLIENT_AGGREGATE_NONE: ClientAggregate
CLIENT_AGGREGATE_HOST: ClientAggregate
CLIENT_AGGREGATE_COHORT: ClientAggregate

class Feature(_message.Message):
    __slots__ = ("name", "low", "high", "fill", "group")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    name: str
    low: float
    high: float
    fill: float
    group: str
    def __init__(self, name: _Optional[str] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., fill: _Optional[float] = ..., group: _Optional[str] = ...) -> None: ...

class BoolKind(_message.Message):
    __slots__ = ("yes", "no")
    YES_FIELD_NUMBER: _ClassVar[int]
    NO_FIELD_NUMBER: _ClassVar[int]
    yes: _containers.RepeatedScalarFieldContainer[str]
    no: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, yes: _Optional[_Iterable[str]] = ..., no: _Optional[_Iterable[str]] = ...) -> None: ...

class DateKind(_message.Message):
    __slots__ = ("reference", "format")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    reference: str
    format: str
    def __init__(self, reference: _Optional[str] = ..., format: _Optional[str] = ...) -> None: ...

class OrdinalKind(_message.Message):
    __slots__ = ("levels", "values", "unknown")
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    levels: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedScalarFieldContainer[float]
    unknown: bool
    def __init__(self, levels: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[float]] = ..., unknown: _Optional[bool] = ...) -> None: ...

class CategoryKind(_message.Message):
    __slots__ = ("levels", "other", "baseline", "fill", "unknown")
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    levels: _containers.RepeatedScalarFieldContainer[str]
    other: str
    baseline: str
    fill: str
    unknown: bool
    def __init__(self, levels: _Optional[_Iterable[str]] = ..., other: _Optional[str] = ..., baseline: _Optional[str] = ..., fill: _Optional[str] = ..., unknown: _Optional[bool] = ...) -> None: ...

class Encoding(_message.Message):
    __slots__ = ("name", "column", "missing", "missing_indicator", "bool_kind", "date_kind", "ordinal_kind", "category_kind")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    MISSING_INDICATOR_FIELD_NUMBER: _ClassVar[int]
    BOOL_KIND_FIELD_NUMBER: _ClassVar[int]
    DATE_KIND_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_KIND_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_KIND_FIELD_NUMBER: _ClassVar[int]
    name: str
    column: str
    missing: _containers.RepeatedScalarFieldContainer[str]
    missing_indicator: bool
    bool_kind: BoolKind
    date_kind: DateKind
    ordinal_kind: OrdinalKind
    category_kind: CategoryKind
    def __init__(self, name: _Optional[str] = ..., column: _Optional[str] = ..., missing: _Optional[_Iterable[str]] = ..., missing_indicator: _Optional[bool] = ..., bool_kind: _Optional[_Union[BoolKind, _Mapping]] = ..., date_kind: _Optional[_Union[DateKind, _Mapping]] = ..., ordinal_kind: _Optional[_Union[OrdinalKind, _Mapping]] = ..., category_kind: _Optional[_Union[CategoryKind, _Mapping]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("party", "dataset", "features", "holds_label", "clients", "encodings", "alignment")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_LABEL_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    party: str
    dataset: str
    features: _containers.RepeatedCompositeFieldContainer[Feature]
    holds_label: bool
    clients: int
    encodings: _containers.RepeatedCompositeFieldContainer[Encoding]
    alignment: str
    def __init__(self, party: _Optional[str] = ..., dataset: _Optional[str] = ..., features: _Optional[_Iterable[_Union[Feature, _Mapping]]] = ..., holds_label: _Optional[bool] = ..., clients: _Optional[int] = ..., encodings: _Optional[_Iterable[_Union[Encoding, _Mapping]]] = ..., alignment: _Optional[str] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("radius", "shares", "probability")
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    radius: float
    shares: int
    probability: float
    def __init__(self, radius: _Optional[float] = ..., shares: _Optional[int] = ..., probability: _Optional[float] = ...) -> None: ...

class FrankWolfe(_message.Message):
    __slots__ = ("rounds", "sketch_dim", "sketch_entries", "dense_sketch", "select_units", "share_units", "label_units", "mean_units", "labels", "loss", "sampling", "parties_per_round", "features_per_round", "prior", "clip", "blocks", "share_clip", "local_rounds")
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    SKETCH_DIM_FIELD_NUMBER: _ClassVar[int]
    SKETCH_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DENSE_SKETCH_FIELD_NUMBER: _ClassVar[int]
    SELECT_UNITS_FIELD_NUMBER: _ClassVar[int]
    SHARE_UNITS_FIELD_NUMBER: _ClassVar[int]
    LABEL_UNITS_FIELD_NUMBER: _ClassVar[int]
    MEAN_UNITS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    PARTIES_PER_ROUND_FIELD_NUMBER: _ClassVar[int]
    FEATURES_PER_ROUND_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    SHARE_CLIP_FIELD_NUMBER: _ClassVar[int]
    LOCAL_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    rounds: int
    sketch_dim: int
    sketch_entries: int
    dense_sketch: bool
    select_units: int
    share_units: int
    label_units: int
    mean_units: int
    labels: Labels
    loss: Loss
    sampling: Sampling
    parties_per_round: int
    features_per_round: int
    prior: float
    clip: float
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    share_clip: float
    local_rounds: int
    def __init__(self, rounds: _Optional[int] = ..., sketch_dim: _Optional[int] = ..., sketch_entries: _Optional[int] = ..., dense_sketch: _Optional[bool] = ..., select_units: _Optional[int] = ..., share_units: _Optional[int] = ..., label_units: _Optional[int] = ..., mean_units: _Optional[int] = ..., labels: _Optional[_Union[Labels, str]] = ..., loss: _Optional[_Union[Loss, str]] = ..., sampling: _Optional[_Union[Sampling, str]] = ..., parties_per_round: _Optional[int] = ..., features_per_round: _Optional[int] = ..., prior: _Optional[float] = ..., clip: _Optional[float] = ..., blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ..., share_clip: _Optional[float] = ..., local_rounds: _Optional[int] = ...) -> None: ...

class Moments(_message.Message):
    __slots__ = ("mean_units", "gram_units", "share_units", "cross_units", "label_units", "marginal_units", "screen_units", "directions", "probes", "sketch_dim", "keep", "labels", "loss", "radius", "penalty", "label_weight", "reach", "share_clip", "probe_clip", "cross_clip", "presence", "overlap")
    MEAN_UNITS_FIELD_NUMBER: _ClassVar[int]
    GRAM_UNITS_FIELD_NUMBER: _ClassVar[int]
    SHARE_UNITS_FIELD_NUMBER: _ClassVar[int]
    CROSS_UNITS_FIELD_NUMBER: _ClassVar[int]
    LABEL_UNITS_FIELD_NUMBER: _ClassVar[int]
    MARGINAL_UNITS_FIELD_NUMBER: _ClassVar[int]
    SCREEN_UNITS_FIELD_NUMBER: _ClassVar[int]
    DIRECTIONS_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    SKETCH_DIM_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    PENALTY_FIELD_NUMBER: _ClassVar[int]
    LABEL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    REACH_FIELD_NUMBER: _ClassVar[int]
    SHARE_CLIP_FIELD_NUMBER: _ClassVar[int]
    PROBE_CLIP_FIELD_NUMBER: _ClassVar[int]
    CROSS_CLIP_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    mean_units: int
    gram_units: int
    share_units: int
    cross_units: int
    label_units: int
    marginal_units: int
    screen_units: int
    directions: int
    probes: int
    sketch_dim: int
    keep: int
    labels: Labels
    loss: Loss
    radius: float
    penalty: float
    label_weight: float
    reach: float
    share_clip: float
    probe_clip: float
    cross_clip: float
    presence: bool
    overlap: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, mean_units: _Optional[int] = ..., gram_units: _Optional[int] = ..., share_units: _Optional[int] = ..., cross_units: _Optional[int] = ..., label_units: _Optional[int] = ..., marginal_units: _Optional[int] = ..., screen_units: _Optional[int] = ..., directions: _Optional[int] = ..., probes: _Optional[int] = ..., sketch_dim: _Optional[int] = ..., keep: _Optional[int] = ..., labels: _Optional[_Union[Labels, str]] = ..., loss: _Optional[_Union[Loss, str]] = ..., radius: _Optional[float] = ..., penalty: _Optional[float] = ..., label_weight: _Optional[float] = ..., reach: _Optional[float] = ..., share_clip: _Optional[float] = ..., probe_clip: _Optional[float] = ..., cross_clip: _Optional[float] = ..., presence: _Optional[bool] = ..., overlap: _Optional[_Iterable[int]] = ...) -> None: ...

class SealedPrices(_message.Message):
    __slots__ = ("gram", "cross", "wide", "label")
    GRAM_FIELD_NUMBER: _ClassVar[int]
    CROSS_FIELD_NUMBER: _ClassVar[int]
    WIDE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    gram: int
    cross: int
    wide: int
    label: int
    def __init__(self, gram: _Optional[int] = ..., cross: _Optional[int] = ..., wide: _Optional[int] = ..., label: _Optional[int] = ...) -> None: ...

class Sealed(_message.Message):
    __slots__ = ("mean_units", "prices", "buckets", "keep", "groups", "label_lanes", "loss", "label_weight", "reach", "wide_reach", "label_reach", "bucket_reach", "radius", "penalty", "presence", "overlap", "shields")
    MEAN_UNITS_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    LABEL_LANES_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    LABEL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    REACH_FIELD_NUMBER: _ClassVar[int]
    WIDE_REACH_FIELD_NUMBER: _ClassVar[int]
    LABEL_REACH_FIELD_NUMBER: _ClassVar[int]
    BUCKET_REACH_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    SHIELDS_FIELD_NUMBER: _ClassVar[int]
    mean_units: int
    prices: _containers.RepeatedCompositeFieldContainer[SealedPrices]
    buckets: int
    keep: int
    groups: int
    label_lanes: int
    loss: Loss
    label_weight: float
    reach: float
    wide_reach: float
    label_reach: float
    bucket_reach: float
    radius: float
    penalty: float
    presence: bool
    overlap: _containers.RepeatedScalarFieldContainer[int]
    shields: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, mean_units: _Optional[int] = ..., prices: _Optional[_Iterable[_Union[SealedPrices, _Mapping]]] = ..., buckets: _Optional[int] = ..., keep: _Optional[int] = ..., groups: _Optional[int] = ..., label_lanes: _Optional[int] = ..., loss: _Optional[_Union[Loss, str]] = ..., label_weight: _Optional[float] = ..., reach: _Optional[float] = ..., wide_reach: _Optional[float] = ..., label_reach: _Optional[float] = ..., bucket_reach: _Optional[float] = ..., radius: _Optional[float] = ..., penalty: _Optional[float] = ..., presence: _Optional[bool] = ..., overlap: _Optional[_Iterable[int]] = ..., shields: _Optional[_Iterable[int]] = ...) -> None: ...

class Admm(_message.Message):
    __slots__ = ("rounds", "sampled", "sampling", "minimum", "round_timeout_s", "participations", "release_units", "gamma", "lipschitz", "step", "dual_weight", "loss", "l1", "l2", "box", "intercept", "radius_bits", "coarse", "variant", "radii", "intercept_rounds", "intercept_units", "client_rows", "aggregate", "maskers", "colluding", "keys")
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    ROUND_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    PARTICIPATIONS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_UNITS_FIELD_NUMBER: _ClassVar[int]
    GAMMA_FIELD_NUMBER: _ClassVar[int]
    LIPSCHITZ_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    DUAL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    L1_FIELD_NUMBER: _ClassVar[int]
    L2_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    INTERCEPT_FIELD_NUMBER: _ClassVar[int]
    RADIUS_BITS_FIELD_NUMBER: _ClassVar[int]
    COARSE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    RADII_FIELD_NUMBER: _ClassVar[int]
    INTERCEPT_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    INTERCEPT_UNITS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ROWS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATE_FIELD_NUMBER: _ClassVar[int]
    MASKERS_FIELD_NUMBER: _ClassVar[int]
    COLLUDING_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    rounds: int
    sampled: int
    sampling: ClientSampling
    minimum: int
    round_timeout_s: int
    participations: int
    release_units: int
    gamma: float
    lipschitz: float
    step: float
    dual_weight: float
    loss: Loss
    l1: float
    l2: float
    box: float
    intercept: bool
    radius_bits: int
    coarse: bool
    variant: AdmmVariant
    radii: _containers.RepeatedScalarFieldContainer[int]
    intercept_rounds: int
    intercept_units: int
    client_rows: int
    aggregate: ClientAggregate
    maskers: int
    colluding: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, rounds: _Optional[int] = ..., sampled: _Optional[int] = ..., sampling: _Optional[_Union[ClientSampling, str]] = ..., minimum: _Optional[int] = ..., round_timeout_s: _Optional[int] = ..., participations: _Optional[int] = ..., release_units: _Optional[int] = ..., gamma: _Optional[float] = ..., lipschitz: _Optional[float] = ..., step: _Optional[float] = ..., dual_weight: _Optional[float] = ..., loss: _Optional[_Union[Loss, str]] = ..., l1: _Optional[float] = ..., l2: _Optional[float] = ..., box: _Optional[float] = ..., intercept: _Optional[bool] = ..., radius_bits: _Optional[int] = ..., coarse: _Optional[bool] = ..., variant: _Optional[_Union[AdmmVariant, str]] = ..., radii: _Optional[_Iterable[int]] = ..., intercept_rounds: _Optional[int] = ..., intercept_units: _Optional[int] = ..., client_rows: _Optional[int] = ..., aggregate: _Optional[_Union[ClientAggregate, str]] = ..., maskers: _Optional[int] = ..., colluding: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

class MethodSpec(_message.Message):
    __slots__ = ("kind", "body")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    kind: str
    body: bytes
    def __init__(self, kind: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...

class JobSpec(_message.Message):
    __slots__ = ("version", "salt", "name", "population", "delta", "party_timeout_s", "members", "label", "method", "purpose", "requested_by", "holdout", "evaluation_units")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    PARTY_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    HOLDOUT_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_UNITS_FIELD_NUMBER: _ClassVar[int]
    version: int
    salt: bytes
    name: str
    population: int
    delta: float
    party_timeout_s: int
    members: _containers.RepeatedCompositeFieldContainer[Member]
    label: Feature
    method: MethodSpec
    purpose: str
    requested_by: str
    holdout: int
    evaluation_units: int
    def __init__(self, version: _Optional[int] = ..., salt: _Optional[bytes] = ..., name: _Optional[str] = ..., population: _Optional[int] = ..., delta: _Optional[float] = ..., party_timeout_s: _Optional[int] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., label: _Optional[_Union[Feature, _Mapping]] = ..., method: _Optional[_Union[MethodSpec, _Mapping]] = ..., purpose: _Optional[str] = ..., requested_by: _Optional[str] = ..., holdout: _Optional[int] = ..., evaluation_units: _Optional[int] = ...) -> None: ...

class FrankWolfeState(_message.Message):
    __slots__ = ("round", "parts", "label")
    class Part(_message.Message):
        __slots__ = ("coef", "shared", "shares", "means")
        COEF_FIELD_NUMBER: _ClassVar[int]
        SHARED_FIELD_NUMBER: _ClassVar[int]
        SHARES_FIELD_NUMBER: _ClassVar[int]
        MEANS_FIELD_NUMBER: _ClassVar[int]
        coef: _containers.RepeatedScalarFieldContainer[int]
        shared: _containers.RepeatedScalarFieldContainer[int]
        shares: _containers.RepeatedScalarFieldContainer[bytes]
        means: bytes
        def __init__(self, coef: _Optional[_Iterable[int]] = ..., shared: _Optional[_Iterable[int]] = ..., shares: _Optional[_Iterable[bytes]] = ..., means: _Optional[bytes] = ...) -> None: ...
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    round: int
    parts: _containers.RepeatedCompositeFieldContainer[FrankWolfeState.Part]
    label: bytes
    def __init__(self, round: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[FrankWolfeState.Part, _Mapping]]] = ..., label: _Optional[bytes] = ...) -> None: ...

class FrankWolfeOpening(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FrankWolfeStep(_message.Message):
    __slots__ = ("coef", "q", "weight", "clip", "offset", "candidates")
    COEF_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    coef: _containers.RepeatedScalarFieldContainer[int]
    q: _containers.RepeatedScalarFieldContainer[int]
    weight: int
    clip: int
    offset: int
    candidates: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, coef: _Optional[_Iterable[int]] = ..., q: _Optional[_Iterable[int]] = ..., weight: _Optional[int] = ..., clip: _Optional[int] = ..., offset: _Optional[int] = ..., candidates: _Optional[_Iterable[int]] = ...) -> None: ...

class Projection(_message.Message):
    __slots__ = ("coef", "offset")
    COEF_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    coef: _containers.RepeatedScalarFieldContainer[int]
    offset: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, coef: _Optional[_Iterable[int]] = ..., offset: _Optional[_Iterable[int]] = ...) -> None: ...

class MomentsRound(_message.Message):
    __slots__ = ("projection", "sketches", "screen")
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    SKETCHES_FIELD_NUMBER: _ClassVar[int]
    SCREEN_FIELD_NUMBER: _ClassVar[int]
    projection: Projection
    sketches: _containers.RepeatedScalarFieldContainer[int]
    screen: FrankWolfeStep
    def __init__(self, projection: _Optional[_Union[Projection, _Mapping]] = ..., sketches: _Optional[_Iterable[int]] = ..., screen: _Optional[_Union[FrankWolfeStep, _Mapping]] = ...) -> None: ...

class MomentsState(_message.Message):
    __slots__ = ("round", "parts", "intercept")
    class Held(_message.Message):
        __slots__ = ("kind", "body")
        KIND_FIELD_NUMBER: _ClassVar[int]
        BODY_FIELD_NUMBER: _ClassVar[int]
        kind: str
        body: bytes
        def __init__(self, kind: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...
    class Part(_message.Message):
        __slots__ = ("releases", "choices", "basis", "coef")
        RELEASES_FIELD_NUMBER: _ClassVar[int]
        CHOICES_FIELD_NUMBER: _ClassVar[int]
        BASIS_FIELD_NUMBER: _ClassVar[int]
        COEF_FIELD_NUMBER: _ClassVar[int]
        releases: _containers.RepeatedCompositeFieldContainer[MomentsState.Held]
        choices: _containers.RepeatedScalarFieldContainer[bytes]
        basis: _containers.RepeatedScalarFieldContainer[int]
        coef: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, releases: _Optional[_Iterable[_Union[MomentsState.Held, _Mapping]]] = ..., choices: _Optional[_Iterable[bytes]] = ..., basis: _Optional[_Iterable[int]] = ..., coef: _Optional[_Iterable[int]] = ...) -> None: ...
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    INTERCEPT_FIELD_NUMBER: _ClassVar[int]
    round: int
    parts: _containers.RepeatedCompositeFieldContainer[MomentsState.Part]
    intercept: int
    def __init__(self, round: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[MomentsState.Part, _Mapping]]] = ..., intercept: _Optional[int] = ...) -> None: ...

class SealedGrant(_message.Message):
    __slots__ = ("peers", "columns", "shield_units")
    class Peer(_message.Message):
        __slots__ = ("party", "ledger_key")
        PARTY_FIELD_NUMBER: _ClassVar[int]
        LEDGER_KEY_FIELD_NUMBER: _ClassVar[int]
        party: str
        ledger_key: bytes
        def __init__(self, party: _Optional[str] = ..., ledger_key: _Optional[bytes] = ...) -> None: ...
    PEERS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SHIELD_UNITS_FIELD_NUMBER: _ClassVar[int]
    peers: _containers.RepeatedCompositeFieldContainer[SealedGrant.Peer]
    columns: int
    shield_units: int
    def __init__(self, peers: _Optional[_Iterable[_Union[SealedGrant.Peer, _Mapping]]] = ..., columns: _Optional[int] = ..., shield_units: _Optional[int] = ...) -> None: ...

class RelayedBody(_message.Message):
    __slots__ = ("party", "kind", "body")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    party: str
    kind: str
    body: bytes
    def __init__(self, party: _Optional[str] = ..., kind: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...

class SealedRound(_message.Message):
    __slots__ = ("projection", "label", "relayed")
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    RELAYED_FIELD_NUMBER: _ClassVar[int]
    projection: Projection
    label: Projection
    relayed: _containers.RepeatedCompositeFieldContainer[RelayedBody]
    def __init__(self, projection: _Optional[_Union[Projection, _Mapping]] = ..., label: _Optional[_Union[Projection, _Mapping]] = ..., relayed: _Optional[_Iterable[_Union[RelayedBody, _Mapping]]] = ...) -> None: ...

class SealedState(_message.Message):
    __slots__ = ("round", "parts", "intercept")
    class Held(_message.Message):
        __slots__ = ("kind", "body")
        KIND_FIELD_NUMBER: _ClassVar[int]
        BODY_FIELD_NUMBER: _ClassVar[int]
        kind: str
        body: bytes
        def __init__(self, kind: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...
    class Part(_message.Message):
        __slots__ = ("releases", "kept", "coef")
        RELEASES_FIELD_NUMBER: _ClassVar[int]
        KEPT_FIELD_NUMBER: _ClassVar[int]
        COEF_FIELD_NUMBER: _ClassVar[int]
        releases: _containers.RepeatedCompositeFieldContainer[SealedState.Held]
        kept: _containers.RepeatedScalarFieldContainer[int]
        coef: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, releases: _Optional[_Iterable[_Union[SealedState.Held, _Mapping]]] = ..., kept: _Optional[_Iterable[int]] = ..., coef: _Optional[_Iterable[int]] = ...) -> None: ...
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    INTERCEPT_FIELD_NUMBER: _ClassVar[int]
    round: int
    parts: _containers.RepeatedCompositeFieldContainer[SealedState.Part]
    intercept: int
    def __init__(self, round: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[SealedState.Part, _Mapping]]] = ..., intercept: _Optional[int] = ...) -> None: ...

class AdmmStep(_message.Message):
    __slots__ = ("clients", "rounds", "points", "step")
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    clients: _containers.RepeatedScalarFieldContainer[int]
    rounds: _containers.RepeatedScalarFieldContainer[int]
    points: bytes
    step: int
    def __init__(self, clients: _Optional[_Iterable[int]] = ..., rounds: _Optional[_Iterable[int]] = ..., points: _Optional[bytes] = ..., step: _Optional[int] = ...) -> None: ...

class CohortStep(_message.Message):
    __slots__ = ("round", "announced", "sealed", "asked", "masked", "confirmed")
    class Entry(_message.Message):
        __slots__ = ("place", "body")
        PLACE_FIELD_NUMBER: _ClassVar[int]
        BODY_FIELD_NUMBER: _ClassVar[int]
        place: int
        body: bytes
        def __init__(self, place: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    MASKED_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    round: int
    announced: _containers.RepeatedCompositeFieldContainer[CohortStep.Entry]
    sealed: _containers.RepeatedCompositeFieldContainer[CohortStep.Entry]
    asked: AdmmStep
    masked: _containers.RepeatedScalarFieldContainer[int]
    confirmed: _containers.RepeatedCompositeFieldContainer[CohortStep.Entry]
    def __init__(self, round: _Optional[int] = ..., announced: _Optional[_Iterable[_Union[CohortStep.Entry, _Mapping]]] = ..., sealed: _Optional[_Iterable[_Union[CohortStep.Entry, _Mapping]]] = ..., asked: _Optional[_Union[AdmmStep, _Mapping]] = ..., masked: _Optional[_Iterable[int]] = ..., confirmed: _Optional[_Iterable[_Union[CohortStep.Entry, _Mapping]]] = ...) -> None: ...

class CohortChange(_message.Message):
    __slots__ = ("answers", "z")
    class Answer(_message.Message):
        __slots__ = ("place", "body", "clients", "declined")
        PLACE_FIELD_NUMBER: _ClassVar[int]
        BODY_FIELD_NUMBER: _ClassVar[int]
        CLIENTS_FIELD_NUMBER: _ClassVar[int]
        DECLINED_FIELD_NUMBER: _ClassVar[int]
        place: int
        body: bytes
        clients: _containers.RepeatedScalarFieldContainer[int]
        declined: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, place: _Optional[int] = ..., body: _Optional[bytes] = ..., clients: _Optional[_Iterable[int]] = ..., declined: _Optional[_Iterable[int]] = ...) -> None: ...
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    Z_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[CohortChange.Answer]
    z: bytes
    def __init__(self, answers: _Optional[_Iterable[_Union[CohortChange.Answer, _Mapping]]] = ..., z: _Optional[bytes] = ...) -> None: ...

class TaskBody(_message.Message):
    __slots__ = ("frank_wolfe_opening", "frank_wolfe_step", "moments_round", "admm_step", "sealed_round", "cohort_step")
    FRANK_WOLFE_OPENING_FIELD_NUMBER: _ClassVar[int]
    FRANK_WOLFE_STEP_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_ROUND_FIELD_NUMBER: _ClassVar[int]
    ADMM_STEP_FIELD_NUMBER: _ClassVar[int]
    SEALED_ROUND_FIELD_NUMBER: _ClassVar[int]
    COHORT_STEP_FIELD_NUMBER: _ClassVar[int]
    frank_wolfe_opening: FrankWolfeOpening
    frank_wolfe_step: FrankWolfeStep
    moments_round: MomentsRound
    admm_step: AdmmStep
    sealed_round: SealedRound
    cohort_step: CohortStep
    def __init__(self, frank_wolfe_opening: _Optional[_Union[FrankWolfeOpening, _Mapping]] = ..., frank_wolfe_step: _Optional[_Union[FrankWolfeStep, _Mapping]] = ..., moments_round: _Optional[_Union[MomentsRound, _Mapping]] = ..., admm_step: _Optional[_Union[AdmmStep, _Mapping]] = ..., sealed_round: _Optional[_Union[SealedRound, _Mapping]] = ..., cohort_step: _Optional[_Union[CohortStep, _Mapping]] = ...) -> None: ...
