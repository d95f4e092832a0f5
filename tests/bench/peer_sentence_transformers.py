"""peer_sentence_transformers.py: sentence-transformers on torch, as its users call it: encode() of a list, which
sorts by length itself."""
import os

import peers

os.environ["HF_HUB_OFFLINE"] = "1"  # the model is a directory; nothing is asked of a network


class SentenceTransformers:
    SETTINGS = peers.BATCHES

    def __init__(self, setting):
        import sentence_transformers
        import torch

        torch.set_num_threads(peers.threads)
        self.model = sentence_transformers.SentenceTransformer(peers.model, device="cpu")

    def lengths(self, texts):
        return [len(ids) for ids in self.model.tokenizer(
            texts, truncation=True, max_length=self.model.max_seq_length)["input_ids"]]

    def embed(self, texts, setting):
        return self.model.encode(texts, batch_size=setting["batch"], show_progress_bar=False)

    def one(self, text):
        self.model.encode(text, show_progress_bar=False)

    def about(self):
        import sentence_transformers
        import torch
        import transformers

        return sentence_transformers.__version__, {"torch": torch.__version__, "transformers": transformers.__version__}


peers.main(SentenceTransformers)
