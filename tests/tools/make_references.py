#!/usr/bin/env python3
"""Makes the small reference checkpoints of tests/golden/families that this project adds.

    python3 -m venv venv
    venv/bin/pip install torch==2.13.0 transformers==5.24.0 sentence-transformers==6.2.0
    venv/bin/python tests/tools/make_references.py

Never part of building, testing or running bertsql. Each checkpoint has random weights and a
vocabulary of its own; what is expected of it is computed in float64, embeddings with the modules
of sentence-transformers in float64 too.
"""

import copy
import json
import math
import pathlib
import shutil

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
import transformers as tf
from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Pooling

HERE = pathlib.Path(__file__).resolve().parent.parent / "golden" / "families"
WORDS = "the of and to a in time flies like an arrow fruit banana new phone what is".split()
TEXTS = [
    ("time flies like an arrow", None),
    ("", None),
    ("Fruit flies like a banana, and a new phone.", None),
    ("the [MASK] is [PAD] a word of the [MASK]", None),
    ("zebra time flies and what is to be of the new in time and to the end of an arrow in a phone", None),
    ("What is an arrow?", "A phone is new."),
]
LIMIT = 40
LONG = 160  # more than one block of queries, more than the farthest bucket of MPNet
LONG_TEXT = "time flies like an arrow and a banana is what is new in the phone of fruit, " * 12
REFERENCE = f"transformers {tf.__version__}, torch {torch.__version__}"


def vocabulary(pad_first):
    """[PAD] at 0 as in BERT or, as in RoBERTa, at 1."""
    special = ["[PAD]", "[CLS]"] if pad_first else ["[CLS]", "[PAD]"]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    return special + ["[SEP]", "[UNK]", "[MASK]", ".", ",", "?"] + WORDS + [
        c for c in letters if c not in WORDS
    ] + ["##" + c for c in letters]


