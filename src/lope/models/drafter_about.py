"""What a drafter folder says of itself: `drafter.json`, and the tensors that must stand beside it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lope.core.errors import ModelError
from lope.models.lean.config import DecoderConfig

FORMAT = 1
KINDS = ("standalone", "eagle")
STORAGES = ("float32", "bfloat16", "int8")
_SIZES = ("hidden_size", "intermediate_size", "num_layers", "num_heads", "num_kv_heads", "head_dim", "context")
_NUMBERS = ("norm_eps", "rope_theta")
_SHORTEST = 4
# no drafter is so deep: a number that was damaged must not be counted up to
_DEEPEST = 1024


@dataclass(frozen=True)
class DrafterTarget:
    """The model that a drafter was trained for. tokenizer: the fingerprint of its tokenizer."""

    name: str
    tokenizer: str
    vocab_size: int
    hidden_size: int
    num_layers: int


@dataclass(frozen=True, eq=False)
class DrafterAbout:
    """Everything in `drafter.json`.

    kind:    `standalone`, a small decoder that reads the target's embedding through a projection; `eagle`, one layer
             that reads hidden states of the target (EAGLE-3; Li et al. 2025, arXiv:2503.01840).
    decoder: its sizes; vocab_size is K, the number of tokens that its head keeps.
    layers:  for `eagle` the hidden states of the target that it reads, ascending (transformers' numbering); else ().
    storage: how its weights lie on disk: `float32`, `bfloat16` or `int8`.
    recipe, figures: how it was made, and what was measured of it. operating_point: the shape and depth it is best at.
    """

    kind: str
    target: DrafterTarget
    decoder: DecoderConfig
    layers: tuple[int, ...] = ()
    storage: str = "float32"
    recipe: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    operating_point: Mapping[str, Any] | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any], kept: int, where: str) -> "DrafterAbout":
        """Read `document()`. kept: K. Raises ModelError, each fault in a line of its own that begins with `where`."""
        read = _Fields(where, document)
        if document.get("format") != FORMAT:
            raise ModelError(f"{where}: has format {document.get('format')!r}, this version of lope reads {FORMAT}")
        kind = read.one_of("kind", KINDS)
        aimed, sizes = read.object("target"), read.object("decoder")
        target = DrafterTarget(
            aimed.text("name"),
            aimed.text("tokenizer"),
            *(aimed.size(name) for name in ("vocab_size", "hidden_size", "num_layers")),
        )
        decoder = drafter_decoder(
            kind,
            kept,
            **{name: sizes.size(name) for name in _SIZES},
            **{name: sizes.number(name) for name in _NUMBERS},
        )
        about = cls(
            kind=kind,
            target=target,
            decoder=decoder,
            layers=read.layers(),
            storage=read.one_of("storage", STORAGES),
            recipe=read.object("recipe").raw,
            figures=read.object("figures").raw,
            operating_point=None if document.get("operating_point") is None else read.object("operating_point").raw,
        )
        about.check(where)
        return about

    def document(self) -> dict[str, Any]:
        """For `drafter.json`."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "target": asdict(self.target),
            "decoder": {name: getattr(self.decoder, name) for name in (*_SIZES, *_NUMBERS)},
            "layers": list(self.layers),
            "storage": self.storage,
            "recipe": dict(self.recipe),
            "figures": dict(self.figures),
            "operating_point": None if self.operating_point is None else dict(self.operating_point),
        }

    def check(self, where: str) -> None:
        """Raise ModelError where the sizes contradict each other."""
        decoder, target = self.decoder, self.target
        if decoder.num_heads % decoder.num_kv_heads or decoder.head_dim % 2:
            raise ModelError(
                f"{where}: {decoder.num_heads} heads do not share {decoder.num_kv_heads} of {decoder.head_dim} "
                "numbers evenly"
            )
        if decoder.num_layers > _DEEPEST:
            raise ModelError(f"{where}: num_layers must be at most {_DEEPEST}, not {decoder.num_layers}")
        if decoder.context < _SHORTEST:
            raise ModelError(f"{where}: context must be at least {_SHORTEST}, not {decoder.context}")
        if not 1 <= decoder.vocab_size <= target.vocab_size:
            raise ModelError(f"{where}: the head keeps {decoder.vocab_size} of the target's {target.vocab_size} tokens")
        if self.kind == "standalone":
            if self.layers:
                raise ModelError(f"{where}: a standalone drafter reads no layers of the target, not {self.layers}")
            return
        if decoder.num_layers != 1 or decoder.hidden_size != target.hidden_size:
            raise ModelError(
                f"{where}: an eagle drafter has one layer of the target's hidden size {target.hidden_size}, "
                f"not {decoder.num_layers} of {decoder.hidden_size}"
            )
        rising = all(low < high for low, high in zip(self.layers, self.layers[1:], strict=False))
        if not self.layers or not rising or not 0 <= self.layers[0] <= self.layers[-1] <= target.num_layers:
            raise ModelError(
                f"{where}: layers must rise between 0 and the target's {target.num_layers}, not {list(self.layers)}"
            )


