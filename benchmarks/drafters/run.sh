#!/bin/bash
# The tables on trained drafters. usage: bash benchmarks/drafters/run.sh PART
#   worth          chains of both drafters, copies, and both together, beside plain decoding, greedy
#   trees          trees of 16 and 32 nodes, greedy and at temperature 0.7
#   widest         the trees of 32 nodes alone, greedy; a second word (eagle, standalone) runs one drafter's
#   mini           trees on lope's own suite: a drafter made from nothing (NOTHING) beside copies
#   shapes         the same drafter in chains, independent chains, RSD-C and RSD-S at equal budgets, two temperatures
#   depths         chains that are as deep as the trees of 6 and of 21 nodes, to compare at equal depth
#   losses         KLD, TVD, TVD++ from the same weights, the same steps
#   vocabularies   a whole head and what trimming leaves of it, by what was counted
#   tables         what the runs found, as Markdown
# Each goes on where it was interrupted. DRAFTER (an eagle), STANDALONE, NOTHING, SET, WHOLE (a stand-alone drafter with a
# whole head), TEXT name inputs; big files go to WORK, figures to OUT. PER_CATEGORY and TOKENS size the runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
lope="${LOPE:-.venv/bin/lope}"
python="${PYTHON:-.venv/bin/python}"
data="${LOPE_DATA:-../shared/data}"
out="${OUT:-benchmarks/drafters/smollm2}"
work="${WORK:-/tmp/lope-drafters}"
drafter="${DRAFTER:-src/lope/drafters/shipped/smollm2-eagle}"
standalone="${STANDALONE:-src/lope/drafters/shipped/smollm2-standalone}"
suite=(--suite "$data/spec_bench.jsonl.gz" --per-category "${PER_CATEGORY:-1}" --max-new-tokens "${TOKENS:-64}")
mkdir -p "$work"

fixed() { # name, drafter, shape
  echo "name=$1,drafter=$2,shape=$3,policy=fixed"
}

beams() { # name, drafter
  fixed "$1 rsd_s 4x4" "$2" rsd_s:width=4,depth=4
  fixed "$1 rsd_s 8x4" "$2" rsd_s:width=8,depth=4
}

worth() {
  local beside=() line
  while read -r line; do beside+=(--with "$line"); done <<EOF
drafter=ngram,policy=calibrated
drafter=ngram,policy=fixed
name=eagle + ngram calibrated,drafter=hybrid:drafter=eagle:path=$drafter,policy=calibrated
$(fixed "eagle + ngram 1" "hybrid:drafter=eagle:path=$drafter" chain:depth=1)
$(fixed "eagle + ngram 2" "hybrid:drafter=eagle:path=$drafter" chain:depth=2)
$(fixed "standalone 2" "standalone:path=$standalone" chain:depth=2)
EOF
  "$lope" drafter eval "$drafter" "${suite[@]}" --shape chain --depth 1 --depth 2 --depth 3 "${beside[@]}" \
    --out "$work/worth" --json > "$out/worth.json"
}

mini() {
  local configs=() line
  while read -r line; do configs+=(--config "$line"); done <<EOF
drafter=none
drafter=ngram,policy=fixed
$(beams "from nothing" "standalone:path=$NOTHING")
$(beams standalone "standalone:path=$standalone")
$(beams eagle "eagle:path=$drafter")
EOF
  "$lope" bench speed --max-new-tokens "${TOKENS:-64}" "${configs[@]}" --out "$work/mini" --json > "$out/mini.json"
}

trees() {
  local configs=() line at
  while read -r line; do configs+=(--config "$line"); done <<EOF
$(beams eagle "eagle:path=$drafter")
$(beams standalone "standalone:path=$standalone")
EOF
  for at in 0 0.7; do
    "$lope" bench speed "${suite[@]}" --temperature "$at" "${configs[@]}" --out "$work/trees-$at" --json \
      > "$out/trees-$at.json"
  done
}

