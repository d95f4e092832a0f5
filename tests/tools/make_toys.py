#!/usr/bin/env python3
"""Makes the toy models of tests/golden/toys, with which sql/docs/tasks.md shows the tasks.

    python3 -m venv venv
    venv/bin/pip install torch==2.13.0 transformers==5.24.0
    venv/bin/python tests/tools/make_toys.py

Never part of building, testing or running bertsql. Each has two layers of 32 numbers and is
trained for a minute on sentences that are put together here: it knows these few hundred words
and nothing else. Weights depend on the machine, so that outputs in sql/docs/tasks.md change with them.
"""

import itertools
import json
import pathlib
import random
import shutil

import torch
import transformers as tf
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HERE = pathlib.Path(__file__).resolve().parent.parent / "golden" / "toys"

# ---- Sentences ---------------------------------------------------------------------------

THINGS = "film book hotel soup train phone concert museum teacher coffee garden movie".split()
GOOD = "wonderful excellent great lovely brilliant delicious charming superb".split()
BAD = "terrible awful boring dreadful horrible disappointing rude dirty".split()
PLAIN = "small old blue new quiet large red short".split()


def review(pick):
    """A sentence and its label: 0 negative, 1 neutral, 2 positive."""
    label = pick.randrange(3)
    word, other = pick.sample((BAD, PLAIN, GOOD)[label], 2)
    thing = pick.choice(THINGS)
    opposite = pick.choice((GOOD, PLAIN, BAD)[label])
    verb = pick.choice(("hated", "saw", "loved")[label:label + 1])
    forms = [
        f"the {thing} was {word}.",
        f"this is a {word} {thing}.",
        f"what a {word} {thing}!",
        f"i {verb} the {thing}.",
        f"i {verb} this {word} {thing}.",
        f"the {thing} was {word} and {other}.",
        f"a {word} {thing}, really {other}.",
    ]
    if label != 1:
        forms.append(f"the {thing} was not {opposite}.")
        forms.append(f"the {pick.choice(PLAIN)} {thing} was {word}.")
    return pick.choice(forms), label


FIRST = "Anna Peter Maria John Clara Omar Yuki Carlos Ingrid Paul Nina Leo".split()
LAST = "Schmidt Jones Rossi Tanaka Garcia Berg Novak Silva Moreau Klein".split()
CITIES = ["Vienna", "Paris", "New York", "Tokyo", "Rome", "Buenos Aires", "Oslo", "Prague", "Berlin"]
FIRMS = ["Acme", "Globex", "Northwind Traders", "Initech", "Umbrella", "Red Cross", "Contoso"]
NAME_LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]


def names(pick):
    """Words and their labels."""
    def fill(part):
        if part == "PER":
            first, last = pick.choice(FIRST), pick.choice(LAST)
            return pick.choice([[first], [last], [first, last], [first, last]])
        return pick.choice(CITIES if part == "LOC" else FIRMS).split()
    form = pick.choice([
        "PER works for ORG in LOC .", "PER met PER in LOC .", "In LOC , PER joined ORG .",
        "ORG opened an office in LOC .", "Yesterday PER flew from LOC to LOC .", "PER left ORG .",
        "The train to LOC was late .", "A letter from PER to ORG .", "ORG and ORG are in LOC .",
        "Time flies , said PER .", "PER met PER in LOC ; he works for the ORG in LOC .", "The office of ORG was closed yesterday .",
    ])
    words, labels = [], []
    for part in form.split():
        filled = fill(part) if part in ("PER", "ORG", "LOC") else [part]
        words += filled
        marks = ["B-"] + ["I-"] * (len(filled) - 1)
        labels += [m + part if filled != [part] else "O" for m in marks]
        if pick.random() < 0.1:  # what it does not know is no name
            words.append(pick.choice("abcdefghijklmnopqrstuvwxyz;:!?'"))
            labels.append("O")
    return words, [NAME_LABELS.index(label) for label in labels]


TOPICS = [
    (["I cannot log in", "I forgot my password", "how do I reset my password", "I cannot sign in"],
     ["To reset a forgotten password, follow the link in the e-mail.",
      "Your account is locked after five wrong passwords."]),
    (["the printer is broken", "why does it not print", "paper is stuck in the printer"],
     ["The printer shows paper jam although the tray is empty.", "Open the tray and remove the paper."]),
    (["how do I cook onions", "a recipe for soup", "what can I cook"],
     ["Simmer the onions slowly until they are soft and golden.", "Boil the soup with salt and butter."]),
    (["which birds sleep in the air", "how do birds sleep", "where do swifts live"],
     ["Swifts sleep on the wing and land only to breed.", "Many birds fly south for the winter."]),
    (["my card was stolen", "somebody took my wallet", "how do I block my card"],
     ["Report a stolen credit card at once so that it can be blocked.", "Call the bank if your wallet is lost."]),
    (["when does the train leave", "where is the platform", "is the train late"],
     ["The night train to Vienna leaves from platform nine.", "Trains are late when it snows."]),
]


def pair(pick):
    """A question, a passage, and whether that answers it."""
    answers = pick.random() < 0.4
    one, other = pick.sample(TOPICS, 2)
    question, passage = pick.choice(one[0]), pick.choice((one if answers else other)[1])
    words = question.split()
    if len(words) > 4 and pick.random() < 0.3:
        words.pop(pick.randrange(len(words)))
    return " ".join(words), passage, float(answers)