def drafter_decoder(kind: str, kept: int, **sizes: Any) -> DecoderConfig:
    """The decoder of a drafter: architecture `lope-standalone` or `lope-eagle`, a head of its own over `kept` tokens.

    sizes: `hidden_size`, `intermediate_size`, `num_layers`, `num_heads`, `num_kv_heads`, `head_dim`, `norm_eps`,
    `rope_theta`, `context`.
    """
    return DecoderConfig(architecture=f"lope-{kind}", vocab_size=kept, tied=False, **sizes)


def shapes(about: DrafterAbout) -> dict[str, tuple[int, ...]]:
    """The tensors of a drafter folder, by name: `kept` [K] first, then weights [out, in] and norms [d]."""
    decoder, dt = about.decoder, about.target.hidden_size
    d, wide, kept = decoder.hidden_size, decoder.intermediate_size, decoder.vocab_size
    queries, keys = decoder.num_heads * decoder.head_dim, decoder.num_kv_heads * decoder.head_dim
    eagle = about.kind == "eagle"
    read = 2 * d if eagle else d
    found: dict[str, tuple[int, ...]] = {"kept": (kept,)}
    found |= {"fc.weight": (d, len(about.layers) * dt)} if eagle else {"embed_projection.weight": (d, dt)}
    for layer in range(decoder.num_layers):
        at = f"layers.{layer}."
        found[at + "input_layernorm.weight"] = (d,)
        if eagle:
            found[at + "hidden_norm.weight"] = (d,)
        found |= {
            at + "self_attn.q_proj.weight": (queries, read),
            at + "self_attn.k_proj.weight": (keys, read),
            at + "self_attn.v_proj.weight": (keys, read),
            at + "self_attn.o_proj.weight": (d, queries),
            at + "post_attention_layernorm.weight": (d,),
            at + "mlp.gate_proj.weight": (wide, d),
            at + "mlp.up_proj.weight": (wide, d),
            at + "mlp.down_proj.weight": (d, wide),
        }
    return found | {"norm.weight": (d,), "lm_head.weight": (kept, d)}


@dataclass(frozen=True)
class _Fields:
    """One JSON object, read field by field."""

    where: str
    raw: Mapping[str, Any]

    def object(self, name: str) -> "_Fields":
        value = self.raw.get(name)
        if not isinstance(value, dict):
            raise ModelError(f"{self.where}: {name} must be an object, not {value!r}")
        return _Fields(self.where, value)

    def text(self, name: str) -> str:
        value = self.raw.get(name)
        if not isinstance(value, str):
            raise ModelError(f"{self.where}: {name} must be a text, not {value!r}")
        return value

    def one_of(self, name: str, known: tuple[str, ...]) -> str:
        value = self.raw.get(name)
        if value not in known:
            raise ModelError(f"{self.where}: {name} must be {' or '.join(known)}, not {value!r}")
        return str(value)

    def size(self, name: str) -> int:
        value = self.raw.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{self.where}: {name} must be a positive whole number, not {value!r}")
        return value

    def number(self, name: str) -> float:
        value = self.raw.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ModelError(f"{self.where}: {name} must be a positive number, not {value!r}")
        return float(value)

    def layers(self) -> tuple[int, ...]:
        value = self.raw.get("layers")
        if not isinstance(value, list) or not all(type(layer) is int for layer in value):
            raise ModelError(f"{self.where}: layers must be a list of whole numbers, not {value!r}")
        return tuple(value)