widest() { # each drafter writes a file of its own, so that they can run side by side
  local name path
  for name in ${1:-eagle standalone}; do
    [ "$name" = eagle ] && path="$drafter" || path="$standalone"
    "$lope" bench speed "${suite[@]}" --config "$(fixed "$name rsd_s 8x4" "$name:path=$path" rsd_s:width=8,depth=4)" \
      --out "$work/widest-$name" --json > "$out/widest-$name.json"
  done
}

shapes() { # budgets 6, 10, 14, 21, 30: a chain as long as the budget, then trees; those of 6 and 21 are equally deep
  local configs=() budget part
  while read -r budget chains branching width; do
    for part in "chain $budget=chain:depth=$budget" "independent $budget=independent:$chains" \
      "rsd_c $budget=rsd_c:branching=$branching" "rsd_s $budget=rsd_s:$width"; do
      configs+=(--config "name=${part%%=*},drafter=eagle:path=$drafter,shape=${part#*=},policy=fixed")
    done
  done <<'EOF'
6 chains=3,depth=2 2-2 width=3,depth=2
10 chains=5,depth=2 2-2-1 width=5,depth=2
14 chains=7,depth=2 2-2-2 width=7,depth=2
21 chains=7,depth=3 3-2-2 width=7,depth=3
30 chains=6,depth=5 2-2-2-2 width=6,depth=5
EOF
  for temperature in 0.3 1.0; do
    "$lope" bench speed "${suite[@]}" --temperature "$temperature" "${configs[@]}" --out "$work/shapes-$temperature" \
      --json > "$out/shapes-$temperature.json"
  done
}

depths() { # chains as deep as the trees of 6 and of 21 nodes
  local temperature
  for temperature in 0.3 1.0; do
    "$lope" bench speed "${suite[@]}" --temperature "$temperature" \
      --config "$(fixed "chain 2 deep" "eagle:path=$drafter" chain:depth=2)" \
      --config "$(fixed "chain 3 deep" "eagle:path=$drafter" chain:depth=3)" \
      --out "$work/depths-$temperature" --json > "$out/depths-$temperature.json"
  done
}

losses() {
  local configs=() loss
  for loss in kld tvd tvd++; do
    "$lope" drafter train --kind eagle --init "$drafter" --set "$SET" --loss "$loss" --steps "${STEPS:-120}" --rows 2 \
      --learning-rate 0.0005 --evaluate-every 40 --out "$work/loss-$loss" --json > "$work/loss-$loss.json"
    for shape in chain:depth=3 chain:depth=5 rsd_s:width=4,depth=4; do
      configs+=(--config "name=$loss $shape,drafter=eagle:path=$work/loss-$loss,shape=$shape,policy=fixed")
    done
  done
  "$lope" bench speed "${suite[@]}" "${configs[@]}" --out "$work/losses" --json > "$out/losses.json"
}

vocabularies() {
  local size counts
  local from=(--set "$SET")
  evaluate() {
    "$lope" drafter eval "$work/$1" "${suite[@]}" --shape chain --depth 3 --with none --out "$work/eval-$1" --json \
      > "$work/$1.json"
  }
  ln -sfn "$(realpath "$WHOLE")" "$work/vocab-49152-whole"
  evaluate vocab-49152-whole
  for size in 32768 16384 8192 4096; do
    for counts in target text draft; do
      [ "$counts" = target ] || [ "$size" = 4096 ] || continue
      [ "$counts" = text ] && from=(--text "$TEXT") || from=(--set "$SET")
      [ -f "$work/vocab-$size-$counts/drafter.json" ] ||
        "$lope" drafter trim "$WHOLE" --vocab "$size" --counts "$counts" "${from[@]}" --out "$work/vocab-$size-$counts"
      evaluate "vocab-$size-$counts"
    done
  done
  "$python" benchmarks/drafters/tables.py gather "$work"/vocab-*.json > "$out/vocabularies.json"
}

case "${1:-}" in
  worth | trees | widest | mini | shapes | depths | losses | vocabularies) "$@" ;;
  tables) "$python" benchmarks/drafters/tables.py show "$out" ;;
  *)
    sed -n 2,13p "$0" >&2
    exit 2 ;;
esac
