"""The numbers that make one BERT differ from another, under the names `config.json` uses on the hub.

Letters used for shapes everywhere in this package:

    B  sequences in a batch            H  attention heads, num_attention_heads
    S  tokens a sequence (padded)      d  width of one head, D / H
    N  real tokens in the batch        L  layers, num_hidden_layers
    D  hidden_size                     F  intermediate_size (4 D)
    V  vocab_size                      M  masked positions in the batch
"""

from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

# The same in every released model; a constant and no entry, so that nobody has to wonder what it is set to.
LAYER_NORM_EPS = 1e-12

# Depth L and width D. base and large: section 3 of Devlin et al. 2019. The four small ones: Turc et al. 2019,
# "Well-Read Students Learn Better". In all six a head is 64 wide and the feed-forward layer 4 D.
PRESETS = {
    **{"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512)},
    **{"base": (12, 768), "large": (24, 1024)},
}

# hub name of the activation -> the argument of F.gelu. Google's released code computes the tanh form,
# Hugging Face's BERT the exact one; checkpoints say which they want.
GELU_KIND = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}


@cache
def names_in_files(family: str, kind: str) -> list[tuple[str, str]]:
    """BERT's name and the family's, where data/names.txt says that they differ; `kind` is its first column."""
    text = files(__package__).joinpath("data", "names.txt").read_text(encoding="utf-8")
    head, *rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    column = head.index(family)
    return [(row[1], row[column]) for row in rows if row[0] == kind and row[column] not in ("-", row[1])]


@dataclass(frozen=True)
class BertConfig:
    """Sizes and dropout rates; the defaults are bert-base-uncased (Devlin et al. 2019, section 3 and A.2).

    `labels` names the classes of a classification head; one single label means regression.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    # Not entries: what is the same in every BERT, and another in the families of `variants.py`.
    model_type: ClassVar[str] = "bert"
    layer_norm_eps: ClassVar[float] = LAYER_NORM_EPS
    pad_token_id: ClassVar[int] = 0
    first_position: ClassVar[int] = 0
    required: ClassVar[dict[str, Any]] = {"layer_norm_eps": LAYER_NORM_EPS}
    more_tensors: ClassVar[tuple[tuple[str, ...], ...]] = ()  # rows for `checkpoint.TABLE`

    def encoder_class(self):
        """The class that is built by these numbers: `Bert`, or what `variants.py` makes of it."""
        from .model import Bert

        return Bert

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings."""
        return self.hidden_size

    @property
    def num_stored_layers(self) -> int:
        """Layers with weights of their own."""
        return self.num_hidden_layers

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))  # a list would make the config unhashable
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and not (isinstance(value, int) and value > 0):
                raise ValueError(f"{field.name} is {value!r}; it has to be a whole number above 0")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not (isinstance(p := getattr(self, name), (int, float)) and 0.0 <= p <= 1.0):
                raise ValueError(f"{name} is {p!r}; it has to lie between 0 and 1")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} does not split into {self.num_attention_heads} equal heads"
            )
        if self.hidden_act not in GELU_KIND:
            raise ValueError(f"hidden_act is {self.hidden_act!r}; this model knows {', '.join(GELU_KIND)}")
        if not self.labels:
            raise ValueError("labels is empty; a classifier needs one name a class (one name: regression)")

    @classmethod
    def preset(cls, name: str, **changes) -> "BertConfig":
        """`BertConfig.preset("tiny", vocab_size=8000)`: one of PRESETS, with `changes` on top."""
        if name not in PRESETS:
            raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
        layers, width = PRESETS[name]
        sizes = dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64)
        return cls(**{**sizes, "intermediate_size": 4 * width, **changes})

    @classmethod
    def from_hf(cls, entries: dict) -> "BertConfig":
        """Read the entries of a hub `config.json`.

        Entries that only steer other software (cache sizes, versions …) are passed over. Raises ValueError
        where an entry says that the checkpoint computes something this model does not.
        """
        required = {
            "model_type": cls.model_type,
            "position_embedding_type": "absolute",
            "is_decoder": False,
            "add_cross_attention": False,
            **cls.required,
        }
        for name, value in required.items():
            if entries.get(name, value) != value:
                raise ValueError(
                    f"config.json has {name} = {entries[name]!r}, but this model knows only {value!r}; "
                    "such a checkpoint needs the library that it was made with"
                )
        known = {field.name for field in fields(cls)} - {"labels"}
        theirs = dict(names_in_files(cls.model_type, "entry"))
        sizes = {name: entries[theirs.get(name, name)] for name in known if theirs.get(name, name) in entries}
        if "id2label" in entries:
            names = {int(number): label for number, label in entries["id2label"].items()}
            sizes["labels"] = tuple(names[number] for number in sorted(names))
        elif "num_labels" in entries:
            sizes["labels"] = tuple(f"LABEL_{number}" for number in range(entries["num_labels"]))
        return cls(**sizes)

    def to_hf(self) -> dict:
        """The entries of a `config.json` that `transformers` reads as the same model."""
        entries = asdict(self)
        labels = entries.pop("labels")
        theirs = dict(names_in_files(self.model_type, "entry"))
        return {
            "model_type": self.model_type,
            **{theirs.get(name, name): value for name, value in entries.items()},
            **self.required,
            "pad_token_id": self.pad_token_id,
            "id2label": {str(number): label for number, label in enumerate(labels)},
            "label2id": {label: number for number, label in enumerate(labels)},
        }