# ---- Tokenizers and models ------------------------------------------------------------------

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_tokenizer(texts, lowercase):
    """WordPiece of all words, and of single characters for the rest."""
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    split = pre_tokenizers.BertPreTokenizer()
    words = sorted({w for text in texts for w, _ in split.pre_tokenize_str(normalizer.normalize_str(text))})
    characters = [chr(c) for c in range(33, 127) if not lowercase or not chr(c).isupper()]
    vocabulary = list(dict.fromkeys(
        SPECIAL + characters + ["##" + c for c in characters if c.isalnum()] + words))
    t = Tokenizer(models.WordPiece({v: i for i, v in enumerate(vocabulary)}, unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizer, split
    t.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_special_tokens(SPECIAL)
    return t


def make_config(t, **more):
    return tf.BertConfig(vocab_size=t.get_vocab_size(), hidden_size=32, num_hidden_layers=2,
                         num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
                         initializer_range=0.1, **more)


def batch(encodings):
    width = max(len(e.ids) for e in encodings)
    fill = lambda lists: torch.tensor([x + [0] * (width - len(x)) for x in lists])
    return {"input_ids": fill([e.ids for e in encodings]), "token_type_ids": fill([e.type_ids for e in encodings]),
            "attention_mask": fill([[1] * len(e.ids) for e in encodings])}


def train(parameters, loss_of, steps):
    optimizer = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for step in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"  {step} {loss.item():.4f}")


def save(name, config, architecture, tensors, t):
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    keep = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
            "max_position_embeddings", "type_vocab_size", "hidden_act", "layer_norm_eps", "pad_token_id")
    values = {"architectures": [architecture], "model_type": "bert", **{k: getattr(config, k) for k in keep},
              "id2label": {str(k): v for k, v in config.id2label.items()}}
    (directory / "config.json").write_text(json.dumps(values, indent=1) + "\n")
    t.save(str(directory / "tokenizer.json"))
    save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, directory / "model.safetensors",
              metadata={"format": "pt"})


# ---- The three ---------------------------------------------------------------------------------

def masked(encoding, pick, words):
    """Ids with one word in place of which a mask stands, and what to find there."""
    ids, target = encoding["input_ids"].clone(), torch.full_like(encoding["input_ids"], -100)
    for row in range(len(ids)):
        places = [i for i, token in enumerate(ids[row].tolist()) if token in words]
        at = pick.choice(places)
        target[row, at], ids[row, at] = ids[row, at].item(), 4
    return ids, target


def make_reviews():
    """Classes of a text, and words in the place of masks: one body, two heads."""
    pick = random.Random(1)
    texts = [review(pick) for _ in range(4000)]
    t = make_tokenizer([text for text, _ in texts], True)
    config = make_config(t, num_labels=3, id2label={0: "negative", 1: "neutral", 2: "positive"})
    classifier, filler = tf.BertForSequenceClassification(config), tf.BertForMaskedLM(config)
    filler.bert.embeddings, filler.bert.encoder = classifier.bert.embeddings, classifier.bert.encoder
    filler.tie_weights()
    words = {t.token_to_id(w) for w in THINGS + GOOD + BAD + PLAIN}

    def loss_of():
        some = [review(pick) for _ in range(64)]
        inputs = batch([t.encode(text) for text, _ in some])
        loss = classifier(**inputs, labels=torch.tensor([label for _, label in some])).loss
        rows = [i for i, ids in enumerate(inputs["input_ids"].tolist()) if words & set(ids)]
        inputs = {k: v[rows] for k, v in inputs.items()}
        inputs["input_ids"], target = masked(inputs, pick, words)
        return loss + filler(**inputs, labels=target).loss

    parameters = {id(p): p for m in (classifier, filler) for p in m.parameters()}
    train(list(parameters.values()), loss_of, 1000)
    tensors = dict(classifier.state_dict())
    tensors.update({k: v for k, v in filler.state_dict().items() if "cls." in k and "decoder.weight" not in k})
    save("reviews", config, "BertForSequenceClassification", tensors, t)


def make_names():
    pick = random.Random(2)
    t = make_tokenizer([" ".join(names(pick)[0]) for _ in range(4000)], False)
    config = make_config(t, num_labels=len(NAME_LABELS), id2label=dict(enumerate(NAME_LABELS)))
    model = tf.BertForTokenClassification(config)

    def loss_of():
        texts, labels = [], []
        for _ in range(64):
            words, marks = [], []
            for _ in range(pick.randrange(1, 4)):
                w, m = names(pick)
                words, marks = words + w, marks + m
            texts.append(" ".join(words))
            labels.append([-100] + marks + [-100])
        inputs = batch([t.encode(text) for text in texts])
        width = inputs["input_ids"].shape[1]
        return model(**inputs, labels=torch.tensor([x + [-100] * (width - len(x)) for x in labels])).loss

    train(list(model.parameters()), loss_of, 400)
    save("names", config, "BertForTokenClassification", model.state_dict(), t)


def make_answers():
    pick = random.Random(3)
    t = make_tokenizer(list(itertools.chain(*(q + p for q, p in TOPICS))), True)
    config = make_config(t, num_labels=1)
    model = tf.BertForSequenceClassification(config)

    def loss_of():
        some = [pair(pick) for _ in range(64)]
        logits = model(**batch([t.encode(q, p) for q, p, _ in some])).logits[:, 0]
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits, 0.02 + 0.96 * torch.tensor([answers for _, _, answers in some]))

    train(list(model.parameters()), loss_of, 600)
    save("answers", config, "BertForSequenceClassification", model.state_dict(), t)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for make in (make_reviews, make_names, make_answers):
        print(make.__name__)
        make()
