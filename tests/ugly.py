"""Tables as people have them: small, ugly, each with what its owner would expect of it."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import re
import zipfile
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = range(24)
LABELS = ["cat", "dog"]
ENDLESS = {0: "INF", 3: "inf", 4: "-inf", 5: "Infinity", 6: "-iNfinity", 7: "1e999"}
WORDS = [
    "apple", "birch", "cedar", "daisy", "elder", "fern", "grape", "hazel", "iris", "juniper",
    "kale", "lilac", "maple", "nettle", "olive", "poplar", "quince", "rose", "sage", "thyme",
    "ulmus", "violet", "willow", "yarrow",
]  # fmt: skip
LONG = "a long remark, in whole sentences, about row {} of the table and what was seen there"


@dataclass(frozen=True)
class Ugly:
    """A file, and what `thresher value FILE` should do with it."""

    name: str  # of the file
    content: bytes
    refused: tuple[str, ...] = ()  # words of the refusal; none where it just works
    ready: str = ""  # options of the line that solves it, as typed; "no" where none can
    kinds: str = ""  # what inspect says of the columns
    without: tuple[str, ...] = ()  # columns that the line leaves out
    code: int = 1  # of the refusal


def x(row):
    """A number that tells the labels apart."""
    return row % 2 * 10 + row / 7


def amount(row):
    """A whole number beyond a thousand, in no order."""
    return 1000 + 137 * (5 * row % 24)


def label(row):
    return LABELS[row % 2]


def table(header, cell, mark=",", end="\n", label=label):
    """Text with a number, a column of one's own, and a label."""
    lines = [mark.join(["size", *header, "kind"])]
    for row in ROWS:
        own = cell(row)
        lines.append(
            mark.join([f"{x(row):.2f}", *([own] if isinstance(own, str) else own), label(row)])
        )
    return (end.join(lines) + end).encode()


def column(cell, **more):
    return table(["own"], cell, **more)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def packed(*names):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, column(lambda row: str(row % 5)))
    return sink.getvalue()


def json_lines(cell):
    rows = [{"size": x(row), "own": cell(row), "kind": label(row)} for row in ROWS]
    return "\n".join(json.dumps(row) for row in rows).encode()


def typed(own, kind=None):
    return pa.table(
        {
            "size": [x(row) for row in ROWS],
            "own": pa.array([own(row) for row in ROWS], kind),
            "kind": [label(row) for row in ROWS],
        }
    )


def parquet(own, kind=None):
    sink = io.BytesIO()
    pq.write_table(typed(own, kind), sink)
    return sink.getvalue()


def arrow(own, kind=None):
    sink, data = io.BytesIO(), typed(own, kind)
    with pa.ipc.new_file(sink, data.schema) as writer:
        writer.write_table(data)
    return sink.getvalue()


def wide(name, place):
    names = [f"m{number}" for number in range(60)]
    names.insert(place, name)
    lines = [",".join(names)]
    for row in ROWS:
        cells = [f"{x(row) + number / 9:.2f}" for number in range(60)]
        cells.insert(place, label(row))
        lines.append(",".join(cells))
    return "\n".join(lines).encode()


def workbook(*sheets, merge=None):
    """An Excel file of these sheets; None where openpyxl is not there."""
    try:
        import openpyxl
    except ImportError:
        return None
    book, sink = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for rows in sheets:
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
        if merge and rows:
            sheet.merge_cells(merge)
    book.save(sink)
    return sink.getvalue()


def cells(own=lambda row: row % 5, header=("size", "own", "kind")):
    return [list(header), *([x(row), own(row), label(row)] for row in ROWS)]


plain = column(lambda row: str(row % 5))
german = column(lambda row: f"{row},5", mark=";").replace(b".", b",")
NUMBERS = "number number category"