def make_tokenizer(pad_first):
    tokens = vocabulary(pad_first)
    t = Tokenizer(models.WordPiece({v: i for i, v in enumerate(tokens)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = tokens.index("[CLS]"), tokens.index("[SEP]")
    t.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    t.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    return t, len(tokens)


def byte_offsets(text, offsets):
    return [len(text[: offsets[0]].encode()), len(text[: offsets[1]].encode())]


def encode(tokenizer, text, text_b, types, limit=LIMIT):
    t = Tokenizer.from_str(tokenizer.to_str())
    t.enable_truncation(limit)
    e = t.encode(text, text_b) if text_b is not None else t.encode(text)
    sequence = [-1 if s is None else s for s in e.sequence_ids]
    source = {0: text, 1: text_b, -1: ""}
    return {
        "text": text,
        "text_b": text_b,
        "ids": e.ids,
        "type_ids": e.type_ids if types > 1 else [0] * len(e.ids),
        "special": e.special_tokens_mask,
        "sequence": sequence,
        "byte_offsets": [
            byte_offsets(source[s], o) if s >= 0 else [0, 0] for s, o in zip(sequence, e.offsets)
        ],
        "tokens": e.tokens,
    }


def randomize(model, seed):
    """Weights that make every part of the model matter."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            gain = p.dim() == 1 and name.endswith("weight")
            p.copy_(1 + 0.2 * torch.randn_like(p) if gain else 0.3 * torch.randn_like(p))
    return model.eval()


class Checkpoint:
    """A directory of tests/golden/families and what is expected of it."""

    def __init__(self, name, note, pad_first=True, types=2, limit=LIMIT):
        self.directory = HERE / name
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.tokenizer, self.vocab = make_tokenizer(pad_first)
        self.note, self.types, self.limit = note, types, limit
        self.texts = TEXTS + ([(LONG_TEXT, None)] if limit > LIMIT else [])
        self.cases, self.tensors = [], {}

    def write_json(self, name, value):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def add_cases(self, run):
        """run(ids, types) gives the tensors of one text in float64."""
        for number, (text, text_b) in enumerate(self.texts):
            case = encode(self.tokenizer, text, text_b, self.types, self.limit)
            self.cases.append(case)
            ids, types = torch.tensor([case["ids"]]), torch.tensor([case["type_ids"]])
            with torch.no_grad():
                for key, value in run(ids, types, text_b is not None).items():
                    if (key.startswith(("hidden", "attention")) and len(case["ids"]) > 24):
                        continue
                    self.tensors[f"case{number:02d}.{key}"] = value.float().contiguous()

    def finish(self, config):
        self.write_json("config.json", config)
        self.tokenizer.save(str(self.directory / "tokenizer.json"))
        self.write_json(
            "tokenizer_config.json",
            {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]",
             "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
             "mask_token": "[MASK]", "model_max_length": self.limit},
        )
        self.write_json(
            "expected.json",
            {"note": self.note, "reference": REFERENCE, "max_length": self.limit, "cases": self.cases},
        )
        save_file(self.tensors, str(self.directory / "expected.safetensors"))


def outputs(model, ids, types, takes_types):
    """What a model of transformers gives for one text, its head's logits among it."""
    double = copy.deepcopy(model).double()  # rotary positions may keep state
    arguments = {"token_type_ids": types} if takes_types else {}
    out = double(input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True,
                 output_hidden_states=True, **arguments)
    found = {"last_hidden_state": out.hidden_states[-1][0], "hidden.1": out.hidden_states[1][0]}
    for layer, weights in enumerate(out.attentions):
        found[f"attention.{layer}"] = weights[0]
    if getattr(out, "pooler_output", None) is not None:
        found["pooler_output"] = out.pooler_output[0]
    if getattr(out, "logits", None) is not None:
        logits = out.logits[0]
        found["logits"] = logits[:4] if "MaskedLM" in type(model).__name__ else logits
    return found


def transformers_checkpoint(name, note, model_class, config, seed, pad_first=True, types=2,
                            takes_types=True, rewrite=None, limit=LIMIT):
    c = Checkpoint(name, note, pad_first, types, limit)
    config.vocab_size = c.vocab
    config._attn_implementation = "eager"
    model = randomize(model_class(config), seed)
    model.tie_weights()
    c.add_cases(lambda ids, types_, pair: outputs(model, ids, types_, takes_types))
    model.save_pretrained(c.directory)
    saved = json.loads((c.directory / "config.json").read_text())
    c.finish(rewrite(saved) if rewrite else saved)


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 24, "max_position_embeddings": LIMIT}


# ---- Jina BERT v2 ---------------------------------------------------------------


def slopes(heads):
    """ALiBi's, for any number of heads (Press et al. 2022)."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    more = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * power, 2)]
    return torch.tensor(first + more[: heads - power])


class JinaLayer(nn.Module):
    """code: with normalized queries and keys and one more norm after attention."""

    def __init__(self, hidden, inner, code):
        super().__init__()
        self.code = code
        if code:
            self.layer_norm_q, self.layer_norm_k, self.layer_norm_1 = (
                nn.LayerNorm(hidden, eps=1e-12) for _ in range(3))
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.dense, self.norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, eps=1e-12)
        self.gated, self.wo = nn.Linear(hidden, 2 * inner, bias=False), nn.Linear(inner, hidden)
        self.layernorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x, heads):
        n, hidden = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.code:
            q, k = self.layer_norm_q(q), self.layer_norm_k(k)
        q, k, v = (y.view(n, heads, -1).transpose(0, 1) for y in (q, k, v))
        away = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).abs()
        bias = -slopes(heads).to(x.dtype)[:, None, None] * away
        weights = (q @ k.transpose(1, 2) / math.sqrt(hidden // heads) + bias).softmax(-1)
        a = self.norm(self.dense((weights @ v).transpose(0, 1).reshape(n, hidden)) + x)
        x = self.layer_norm_1(a + x) if self.code else a
        gate, up = self.gated(x).chunk(2, -1)
        if self.code:
            gate, up = up, gate
        return self.layernorm(self.wo(nn.functional.gelu(gate) * up) + x), weights


JINA_NAMES = {"query": "attention.self.query", "key": "attention.self.key",
              "value": "attention.self.value", "dense": "attention.output.dense",
              "norm": "attention.output.LayerNorm", "gated": "mlp.gated_layers", "wo": "mlp.wo",
              "layernorm": "mlp.layernorm"}
JINA_CODE_NAMES = JINA_NAMES | {
    "layer_norm_q": "attention.self.layer_norm_q", "layer_norm_k": "attention.self.layer_norm_k",
    "layer_norm_1": "layer_norm_1", "gated": "mlp.up_gated_layer", "wo": "mlp.down_layer",
    "layernorm": "layer_norm_2"}


def jina(name, note, seed, code, limit):
    """Written from the published description: the model's own code is in no package."""
    hidden, heads, inner, layers = 18, 3, 24, 2
    layer_names = JINA_CODE_NAMES if code else JINA_NAMES
    c = Checkpoint(name, note, limit=limit)
    model = nn.ModuleDict({
        "word": nn.Embedding(c.vocab, hidden), "segment": nn.Embedding(2, hidden),
        "norm": nn.LayerNorm(hidden, eps=1e-12),
        "layers": nn.ModuleList(JinaLayer(hidden, inner, code) for _ in range(layers))})
    randomize(model, seed)
    double = copy.deepcopy(model).double()

    def run(ids, types, pair):
        x = double["norm"](double["word"](ids[0]) + double["segment"](types[0]))
        found = {}
        for i, layer in enumerate(double["layers"]):
            x, found[f"attention.{i}"] = layer(x, heads)
            if i == 0:
                found["hidden.1"] = x
        return found | {"last_hidden_state": x}

    c.add_cases(run)
    names = {"word.weight": "word_embeddings.weight", "segment.weight": "token_type_embeddings.weight",
             "norm.weight": "LayerNorm.weight", "norm.bias": "LayerNorm.bias"}
    state = {}
    for key, value in model.state_dict().items():
        if key in names:
            state["bert.embeddings." + names[key]] = value
            continue
        _, number, part, kind = key.split(".")
        state[f"bert.encoder.layer.{number}.{layer_names[part]}.{kind}"] = value
    save_file(state, str(c.directory / "model.safetensors"), metadata={"format": "pt"})
    c.finish({"model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "vocab_size": c.vocab,
              "hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": layers,
              "intermediate_size": inner, "max_position_embeddings": 8192, "type_vocab_size": 2,
              "position_embedding_type": "alibi", "feed_forward_type": "geglu",
              "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0})


# ---- Families of transformers ----------------------------------------------------


def nomic_original(saved):
    """The keys of the files that nomic-ai published, with a model trained on 16 positions."""
    return {"model_type": "nomic_bert", "architectures": ["NomicBertModel"],
            "activation_function": "swiglu", "n_embd": saved["hidden_size"],
            "n_head": saved["num_attention_heads"], "n_layer": saved["num_hidden_layers"],
            "n_inner": saved["intermediate_size"], "n_positions": LIMIT, "max_trained_positions": 16,
            "layer_norm_epsilon": saved["layer_norm_eps"], "rotary_emb_base": 1000,
            "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
            "rotary_emb_scale_base": None, "rotary_scaling_factor": 2, "qkv_proj_bias": False,
            "mlp_fc1_bias": False, "mlp_fc2_bias": False, "prenorm": False, "parallel_block": False,
            "use_rms_norm": False, "causal": False, "pad_vocab_size_multiple": 1,
            "type_vocab_size": 2, "vocab_size": saved["vocab_size"]}


def gte_original(saved):
    """The keys of the files that Alibaba published, with their fixed scaling of angles."""
    drop = ("rope_parameters", "model_type", "architectures")
    return {k: v for k, v in saved.items() if k not in drop} | {
        "model_type": "new", "architectures": ["NewModel"], "position_embedding_type": "rope",
        "layer_norm_type": "layer_norm", "logn_attention_scale": False, "pack_qkv": True,
        "rope_theta": 20000, "rope_scaling": {"type": "ntk", "factor": 8.0}}


class ScaledGte(tf.GteModel):
    """GTE with the angles of its first publication."""

    def __init__(self, config):
        super().__init__(config)
        width = config.hidden_size // config.num_attention_heads
        base = 20000 * 8.0
        angles = 1.0 / (base ** (torch.arange(0, width, 2, dtype=torch.float) / width))
        self.rotary_emb.inv_freq = angles / 8.0 ** (2 / width)


def families():
    small = SMALL
    roberta = small | {"max_position_embeddings": LIMIT + 2, "type_vocab_size": 1, "pad_token_id": 1}
    labels = {"id2label": {0: "none", 1: "some", 2: "all"}, "label2id": {"none": 0, "some": 1, "all": 2}}
    one = {"id2label": {0: "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    rope = {"rope_type": "default", "rope_theta": 1000.0}
    t = transformers_checkpoint
    t("camembert-mlm", "CamemBERT; masked-LM head", tf.CamembertForMaskedLM,
      tf.CamembertConfig(**roberta), 1, pad_first=False, types=1)
    t("xlm-roberta-ner", "token classification", tf.XLMRobertaForTokenClassification,
      tf.XLMRobertaConfig(**roberta, **labels), 2, pad_first=False, types=1)
    albert = small | {"embedding_size": 8, "num_hidden_layers": 4, "num_hidden_groups": 2}
    t("albert-mlm", "shared layers in two groups, narrow embeddings; masked-LM head",
      tf.AlbertForMaskedLM, tf.AlbertConfig(**albert), 3)
    t("albert-classify", "one group; classifier on the pooler", tf.AlbertForSequenceClassification,
      tf.AlbertConfig(**(albert | {"num_hidden_groups": 1}), **labels), 4)
    t("electra-mlm", "generator head, narrow embeddings", tf.ElectraForMaskedLM,
      tf.ElectraConfig(**small, embedding_size=8), 5)
    t("electra-classify", "classifier.dense + gelu + out_proj; embeddings as wide as the layers",
      tf.ElectraForSequenceClassification, tf.ElectraConfig(**small, embedding_size=16, **labels), 6)
    mpnet = small | {"max_position_embeddings": LIMIT + 2}
    t("mpnet-mlm", "masked-LM head", tf.MPNetForMaskedLM, tf.MPNetConfig(**mpnet), 7,
      pad_first=False, types=1, takes_types=False)
    t("mpnet-cross", "one number for a pair", tf.MPNetForSequenceClassification,
      tf.MPNetConfig(**mpnet, **one), 8, pad_first=False, types=1, takes_types=False)
    t("mpnet-long", "distances beyond the farthest bucket", tf.MPNetModel,
      tf.MPNetConfig(**(small | {"max_position_embeddings": LONG + 2})), 18, pad_first=False,
      types=1, takes_types=False, limit=LONG)
    modern = small | {"num_hidden_layers": 3, "local_attention": 6, "pad_token_id": 0,
                      "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
    t("modernbert-classify", "mean of the tokens, head, classifier; biases everywhere",
      tf.ModernBertForSequenceClassification,
      tf.ModernBertConfig(**modern, **labels, classifier_pooling="mean", classifier_bias=True,
                          attention_bias=True, mlp_bias=True, norm_bias=True,
                          hidden_activation="gelu_pytorch_tanh"), 9, types=1, takes_types=False)
    t("modernbert-ner", "token classification", tf.ModernBertForTokenClassification,
      tf.ModernBertConfig(**modern, **labels), 10, types=1, takes_types=False)
    t("modernbert-long", "windows over several blocks of queries", tf.ModernBertModel,
      tf.ModernBertConfig(**(modern | {"max_position_embeddings": LONG, "local_attention": 20})),
      19, types=1, takes_types=False, limit=LONG)
    t("nomic-original", "the original keys; angles that grow with texts longer than the training's",
      tf.NomicBertModel,
      tf.NomicBertConfig(**(small | {"max_position_embeddings": 16}), type_vocab_size=2,
                         rope_parameters={"rope_type": "dynamic", "rope_theta": 1000.0, "factor": 2.0}),
      11, rewrite=nomic_original)
    t("nomic-mlm", "masked-LM head", tf.NomicBertForMaskedLM,
      tf.NomicBertConfig(**small, type_vocab_size=2, rope_parameters=rope), 12)
    t("nomic-classify", "classifier on the pooler", tf.NomicBertForSequenceClassification,
      tf.NomicBertConfig(**small, type_vocab_size=2, rope_parameters=rope, **labels), 13)
    t("gte-original", "the original keys and scaled angles, no token types", ScaledGte,
      tf.GteConfig(**small, type_vocab_size=0, pad_token_id=0, rope_parameters=rope), 14, types=1,
      rewrite=gte_original)
    t("gte-mlm", "masked-LM head", tf.GteForMaskedLM,
      tf.GteConfig(**small, pad_token_id=0, rope_parameters=rope), 15, types=1)
    t("gte-classify", "classifier on the pooler", tf.GteForSequenceClassification,
      tf.GteConfig(**small, pad_token_id=0, rope_parameters=rope, **labels), 16, types=1)
    jina("jina-bert", "ALiBi for 3 heads, gated GELU; prefix bert.", 17, False, LONG)
    jina("jina-code", "the same with normalized queries and keys", 21, True, LIMIT)


# ---- Modules of sentence-transformers ---------------------------------------------

PROMPTS = {"query": "what is new: "}


def sentence(name, note, seed, pooling, include_prompt, modules):
    """BERT with modules: (folder, module), run in float64 as encode runs them."""
    c = Checkpoint(name, note)
    config = tf.BertConfig(**SMALL, vocab_size=c.vocab)
    config._attn_implementation = "eager"
    model = randomize(tf.BertModel(config, add_pooling_layer=False), seed)
    pool = Pooling(SMALL["hidden_size"], pooling_mode=pooling, include_prompt=include_prompt)
    for i, (_, module) in enumerate(modules):
        randomize(module, seed + 1 + i)
    double = copy.deepcopy(model).double()
    chain = [copy.deepcopy(m).double() for _, m in modules]

    def embed(text, prompt):
        ids = torch.tensor([encode(c.tokenizer, prompt + text, None, 2)["ids"]])
        features = {"token_embeddings": double(input_ids=ids).last_hidden_state,
                    "attention_mask": torch.ones_like(ids)}
        if prompt:
            features["prompt_length"] = len(encode(c.tokenizer, prompt, None, 2)["ids"]) - 1
        features = pool(features)
        for module in chain:
            features = module(features)
        return nn.functional.normalize(features["sentence_embedding"], dim=-1)[0]

    c.add_cases(lambda ids, types, pair: outputs(model, ids, types, True))
    with torch.no_grad():
        for number, (text, text_b) in enumerate(TEXTS):
            if text_b is None:
                c.tensors[f"case{number:02d}.embedding"] = embed(text, "").float()
                c.tensors[f"case{number:02d}.embedding.query"] = embed(text, PROMPTS["query"]).float()
    model.save_pretrained(c.directory)
    base = "sentence_transformers."
    listed = [("", base + "base.modules.transformer.Transformer"),
              ("1_Pooling", base + "sentence_transformer.modules.pooling.Pooling")]
    (c.directory / "1_Pooling").mkdir()
    pool.save(str(c.directory / "1_Pooling"))
    for folder, module in modules:
        (c.directory / folder).mkdir()
        module.save(str(c.directory / folder))
        listed.append((folder, f"{type(module).__module__}.{type(module).__name__}"))
    listed.append(("9_Normalize", base + "base.modules.normalize.Normalize"))
    c.write_json("modules.json", [{"idx": i, "name": str(i), "path": path, "type": kind}
                                  for i, (path, kind) in enumerate(listed)])
    c.write_json("sentence_bert_config.json", {"max_seq_length": LIMIT, "do_lower_case": False})
    c.write_json("config_sentence_transformers.json",
                 {"prompts": PROMPTS, "default_prompt_name": None, "similarity_fn_name": "dot"})
    c.finish(json.loads((c.directory / "config.json").read_text()))


def sentences():
    hidden = SMALL["hidden_size"]
    sentence("sentence-modules", "weightedmean and lasttoken, Dense, LayerNorm, Dense, Normalize", 20,
             ["weightedmean", "lasttoken"], True,
             [("2_Dense", Dense(2 * hidden, 12, activation_function=nn.GELU())),
              ("3_LayerNorm", LayerNorm(12)),
              ("4_Dense", Dense(12, 10, bias=False, activation_function=nn.Identity()))])
    sentence("sentence-prompts", "prompts left out of every pooling", 30,
             ["cls", "weightedmean", "max", "mean", "mean_sqrt_len_tokens", "lasttoken"], False, [])


if __name__ == "__main__":
    torch.set_num_threads(1)
    families()
    sentences()
