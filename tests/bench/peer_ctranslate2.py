"""peer_ctranslate2.py: "ctranslate2" in float32, and "ctranslate2-int8" with quantized weights and activations.

Its own converter makes the model from the same directory; `convert`, called once:

    peer_ctranslate2.py ctranslate2 convert 1 FOLDER MODEL

Its best settings: one batch on all threads or a batch for each thread (`prepare` tries both).
"""
import os
import shutil

import peers

CONVERTED = os.path.join(peers.folder, "ctranslate2")
INT8 = peers.engine_name.endswith("-int8")


def convert():
    from ctranslate2.converters import TransformersConverter

    shutil.rmtree(CONVERTED, ignore_errors=True)
    TransformersConverter(peers.model).convert(CONVERTED + ".new", force=True)
    os.replace(CONVERTED + ".new", CONVERTED)


class Ctranslate2(peers.Tokens):
    def open(self, streams, threads):
        import ctranslate2

        self.make_storage = ctranslate2.StorageView.from_array
        self.encoder = ctranslate2.Encoder(CONVERTED, device="cpu", compute_type="int8" if INT8 else "float32",
                                           inter_threads=streams, intra_threads=threads)

    def hidden(self, ids, mask):
        lengths = mask.sum(1).astype(peers.np.int32)
        output = self.encoder.forward_batch(
            self.make_storage(ids.astype(peers.np.int32)), self.make_storage(lengths))
        return peers.np.array(output.last_hidden_state)

    def about(self):
        import ctranslate2

        return ctranslate2.__version__, {"compute type": self.encoder.compute_type}


if peers.measure == "convert":
    convert()
else:
    peers.main(Ctranslate2)