UGLY = {
    # how text is written
    "clean": Ugly("a.csv", plain, kinds=NUMBERS),
    "semicolons": Ugly("a.csv", plain.replace(b",", b";"), ("delimiter seems to be ';'",), "--delimiter ';'"),
    "semicolons and decimal commas": Ugly("a.csv", german, ("delimiter", "'0,00' in row 0"), "--delimiter ';' --decimal ,", NUMBERS),
    "tabs in a .csv": Ugly("a.csv", plain.replace(b",", b"\t"), ("delimiter",), "--delimiter tab"),
    "pipes": Ugly("a.csv", plain.replace(b",", b"|"), ("delimiter",), "--delimiter '|'"),
    "byte order mark": Ugly("a.csv", b"\xef\xbb\xbf" + plain, kinds=NUMBERS),
    "byte order mark and CRLF": Ugly("a.csv", b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"), kinds=NUMBERS),
    "carriage returns": Ugly("a.csv", plain.replace(b"\n", b"\r"), kinds=NUMBERS),
    "blank lines": Ugly("a.csv", plain.replace(b"\n", b"\n\n"), kinds=NUMBERS),
    "no line end": Ugly("a.csv", plain.rstrip(b"\n"), kinds=NUMBERS),
    "Latin-1": Ugly("a.csv", plain.replace(b"own", "Größe".encode("latin-1")), ("not UTF-8", "0xf6"), "--encoding cp1252", NUMBERS),
    "Windows quotes": Ugly("a.csv", plain.replace(b"cat", "\u201ecat\u201c".encode("cp1252")), ("not UTF-8",), "--encoding cp1252"),
    "UTF-16": Ugly("a.csv", plain.decode().encode("utf-16"), ("UTF-16",), "--encoding utf-16", NUMBERS),
    "UTF-16 with tabs": Ugly("a.txt", plain.replace(b",", b"\t").decode().encode("utf-16"), ("UTF-16",), "--encoding utf-16", NUMBERS),
    "quoted line breaks": Ugly("a.csv", column(lambda row: quoted(f"two\nlines {row % 3}")), kinds="number category category"),
    "quoted delimiters": Ugly("a.csv", column(lambda row: quoted(f"Rome, {'IT' if row % 3 else 'US'}")), kinds="number category category"),
    "cells that begin with =": Ugly("a.csv", column(lambda row: f"=A{row % 3}"), kinds="number category category"),
    "emoji and Greek": Ugly("a.csv", column(lambda row: "αβ😀"[row % 3]), kinds="number category category"),
    "a column of spaces": Ugly("a.csv", column(lambda row: "  "), kinds="number empty category"),
    "capitals in the extension": Ugly("A.CSV", plain, kinds=NUMBERS),
    "a comment over the header": Ugly("a.csv", b"# exported 2024-01-01\n" + plain, ("1 cell in its header", "remove lines above"), "no"),
    "no header": Ugly("a.csv", plain.split(b"\n", 1)[1], kinds=NUMBERS),
    "doubled quotes": Ugly("a.csv", column(lambda row: quoted(f'"{row % 3}" inch')), kinds="number category category"),
    "spaces around cells": Ugly("a.csv", plain.replace(b",", b" , "), kinds=NUMBERS),
    "a row that is too long": Ugly("a.csv", plain + b"1,2,cat,oops\n", ("line 26 has 4", "quote cells that hold the delimiter, add missing cells"), "no"),
    "an open quote": Ugly("a.csv", plain + b'1,"2,cat\n', ("line 26", "never closed"), "no"),
    "a header alone": Ugly("a.csv", b"size,own,kind\n", ("no rows",), "no"),
    "nothing": Ugly("a.csv", b"", ("is empty",), "no"),
    "the same name twice": Ugly("a.csv", plain.replace(b"own", b"size"), kinds=NUMBERS),
    "the same name twice in Excel": Ugly("a.xlsx", workbook(cells(header=("size", "size", "kind"))), kinds=NUMBERS),
    "a delimiter at the end of lines": Ugly("a.csv", plain.replace(b"\n", b",\n"), ("no name for column 4",), "--ignore ''", NUMBERS + " empty", without=("",)),
    # numbers
    "thousands with commas": Ugly("a.csv", column(lambda row: quoted(f"{amount(row):,}")), ("'1,000' in row 0",), "--thousands ,", NUMBERS),
    "thousands with points": Ugly("a.csv", re.sub(rb"\.(\d\d);", rb",\1;", column(lambda row: f"{amount(row):,}.5".replace(",", "_").replace(".", ",").replace("_", "."), mark=";")), ("delimiter",), "--decimal , --thousands .", NUMBERS),
    "one column in two notations": Ugly("a.csv", column(lambda row: f"{row},5" if row % 2 else f"{row}.25", mark=";"), ("delimiter", "not numbers"), "no"),
    "thousands with spaces": Ugly("a.csv", column(lambda row: f"{amount(row):,}".replace(",", " ")), ("'1 000' in row 0",), "--thousands ' '", NUMBERS),
    "percent": Ugly("a.csv", column(lambda row: f"{row / 2} %"), kinds=NUMBERS),
    "dollars": Ugly("a.csv", column(lambda row: quoted(f"${amount(row):,}.50")), kinds=NUMBERS),
    "euros": Ugly("a.csv", re.sub(rb"\.(\d\d);", rb",\1;", column(lambda row: f"{row},50 €", mark=";")), ("'0,50 €' in row 0",), "--decimal ,", NUMBERS),
    "euros beside points": Ugly("a.csv", column(lambda row: quoted(f"{row},50 €")), ("'0,50 €' in row 0",), "no"),
    "several currencies": Ugly("a.csv", column(lambda row: f"{'$€'[row % 2]}{row}"), ("not money in one currency",), "no"),
    "words for missing numbers": Ugly("a.csv", column(lambda row: "N/A" if row % 5 == 1 else str(row / 3)), kinds=NUMBERS),
    "question marks": Ugly("a.csv", column(lambda row: "?" if row == 9 else f"{row / 3:.3f}"), ("'?' in row 9",), "--na '?'", NUMBERS),
    "a stray word": Ugly("a.csv", column(lambda row: "unknown" if row == 9 else f"{row / 3:.3f}"), ("'unknown' in row 9",), "--na unknown", NUMBERS),
    "a stray word among decimal commas": Ugly("a.csv", german.replace(b";9,5;", b";broken;"), ("delimiter", "--decimal , --na broken"), "--na broken --decimal ,", NUMBERS),
    "a stray word that is a class": Ugly("a.csv", column(lambda row: "cat" if row == 9 else f"{row / 3:.3f}"), ("'cat' in row 9",), "no"),
    "a number with its unit among others": Ugly("a.csv", column(lambda row: "3 kg" if row == 9 else f"{row / 3:.3f}"), ("'3 kg' in row 9",), "no"),
    "a class among few numbers": Ugly("a.csv", column(lambda row: "cat" if row == 9 else str(row % 5)), kinds=NUMBERS),
    "mixed types": Ugly("a.csv", column(lambda row: f"{row} kg" if row % 2 else f"{row / 3:.3f}"), ("not numbers",), "no"),
    "infinity": Ugly("a.csv", column(lambda row: "inf" if row == 3 else str(row / 3)), ("infinite numbers in row 3",), "--na inf", NUMBERS),
    "infinity in many forms": Ugly("a.csv", column(lambda row: ENDLESS.get(row, str(row / 3))), ("infinite numbers in rows 0, 3, 4, 5, 6",), "--na INF,inf,-inf,Infinity,-iNfinity,1e999", NUMBERS),
    "infinity alone below": Ugly("a.csv", column(lambda row: "-inf" if row == 3 else str(row / 3)), ("infinite numbers in row 3",), "--na -inf", NUMBERS),
    "infinity among decimal commas": Ugly("a.csv", german.replace(b";9,5;", b";-Inf;"), ("delimiter", "-Inf"), "--na -Inf --decimal ,", NUMBERS),
    "infinity in the only feature": Ugly("a.csv", "\n".join(["own,kind", *(f"{ENDLESS.get(r, x(r))},{label(r)}" for r in ROWS)]).encode(), ("infinite numbers",), "--na INF,inf", "number category"),
    "infinity in Parquet": Ugly("a.parquet", parquet(lambda row: float(ENDLESS.get(row, row / 3))), ("infinite numbers",), "--na inf,-inf", NUMBERS),
    "infinity of small floats in Parquet": Ugly("a.parquet", parquet(lambda row: float(ENDLESS.get(row, row / 3)), pa.float32()), ("infinite numbers",), "--na inf,-inf", NUMBERS),
    "infinity as a word of a dictionary": Ugly("a.parquet", parquet(lambda row: ENDLESS.get(row, str(row / 3)), pa.dictionary(pa.int32(), pa.string())), ("infinite numbers",), "--na INF,inf,-inf", NUMBERS),
    "infinity as long text in Parquet": Ugly("a.parquet", parquet(lambda row: ENDLESS.get(row, str(row / 3)), pa.large_string()), ("infinite numbers",), "--na INF,inf,-inf", NUMBERS),
    "infinity as a text view in Parquet": Ugly("a.arrow", arrow(lambda row: ENDLESS.get(row, str(row / 3)), pa.string_view()), ("infinite numbers",), "--na INF,inf,-inf", NUMBERS),
    "infinity in Excel": Ugly("a.xlsx", workbook(cells(lambda row: ENDLESS.get(row, row / 3))), ("infinite numbers",), "--na INF,inf,-inf", NUMBERS),
    "infinity in JSON lines": Ugly("a.jsonl", json_lines(lambda row: float(ENDLESS.get(row, row / 3))), ("infinite numbers",), "--na inf,-inf", NUMBERS),
    "nothing but infinity": Ugly("a.csv", column(lambda row: "inf"), kinds="number constant category"),
    "huge integers": Ugly("a.csv", column(lambda row: str(2**60 + row * 7919)), ("beyond 2**53",), "own"),
    # dates
    "few dates": Ugly("a.csv", column(lambda row: f"2024-01-{row % 4 + 1:02}"), ready="--date own", kinds="number date category"),
    "ISO dates": Ugly("a.csv", column(lambda row: f"2024-01-{row + 1:02}"), ("dates or times",), "--date own", "number date category"),
    "German dates": Ugly("a.csv", column(lambda row: f"{row + 1:02}.01.2024"), ("dates or times",), "--date own", "number date category"),
    "dates of either order": Ugly("a.csv", column(lambda row: f"0{row % 9 + 1}/0{row // 9 + 1}/2024"), ("dates or times",), "--date own=%d/%m/%Y", "number date category"),
    "times with zones": Ugly("a.csv", column(lambda row: f"2024-01-{row + 1:02}T10:30:00Z"), ("dates or times",), "--date own"),
    "dates of two formats": Ugly("a.csv", column(lambda row: f"2024-01-{row + 1:02}" if row % 2 else f"{row + 1}.1.2024"), ("dates or times",), "no"),
    "dates but for a word": Ugly("a.csv", column(lambda row: "unknown" if row == 9 else f"2024-01-{row + 1:02}"), ("not numbers",), "--na unknown --date own", "number date category"),
    "dates under a name with a comma": Ugly("a.csv", table(['"seen, at"'], lambda row: [f"2024-01-{row + 1:02}"]), ("dates or times",), "--date 'seen? at'", "number date category"),
    # what columns are
    "an empty column": Ugly("a.csv", column(lambda row: ""), kinds="number empty category"),
    "a constant column": Ugly("a.csv", column(lambda row: "same"), kinds="number constant category"),
    "numbers as ids": Ugly("a.csv", column(str).replace(b"own", b"id"), kinds="number id category"),
    "codes as ids": Ugly("a.csv", column(lambda row: f"p-{row:04}"), kinds="number id category"),
    "an index without a name": Ugly("a.csv", column(str).replace(b"own", b""), kinds="number id category"),
    "names of pictures": Ugly("a.csv", column(lambda row: f"pics/{row}.png"), kinds="number id category"),
    "two columns of ids": Ugly("a.csv", table(["id", "mail"], lambda row: [f"p{row}", f"p{row}@x.org"]), ("column 'mail'",), "--ignore mail", without=("mail",)),
    "an index in disorder without a name": Ugly("a.csv", column(lambda row: str(row * 37 % 401)).replace(b"own", b""), ("no name for column 2",), "--ignore ''", without=("",)),
    "sentences": Ugly("a.csv", column(lambda row: quoted(LONG.format(row))), ("embed its texts",), "no", "number text category"),
    "one column of sentences": Ugly("a.csv", "\n".join(["own,kind", *(f"{quoted(LONG.format(r))},{label(r)}" for r in ROWS)]).encode(), ("embed its texts with --text own\n", "--text own\n"), "no"),
    "short titles": Ugly("a.csv", column(lambda row: f"The {WORDS[row]} of a {WORDS[row // 2]}"), ("--label kind --text own",), "no"),
    "titles without spaces": Ugly("a.csv", column(lambda row: "".join(chr(0x4E00 + 7 * row + i) for i in range(9))), ("--label kind --text own",), "no"),
    "words, many of them": Ugly("a.csv", column(lambda row: WORDS[min(row, 21)]), ("not numbers",), "--categorical own", "number text category"),
    "words that all differ": Ugly("a.csv", column(lambda row: WORDS[row]), ("not numbers",), "--id own", "number text category"),
    "words that all differ, beside ids": Ugly("a.csv", table(["id", "own"], lambda row: [str(row), WORDS[row]]), ("not numbers",), "--ignore own", without=("own",)),
    "pictures, some of them twice": Ugly("a.csv", column(lambda row: f"pics/{min(row, 21)}.png"), ("not numbers",), "--image own", "number text category"),
    "true and false": Ugly("a.csv", column(lambda row: "TRUE" if row % 3 else "False"), kinds="number category category"),
    "owners": Ugly("a.csv", column(lambda row: f"clinic {row % 3}").replace(b"own", b"owner"), kinds="number category category"),
    # labels
    "labels that are missing": Ugly("a.csv", column(str, label=lambda row: "" if row == 5 else label(row)), ("missing labels in row 5",), "--unlabeled skip"),
    "labels that say NA": Ugly("a.csv", column(lambda row: str(row % 5), label=lambda row: "NA" if row % 8 == 5 else label(row))),
    "few numbers as labels": Ugly("a.csv", column(lambda row: str(row % 5), label=lambda row: str(row % 2))),
    "amounts as labels": Ugly("a.csv", column(lambda row: str(row % 5), label=lambda row: f"{row / 3:.4f}").replace(b"kind", b"target"), ("--task",), code=2),
    "prices after one category": Ugly("a.csv", "\n".join(["size,color,price", *(f"{x(r)},{label(r)},{r / 3:.3f}" for r in ROWS)]).encode(), ("it looks like the target of a regression",), "--label price --task regression", code=2),
    "no labels": Ugly("a.csv", column(lambda row: str(row / 3), label=lambda row: f"{row / 7:.3f}"), ("name it with --label",), "no"),
    "labels in the first column": Ugly("a.csv", "\n".join(["which,a,b", *(f"{label(r)},{x(r)},{r / 3}" for r in ROWS)]).encode()),
    "a label among 60 columns": Ugly("a.csv", wide("Class_Label", 31)),
    "a label of any name among 60": Ugly("a.csv", wide("verdict", 31)),
    # other files
    "tabs in a .txt": Ugly("a.txt", plain.replace(b",", b"\t"), kinds=NUMBERS),
    "semicolons in a .txt": Ugly("a.txt", plain.replace(b",", b";"), kinds=NUMBERS),
    "packed by gzip": Ugly("a.csv.gz", gzip.compress(plain), kinds=NUMBERS),
    "packed by a Mac": Ugly("a.zip", packed("a.csv", "__MACOSX/._a.csv", ".DS_Store"), kinds=NUMBERS),
    "two tables in one archive": Ugly("a.zip", packed("a.csv", "b.csv"), ("holds 2 files",), "no"),
    "a .csv that is a .zip": Ugly("a.csv", packed("a.csv"), ("a.csv",), "no"),
    "Excel": Ugly("a.xlsx", workbook(cells()), kinds=NUMBERS),
    "Excel with a title over merged cells": Ugly("a.xlsx", workbook([["All cats and dogs of 2024", None, None], [], *cells()], merge="A1:C1"), kinds=NUMBERS),
    "Excel with two rows of headers": Ugly("a.xlsx", workbook([["measured", None, "seen"], *cells()], merge="A1:B1"), kinds=NUMBERS),
    "Excel with an empty first sheet": Ugly("a.xlsx", workbook([], cells()), kinds=NUMBERS),
    "Excel with a column without a name": Ugly("a.xlsx", workbook(cells(header=("size", None, "kind"))), ("no name for column 2",), "--features '*'"),
    "Excel with a row of totals": Ugly("a.xlsx", workbook([*cells(), ["Total", 48, None]]), ("row 24 ('Total') seems to add up the others",), "--na Total --unlabeled skip", NUMBERS),
    "Excel with numbers as text": Ugly("a.xlsx", workbook(cells(lambda row: f"{row / 3:.2f}")), kinds=NUMBERS),
    "Excel with formulas that have no value": Ugly("a.xlsx", workbook(cells(lambda row: f"=A{row + 2}*2")), kinds="number empty category"),
    "Excel with true and false": Ugly("a.xlsx", workbook(cells(lambda row: bool(row % 3))), kinds="number category category"),
    "Excel with dates": Ugly("a.xlsx", workbook(cells(lambda row: datetime.date(2024, 1, row + 1))), ("dates or times",), "--date own", "number date category"),
    "Excel with mixed types": Ugly("a.xlsx", workbook(cells(lambda row: "n/a" if row == 3 else row / 3)), kinds=NUMBERS),
    "JSON lines": Ugly("a.jsonl", json_lines(lambda row: row % 5), kinds=NUMBERS),
    "JSON lines whose first row has gaps": Ugly("a.jsonl", json_lines(lambda row: row % 5).replace(b'"own": 0, ', b""), kinds=NUMBERS),
    "JSON lines with a byte order mark": Ugly("a.jsonl", b"\xef\xbb\xbf" + json_lines(lambda row: row % 5), kinds=NUMBERS),
    "JSON lines with blank lines": Ugly("a.ndjson", json_lines(lambda row: row % 5).replace(b"\n", b"\n\n"), kinds=NUMBERS),
    "JSON lines of nested objects": Ugly("a.jsonl", json_lines(lambda row: {"deep": row}), ("own",), "no"),
    "JSON that is one list": Ugly("a.jsonl", b"[" + json_lines(lambda row: 1).replace(b"\n", b",") + b"]", ("a.jsonl",), "no"),
    "JSON lines, packed": Ugly("a.jsonl.gz", gzip.compress(json_lines(lambda row: row % 5)), kinds=NUMBERS),
    "JSON lines of several types": Ugly("a.jsonl", json_lines(lambda row: [1, "two", None][row % 3]), kinds="number category category"),
    "JSON lines with lists": Ugly("a.jsonl", json_lines(lambda row: [row]), ("type list",), "no"),
    "broken JSON lines": Ugly("a.jsonl", json_lines(lambda row: 1)[:-3], ("line 24 of a.jsonl is not JSON",), "no"),
}  # fmt: skip
