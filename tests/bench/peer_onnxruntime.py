"""peer_onnxruntime.py: "onnxruntime" in float32, and "onnxruntime-int8" with dynamically quantized weights.

Its best settings: all graph optimizations, one operation at a time, all threads within it or a batch for each
thread (`prepare` tries both). The int8 model has scales per channel and signed weights, which is what its
documentation recommends for processors with VNNI; `quantize`, called once, makes it:

    peer_onnxruntime.py onnxruntime-int8 quantize 1 FOLDER MODEL
"""
import os

import peers

INT8 = os.path.join(peers.folder, "all-minilm-l6-v2-int8.onnx")


def quantize():
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(peers.onnx_file(), INT8 + ".new", per_channel=True, weight_type=QuantType.QInt8)
    os.replace(INT8 + ".new", INT8)


class Onnxruntime(peers.Tokens):
    def open(self, streams, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        path = INT8 if peers.engine_name.endswith("-int8") else peers.onnx_file()
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def hidden(self, ids, mask):
        (hidden,) = self.session.run(
            None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": peers.np.zeros_like(ids)})
        return hidden

    def about(self):
        import onnxruntime
        import tokenizers

        return onnxruntime.__version__, {"tokenizers": tokenizers.__version__}


if peers.measure == "quantize":
    quantize()
else:
    peers.main(Onnxruntime)
