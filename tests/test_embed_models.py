"""Texts and images embedded by a model, and by the command."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import waits

import thresher as th
from thresher import embed
from thresher.cli.embed import embed as command
from thresher.errors import in_options, message_of
from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings
from thresher.tables import text as text_module

# A model that needs no torch: letters counted; it says on stderr how many texts it is given.
STUB = """
import sys
import numpy as np

class SentenceTransformer:
    def __init__(self, model):
        if model == "absent":
            raise OSError("We couldn't connect.\\nCheck your internet connection.")
        self.model = model

    def encode(self, texts, show_progress_bar):
        assert type(texts) is list and all(type(text) is str for text in texts)
        sys.stderr.write(f"{self.model} reads {len(texts)}\\n")
        letters = "abcdefghijklmnopqrstuvwxyz\\n"
        return np.array([[text.count(letter) for letter in letters] for text in texts], np.float64)
"""


@pytest.fixture
def stub(monkeypatch):
    """sentence-transformers, as far as this package uses it."""
    module = SimpleNamespace()
    exec(STUB, module.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return module


# Texts


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "texts is empty"),
        ("a text", "texts must be a list of strings, got str"),
        (None, "texts must be a list of strings, got NoneType"),
        (["a", "b", None, 3], "got None in row 2"),
        (["a", b"b" * 99], "got b'b{38} in row 1"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(texts, words):
    with pytest.raises(th.InputError, match=words):
        embed.embed_texts(texts)


def test_texts_without_the_package_say_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    want = "embedding text needs sentence-transformers: pip install sentence-transformers"
    with pytest.raises(th.ExtraError) as refused:
        embed.embed_texts(["a"])
    assert str(refused.value) == want


def test_a_model_gets_strings_and_gives_float32(stub):
    rows = embed.embed_texts(np.array(["abba", "cab"]), model="counts")
    assert rows.dtype == np.float32
    assert rows[:, :3].tolist() == [[2, 2, 0], [1, 1, 1]]


def test_a_model_that_cannot_be_had_is_named_with_the_way_out(stub):
    with pytest.raises(th.InputError) as refused:
        embed.embed_texts(["a"], model="absent")
    assert str(refused.value) == (
        "model 'absent' cannot be loaded (OSError: We couldn't connect): name a folder that holds "
        "one, or a model to download, such as all-MiniLM-L6-v2"
    )
    with pytest.raises(th.InputError, match="model must be a non-empty string"):
        embed.embed_texts(["a"], model="")


@pytest.fixture
def tiny_model(tmp_path):
    """A folder that holds a real model with random weights, and what it holds."""
    reason = "pip install sentence-transformers to embed with a real model"
    pytest.importorskip("sentence_transformers", reason=reason)
    import tokenizers
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "a", "good", "bad", "day"]
    plain = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")  # noqa: S106
    )
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]", model_max_length=16  # noqa: S106
    )  # fmt: skip
    torch.manual_seed(0)
    bert = BertModel(BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2,
                                num_attention_heads=2, intermediate_size=32)).eval()  # fmt: skip
    bert.save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    return str(tmp_path / "bert"), bert, tokenizer  # without a pooling of its own: the mean


@pytest.mark.filterwarnings("ignore")  # of transformers and torch
def test_a_real_model_of_a_folder_gives_the_mean_of_its_tokens(tiny_model):
    import torch

    folder, bert, tokenizer = tiny_model
    texts = ["a good day", "bad", "a bad day day", "good day"] * 20
    rows = embed.embed_texts(texts, model=folder)
    assert (rows.shape, rows.dtype) == ((80, 16), np.float32)
    for text, row in zip(texts[:4], rows):
        with torch.no_grad():
            tokens = bert(torch.tensor([tokenizer.encode(text)])).last_hidden_state[0]
        np.testing.assert_allclose(row, tokens.mean(dim=0).numpy(), atol=1e-5)
    np.testing.assert_allclose(rows[76:], rows[:4], atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_folder_without_a_model_is_refused(tiny_model, tmp_path):
    (tmp_path / "hollow").mkdir()
    with pytest.raises(th.InputError, match="model '.*hollow' cannot be loaded"):
        embed.embed_texts(["a"], model=str(tmp_path / "hollow"))


# Images


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 8, 8)), "images must be uint8 .* got float64"),
        (np.zeros((2, 8), np.uint8), r"got uint8 of shape \(2, 8\)"),
        (np.zeros((2, 3, 8, 8), np.uint8), r"or \(n, height, width, 3\), .* \(2, 3, 8, 8\)"),
        (np.zeros((0, 8, 8), np.uint8), "n >= 1"),
    ],
)
def test_what_is_no_array_of_images_is_refused(images, words):
    with pytest.raises(th.InputError, match=words):
        embed.embed_images(images)


@pytest.mark.parametrize("absent", ["torch", "torchvision.models"])
def test_images_without_the_package_say_how_to_install_it(monkeypatch, absent):
    if absent != "torch":
        pytest.importorskip("torch", reason="pip install torch to go without torchvision only")
    monkeypatch.setitem(sys.modules, absent, None)
    want = "embedding images needs torchvision: pip install torchvision"
    with pytest.raises(th.ExtraError, match=f"^{want}$"):
        embed.embed_images(np.zeros((2, 8, 8), np.uint8))


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    """A ResNet50 with random weights, and the file that holds them."""
    reason = "pip install torchvision to embed images"
    torchvision = pytest.importorskip("torchvision", reason=reason)
    import torch

    torch.manual_seed(0)
    network = torchvision.models.resnet50(weights=None, num_classes=7)
    for name, state in network.named_buffers():  # a normalization that training would change
        if name.endswith("running_mean"):
            state.normal_(std=0.1)
    path = tmp_path_factory.mktemp("resnet") / "r.pth"
    torch.save(network.state_dict(), path)
    return network.eval(), str(path)


@pytest.mark.filterwarnings("ignore")
def test_an_image_becomes_the_output_of_the_global_pool(resnet, rng, monkeypatch):
    import torch
    from torchvision.transforms import v2

    network, path = resnet
    monkeypatch.setattr(embed, "BATCH", 2)
    images = rng.integers(0, 256, (3, 40, 500, 3), dtype=np.uint8)
    rows = embed.embed_images(images, model=path)
    assert (rows.shape, rows.dtype) == ((3, 2048), np.float32)
    prepare = v2.Compose([
        v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Resize((224, 224), antialias=True),
        v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ])  # fmt: skip
    pooled = []
    network.avgpool.register_forward_hook(lambda module, given, out: pooled.append(out))
    with torch.no_grad():
        network(torch.stack([prepare(image) for image in images]))
    want = pooled[0].flatten(1).numpy()
    np.testing.assert_allclose(rows, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
    assert np.abs(rows[0] - rows[1]).max() > 1e-3 * np.abs(want).max()


@pytest.mark.filterwarnings("ignore")
def test_a_gray_image_is_one_of_three_equal_colors(resnet, rng):
    gray = rng.integers(0, 256, (2, 20, 20), dtype=np.uint8)
    rows = embed.embed_images(gray, model=resnet[1])
    colored = embed.embed_images(np.stack([gray] * 3, axis=3), model=resnet[1])
    np.testing.assert_array_equal(rows, colored)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("content", [b"hello", None, {"conv1.weight": [1.0]}])
def test_a_file_that_holds_no_resnet_is_refused(resnet, tmp_path, content):
    import torch

    path = tmp_path / "w.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        torch.save({name: torch.tensor(entry) for name, entry in content.items()}, path)
    with pytest.raises(th.InputError, match="w.pth' cannot be loaded .*state dict of a ResNet50"):
        embed.embed_images(np.zeros((1, 8, 8), np.uint8), model=str(path))


# The command


def run(*arguments, cwd):
    (cwd / "stub").mkdir(exist_ok=True)
    (cwd / "stub" / "sentence_transformers.py").write_text(STUB)
    source = str(Path(th.__file__).parent.parent)
    paths = os.pathsep.join([str(cwd / "stub"), source])
    code = "from thresher.cli.embed import embed; import typer; typer.run(embed)"
    return waits.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": paths, "TYPER_STANDARD_TRACEBACK": "1"},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = [
        f"{'abc'[i % 3] * (1 + i % 5)}{'xyz'[i % 2] * (i % 7)},{'red' if i % 4 else 'blue'}"
        for i in range(40)
    ]
    (tmp_path / "texts.csv").write_text(
        "\n".join(["text,label", '"a, ""q""\nb",red', *rows]) + "\n"
    )
    (tmp_path / "val.csv").write_text("text,label\nabc,blue\nxx,red\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_the_command_embeds_both_tables_and_says_what_it_did(folder):
    done = run("texts.csv", "--validation", "val.csv", "--model", "m", "--out", "o.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "m reads 2\nm reads 41\nwrote o.npz: 41 points and 2 validation rows of width 27\n"
    )
    record = json.loads(done.stdout)
    found = stored(folder / "o.npz")
    assert found["X"][0].tolist() == [1, 1, *[0] * 14, 1, *[0] * 9, 1]  # a, b, q, a line break
    assert found["X_val"][0, :3].tolist() == [1, 1, 1]
    assert found["classes"][found["y_val"]].tolist() == ["blue", "red"]
    assert found["classes"][found["y"][:6]].tolist() == ["red", "blue", "red", "red", "red", "blue"]
    assert record["classes"] == ["blue", "red"]
    assert (record["points"], record["validation"], record["width"]) == (41, 2, 27)
    about = json.loads(str(found["about"]))
    assert (about["model"], about["components"], about["kind"]) == ("m", None, "texts")
    assert about["versions"]["thresher"] == th.__version__
    assert about.items() <= record.items()


def test_components_of_the_command_are_those_of_the_points(folder, stub, capsys):
    command(Path("texts.csv"), Path("all.npz"), validation=Path("val.csv"))
    command(Path("texts.csv"), Path("two.npz"), validation=Path("val.csv"), components=2)
    whole, two = stored("all.npz"), stored("two.npz")
    X, X_val = embed.leading_components(whole["X"], whole["X_val"], 2)
    np.testing.assert_array_equal(two["X"], X)
    np.testing.assert_array_equal(two["X_val"], X_val)
    assert json.loads(str(two["about"]))["components"] == 2
    assert "all-MiniLM-L6-v2 reads 41" in capsys.readouterr().err


@pytest.mark.parametrize("components", [None, 2])
def test_no_text_is_held_out_unless_that_is_asked_for(folder, stub, capsys, components):
    command(Path("texts.csv"), Path("o.npz"), components=components)
    found, record = stored("o.npz"), json.loads(capsys.readouterr().out)
    assert {"X", "y", "about", "classes"} == set(found)
    assert len(found["X"]) == len(found["y"]) == record["points"] == 41
    assert (record["validation"], record["width"]) == (0, components or 27)
    assert "held_out" not in record
    run = value_files(Settings("o.npz", trees=2))
    assert (run.settings.method, len(run.points), len(run.validation)) == ("forest", 41, 0)
    with pytest.raises(th.InputError, match="--seed can only be used with --held-out"):
        command(Path("texts.csv"), Path("p.npz"), seed=3)


def test_rows_are_held_out_of_each_class_by_seed(folder, stub):
    for name, seed in (("a", None), ("b", 0), ("c", 1)):
        command(Path("texts.csv"), Path(f"{name}.npz"), held_out=0.2, seed=seed)
    a, b, c = (stored(f"{name}.npz") for name in "abc")
    names = a["classes"]
    labels, counts = np.unique(names[a["y_val"]], return_counts=True)
    assert (labels.tolist(), counts.tolist()) == (["blue", "red"], [2, 6])  # of 10 and 31
    assert len(a["X"]) + len(a["X_val"]) == 41
    both = sorted(map(tuple, np.concatenate([a["X"], a["X_val"]]).tolist()))
    command(Path("texts.csv"), Path("all.npz"), validation=Path("val.csv"))
    assert both == sorted(map(tuple, stored("all.npz")["X"].tolist()))
    np.testing.assert_array_equal(a["X_val"], b["X_val"])
    assert not np.array_equal(a["X_val"], c["X_val"])
    assert json.loads(str(c["about"])) | {"held_out": 0.2, "seed": 1} == json.loads(str(c["about"]))


def test_a_class_is_never_held_out_whole(folder, stub):
    (folder / "few.csv").write_text("text,label\na,1\nb,1\nc,2\nd,3\ne,3\nf,4\nf,4\n")
    command(Path("few.csv"), Path("o.npz"), held_out=0.9)
    found = stored("o.npz")
    assert (sorted(found["y"].tolist()), sorted(found["y_val"].tolist())) == (
        [1, 2, 3, 4, 4],  # the only one of its class stays, and so do copies
        [1, 3],
    )


@pytest.mark.parametrize(
    ("cells", "wanted", "classes"),
    [
        (["3", "-1", "3"], [3, -1, 3], None),
        (["3", "01", "3"], [1, 0, 1], ["01", "3"]),
        (["3", '""', "3"], [1, 0, 1], ["", "3"]),
        (["True", "NA", "True"], [1, 0, 1], ["NA", "True"]),
    ],
)
def test_labels_of_a_csv_are_text_unless_all_are_whole_numbers(
    folder, stub, cells, wanted, classes, capsys
):
    lines = [f"t,{cell}" for cell in cells]
    (folder / "t.csv").write_text("\n".join(["body,topic", *lines]) + "\n")
    command(
        Path("t.csv"), Path("o.npz"), validation=Path("t.csv"), text="body", label="topic"
    )  # fmt: skip
    assert stored("o.npz")["y"].tolist() == stored("o.npz")["y_val"].tolist() == wanted
    assert json.loads(capsys.readouterr().out)["classes"] == classes


def test_a_text_may_break_its_line_where_a_block_of_the_file_ends(folder, stub, monkeypatch):
    monkeypatch.setattr(text_module, "BLOCK", 64)
    lines = [f'"{"a" * (i % 9)}\n\nb",{i}' for i in range(60)]
    (folder / "t.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    command(Path("t.csv"), Path("o.npz"), validation=Path("t.csv"))
    assert stored("o.npz")["y"].tolist() == list(range(60))
    assert stored("o.npz")["X"][:, [0, 1, 26]].tolist() == [[i % 9, 1, 2] for i in range(60)]


def test_a_parquet_table_is_read_too(folder, stub):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"label": [5, 4, 5], "text": ["a", "bb", "ab"]})
    parquet.write_table(table, folder / "t.parquet")
    command(Path("t.parquet"), Path("o.npz"), validation=Path("t.parquet"))
    assert stored("o.npz")["X"][:, :2].tolist() == [[1, 0], [0, 2], [1, 1]]
    assert stored("o.npz")["y"].tolist() == [5, 4, 5]


@pytest.mark.parametrize("kind", ["tsv", "csv.gz", "feather", "folder"])
def test_texts_are_read_from_every_kind_of_table(folder, stub, kind):
    text = "text,label\na,red\nbb,blue\nab,red\n"
    (folder / "t.csv").write_text(text)
    path = folder / f"t.{kind}"
    if kind == "tsv":
        path.write_text(text.replace(",", "\t"))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "feather":
        from pyarrow import csv, feather

        feather.write_feather(csv.read_csv(folder / "t.csv"), path)
    else:
        path.mkdir()
        for number, line in enumerate(text.splitlines()[1:]):
            (path / f"{number}.csv").write_text(f"text,label\n{line}\n")
    for source, out in (("t.csv", "want.npz"), (path.name, "o.npz")):
        command(Path(source), Path(out), validation=Path("val.csv"))
    want, found = stored("want.npz"), stored("o.npz")
    for name in want:
        np.testing.assert_array_equal(found[name], want[name])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("texts.csv", "--out", "texts.csv"), 1, "must end in .npz"),
        (
            ("texts.csv", "--out", "o.npz", "--model", "absent"),
            1,
            "model 'absent' cannot be loaded",
        ),
        (("texts.csv", "--out", "old.npz"), 1, "old.npz already exists"),
        (("texts.csv",), 2, "Usage"),
    ],
)
def test_the_command_refuses_by_exit_code_and_words(folder, arguments, code, words):
    (folder / "old.npz").write_bytes(b"dear")
    done = run(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "reads" not in done.stderr
    assert not (folder / "o.npz").exists()
    assert (folder / "old.npz").read_bytes() == b"dear"


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("none.csv", {}, "there is no file none.csv"),
        ("texts.rtf", {}, "texts.rtf must be a .csv, .tsv, .parquet, .*file"),
        ("texts.csv", {"text": "body"}, "texts.csv has no column 'body' \\(--text\\): it has 'text', 'label'"),
        ("texts.csv", {"label": "z"}, "no column 'z' \\(--label\\)"),
        ("texts.csv", {"validation": Path("gap.csv")}, "gap.csv .*'text' .* got None in row 1"),
        ("open.csv", {}, "open.csv column 'label' has missing labels in row 1"),
        ("bad.parquet", {}, "bad.parquet is damaged, .* or is not a .parquet file"),
        ("texts.csv", {"validation": Path("whole.csv")}, "all integers or all strings"),
        ("texts.csv", {"validation": Path("val.csv"), "held_out": 0.1}, "--held-out can only be used with one"),
        ("texts.csv", {"validation": Path("val.csv"), "seed": 0}, "--seed can only be used with one table"),
        ("texts.csv", {"held_out": 1.5}, "--held-out must be a number between 0 and 1, got 1.5"),
        ("texts.csv", {"held_out": 0.0}, "--held-out 0 leaves no validation rows"),
        ("texts.csv", {"held_out": 0.2, "seed": -1}, "--seed must be an integer >= 0"),
        ("texts.csv", {"components": 0}, "--components must be an integer >= 1"),
        ("texts.csv", {"model": ""}, "model must be a non-empty string"),
        ("images.npz", {"text": "text"}, "--text can only be used with texts, not with images"),
        ("images.npz", {"validation": Path("val.csv")}, "--validation can only be used with texts"),
        ("images.npz", {"held_out": 0.1}, "--held-out can only be used with texts"),
        ("images.npz", {}, "images.npz does not hold a set of images: it has no array 'X_val'"),
        ("floats.npz", {}, "floats.npz does not hold a set of images: X must be uint8"),
        ("short.npz", {}, "y_val has 1 labels but there are 2 rows"),
        ("bad.npz", {}, "bad.npz does not hold a set of images, or is damaged"),
    ],
)  # fmt: skip
def test_the_command_refuses_before_anything_is_embedded(
    folder, stub, source, options, words, capsys
):
    for name in ("texts.rtf", "bad.parquet", "bad.npz"):
        (folder / name).write_text("text,label\na,b\n")
    (folder / "gap.csv").write_text("text,label\na,red\n,red\n")
    (folder / "open.csv").write_text("text,label\na,red\nb,\n")
    (folder / "whole.csv").write_text("text,label\na,1\nb,2\n")
    images, y = np.zeros((2, 8, 8), np.uint8), np.arange(2)
    np.savez(folder / "images.npz", X=images, y=y)
    np.savez(folder / "floats.npz", X=images / 1, y=y, X_val=images, y_val=y)
    np.savez(folder / "short.npz", X=images, y=y, X_val=images, y_val=y[:1])
    with pytest.raises(th.InputError) as refused:
        command(Path(source), Path("o.npz"), **options)
    assert re.search(words, in_options(message_of(refused.value)))
    assert "reads" not in capsys.readouterr().err
    assert not (folder / "o.npz").exists()


def test_too_many_components_are_refused_before_the_points_are_embedded(folder, stub, capsys):
    with pytest.raises(th.InputError, match="--components must be <= 27 for 41 rows of width 27"):
        command(Path("texts.csv"), Path("o.npz"), validation=Path("val.csv"), components=28)
    assert capsys.readouterr().err == "all-MiniLM-L6-v2 reads 2\n"


@pytest.mark.filterwarnings("ignore")
def test_the_command_embeds_images(resnet, folder, rng, capsys):
    images = rng.integers(0, 256, (5, 12, 12, 3), dtype=np.uint8)
    y, y_val = np.array([9, 8, 9]), np.array([8, 8])
    np.savez(folder / "images.npz", X=images[:3], y=y, X_val=images[3:], y_val=y_val)
    command(Path("images.npz"), Path("o.npz"), model=resnet[1])
    found = stored("o.npz")
    want = embed.embed_images(images, model=resnet[1])
    both = np.concatenate([found["X"], found["X_val"]])
    np.testing.assert_allclose(both, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
    assert (found["y"].tolist(), found["y_val"].tolist()) == ([9, 8, 9], [8, 8])
    assert json.loads(capsys.readouterr().out)["kind"] == "images"


def test_importing_the_command_loads_no_torch():
    code = "import sys, thresher.cli.embed, thresher.embed; print('torch' in sys.modules)"
    done = waits.run([sys.executable, "-c", code], check=True)
    assert done.stdout.strip() == "False"
