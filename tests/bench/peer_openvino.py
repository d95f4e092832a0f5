"""peer_openvino.py: "openvino" in float32, and "openvino-bf16", which computes in bfloat16.

It reads the ONNX file. Its own default would be bfloat16 wherever the processor has it, so that the precision is
always said. Its best settings: one stream of all threads or a stream for each thread (`prepare` tries both).
Where it does not report bfloat16 among its capabilities, it would compute "bf16" in float32; that is an error here.
"""
import sys
import threading

import peers

PRECISION = "bf16" if peers.engine_name.endswith("-bf16") else "f32"


class Openvino(peers.Tokens):
    def open(self, streams, threads):
        import openvino

        core = openvino.Core()
        self.capabilities = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        if PRECISION == "bf16" and "BF16" not in self.capabilities:
            sys.exit(f"openvino: this processor computes no bfloat16, only {self.capabilities}")
        self.compiled = core.compile_model(peers.onnx_file(), "CPU", {
            "PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT", "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": streams * threads, "INFERENCE_PRECISION_HINT": PRECISION})
        self.requests = threading.local()  # a request serves one call at a time

    def hidden(self, ids, mask):
        if not hasattr(self.requests, "mine"):
            self.requests.mine = self.compiled.create_infer_request()
        result = self.requests.mine.infer(
            {"input_ids": ids, "attention_mask": mask, "token_type_ids": peers.np.zeros_like(ids)},
            share_inputs=True, share_outputs=True)
        return result[0]

    def about(self):
        import openvino

        precision = self.compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        return openvino.__version__, {"precision": precision, "capabilities": " ".join(self.capabilities)}


peers.main(Openvino)
