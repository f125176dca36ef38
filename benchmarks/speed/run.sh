#!/bin/bash
# The runs behind every figure on speed. usage: bash benchmarks/speed/run.sh mini | spec_bench | peers
# Each writes results.json and report.html into benchmarks/speed/NAME, and goes on where it was interrupted.
set -euo pipefail
cd "$(dirname "$0")/../.."
lope="${LOPE:-.venv/bin/lope}"
data="${LOPE_DATA:-../shared/data}"
out="${OUT:-benchmarks/speed}"

case "${1:-}" in
  mini) # n-gram drafts against plain decoding on the built-in suite (lope calibrate first)
    "$lope" bench speed --out "$out/mini" --config "drafter=none" --config "drafter=ngram,policy=calibrated" \
      --config "drafter=ngram,policy=fixed:depth=4" ;;
  spec_bench) # what `calibrated` makes of n-gram drafts, over more prompts, without peers
    "$lope" bench speed --out "$out/spec_bench" --suite "$data/spec_bench.jsonl.gz" --per-category 4 \
      --max-new-tokens 128 --config "drafter=none" --config "drafter=ngram,policy=calibrated" --config "drafter=ngram" ;;
  peers) # the same beside the peers (make peers first)
    "$lope" bench speed --out "$out/peers" --suite "$data/spec_bench.jsonl.gz" --per-category 4 \
      --max-new-tokens 128 --config "drafter=none" --config "drafter=ngram,policy=calibrated" \
      --against transformers,llama.cpp,vllm,openvino ;;
  *)
    echo "usage: bash benchmarks/speed/run.sh mini | spec_bench | peers" >&2
    exit 2 ;;
esac
