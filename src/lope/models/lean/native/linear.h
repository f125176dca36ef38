// x Wᵀ + b: weights are read as they are stored and become float32 in registers, for a pass waits for weights.
//
// Weights lie in panels of 16 outputs, input by input: [panel][input][16]. Each output is one sum in the order of its
// inputs, whatever else is in the pass and whichever thread computes it: a row's bits depend on that row alone.
#pragma once
#include <algorithm>
#include <type_traits>
#include "vectors.h"

constexpr int GROUP = 32;   // inputs that share a scale and a minimum
constexpr int CHUNK = 256;  // inputs of a panel that are decoded together for many rows: 16 KiB
constexpr int TILE = 64;    // rows that read one decoded chunk after another
constexpr int BLOCK = 6;    // rows whose sums fill the registers
constexpr int FEW = 8;      // so few rows decode weights as they go, in one block or two

// INT8 and INT4 are scale * code + minimum by groups, ROW8 is scale * code by rows
enum Kind : int32_t { FLOAT32, BFLOAT16, FLOAT16, ROW8, INT8, INT4 };

// panels: as above, padded with zeros to whole panels. scales, minima: float16 [panel][group][16] of INT8 and INT4,
// minima may be absent. row_scales: [outputs] of ROW8. bias: [outputs], or absent.
struct Weight {
    int32_t kind, outputs, inputs;
    const void* panels;
    const uint16_t* scales;
    const uint16_t* minima;
    const float* row_scales;
    const float* bias;
    int64_t count() const { return (outputs + PANEL - 1) / PANEL; }
};

// out [rows, outputs] = x [rows, inputs] Wᵀ + bias + residual; `residual` may be `out` itself, or absent
struct Product {
    const Weight& weight;
    const float* x;
    float* out;
    const float* residual;
    int64_t rows;

    Product part(int64_t begin, int64_t end) const {
        const float* beside = residual ? residual + begin * weight.outputs : nullptr;
        return {weight, x + begin * weight.inputs, out + begin * weight.outputs, beside, end - begin};
    }
};

template <int KIND>
struct Reader {
    const Weight& weight;
    int64_t panel;
    Vector scale[PARTS], minimum[PARTS];

    void group(int64_t number) {
        if constexpr (KIND == INT8 || KIND == INT4) {
            int64_t at = (panel * (weight.inputs / GROUP) + number) * PANEL;
            UNROLL for (int part = 0; part < PARTS; part++) {
                scale[part] = from_float16(weight.scales + at + part * LANES);
                minimum[part] = weight.minima ? from_float16(weight.minima + at + part * LANES) : Vector{};
            }
        }
    }

    void read(int64_t input, Vector out[PARTS]) const {
        int64_t at = (panel * weight.inputs + input) * PANEL;
        if constexpr (KIND == INT4) from_halves((const uint8_t*)weight.panels + at / 2, out);
        UNROLL for (int part = 0; part < PARTS; part++) {
            int64_t from = at + part * LANES;
            if constexpr (KIND == FLOAT32) out[part] = load((const float*)weight.panels + from);
            if constexpr (KIND == BFLOAT16) out[part] = from_bfloat16((const uint16_t*)weight.panels + from);
            if constexpr (KIND == FLOAT16) out[part] = from_float16((const uint16_t*)weight.panels + from);
            if constexpr (KIND == ROW8 || KIND == INT8) out[part] = from_int8((const int8_t*)weight.panels + from);
            if constexpr (KIND == INT8 || KIND == INT4) out[part] = fma(scale[part], out[part], minimum[part]);
        }
    }
};

__attribute__((noinline)) static void finish(const Product& job, int64_t panel, int64_t row, const Vector sums[PARTS]) {
    const Weight& weight = job.weight;
    const int64_t first = panel * PANEL, count = std::min<int64_t>(PANEL, weight.outputs - first);
    const int64_t at = row * weight.outputs + first;
    if (count == PANEL) {
        UNROLL for (int part = 0; part < PARTS; part++) {
            const int64_t shift = part * LANES;
            Vector value = sums[part];
            if (weight.kind == ROW8) value *= load(weight.row_scales + first + shift);
            if (weight.bias) value += load(weight.bias + first + shift);
            if (job.residual) value += load(job.residual + at + shift);
            store(job.out + at + shift, value);
        }
        return;
    }
    float values[PANEL];
    std::memcpy(values, sums, sizeof values);
    for (int64_t i = 0; i < count; i++) {
        float value = values[i];
        if (weight.kind == ROW8) value *= weight.row_scales[first + i];
        if (weight.bias) value += weight.bias[first + i];
        if (job.residual) value += job.residual[at + i];
        job.out[at + i] = value;
    }
}

// R rows of P panels, 1 or 2: few rows leave registers for a second panel, which hides the latency of adding
template <int KIND, int R, int P>
__attribute__((noinline)) void decode_and_add(const Product& job, int64_t panel) {
    const int64_t inputs = job.weight.inputs;
    Reader<KIND> one{job.weight, panel, {}, {}}, two{job.weight, panel + 1, {}, {}};
    Vector sums[P][R][PARTS] = {};
    for (int64_t begin = 0; begin < inputs; begin += GROUP) {
        one.group(begin / GROUP);
        if constexpr (P == 2) two.group(begin / GROUP);
        const int64_t end = std::min(begin + GROUP, inputs);
        for (int64_t input = begin; input < end; input++) {
            Vector weights[P][PARTS];
            one.read(input, weights[0]);
            if constexpr (P == 2) two.read(input, weights[1]);
            UNROLL for (int row = 0; row < R; row++) {
                const Vector x = splat(job.x[row * inputs + input]);
                UNROLL for (int p = 0; p < P; p++)
                    UNROLL for (int part = 0; part < PARTS; part++)
                        sums[p][row][part] = fma(x, weights[p][part], sums[p][row][part]);
            }
        }
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int row = 0; row < R; row++) {
            Vector done[PARTS];  // a copy: sums whose address were taken would live in memory
            UNROLL for (int part = 0; part < PARTS; part++) done[part] = sums[p][row][part];
            finish(job, panel + p, row, done);
        }
}

// Calls function(constant) for 1 <= rows <= R
template <int R, class Function>
inline void with_constant(int64_t rows, const Function& function) {
    if constexpr (R > 1)
        if (rows < R) return with_constant<R - 1>(rows, function);
    function(std::integral_constant<int, R>());
}

template <int KIND>
inline void few_rows(const Product& job, int64_t begin, int64_t end) {
    with_constant<BLOCK>(job.rows, [&](auto rows) {
        constexpr int together = rows <= 2 ? 2 : 1;
        int64_t panel = begin;
        for (; panel + together <= end; panel += together) decode_and_add<KIND, rows, together>(job, panel);
        for (; panel < end; panel++) decode_and_add<KIND, rows, 1>(job, panel);
    });
}

// Adds `count` inputs of R rows to sums [R][16] that are kept between chunks
template <int R>
__attribute__((noinline)) void add_block(const float* x, int64_t stride, const float* decoded, int64_t count, float* kept) {
    Vector sums[R][PARTS];
    UNROLL for (int row = 0; row < R; row++)
        UNROLL for (int part = 0; part < PARTS; part++) sums[row][part] = load(kept + row * PANEL + part * LANES);
    for (int64_t input = 0; input < count; input++) {
        Vector weights[PARTS];
        UNROLL for (int part = 0; part < PARTS; part++) weights[part] = load(decoded + input * PANEL + part * LANES);
        UNROLL for (int row = 0; row < R; row++) {
            const Vector each = splat(x[row * stride + input]);
            UNROLL for (int part = 0; part < PARTS; part++) sums[row][part] = fma(each, weights[part], sums[row][part]);
        }
    }
    UNROLL for (int row = 0; row < R; row++)
        UNROLL for (int part = 0; part < PARTS; part++) store(kept + row * PANEL + part * LANES, sums[row][part]);
}

// In blocks of even size: a small last one would wait for its own sums
inline void add_rows(int64_t rows, const float* x, int64_t stride, const float* decoded, int64_t count, float* kept) {
    for (int64_t blocks = (rows + BLOCK - 1) / BLOCK; blocks; blocks--) {
        const int64_t some = (rows + blocks - 1) / blocks;
        with_constant<BLOCK>(some, [&](auto block) { add_block<block>(x, stride, decoded, count, kept); });
        rows -= some, x += some * stride, kept += some * PANEL;
    }
}

// Inputs [begin, begin + count) of a panel, `begin` a multiple of GROUP -> float32 [count][16]
template <int KIND>
inline void decode(const Weight& weight, int64_t panel, int64_t begin, int64_t count, float* decoded) {
    Reader<KIND> reader{weight, panel, {}, {}};
    for (int64_t start = 0; start < count; start += GROUP) {
        reader.group((begin + start) / GROUP);
        const int64_t end = std::min<int64_t>(start + GROUP, count);
        for (int64_t input = start; input < end; input++) {
            Vector weights[PARTS];
            reader.read(begin + input, weights);
            UNROLL for (int part = 0; part < PARTS; part++) store(decoded + input * PANEL + part * LANES, weights[part]);
        }
    }
}

template <int KIND>
__attribute__((noinline)) void many_rows(const Product& job, int64_t panel) {
    const int64_t inputs = job.weight.inputs;
    alignas(64) float decoded[CHUNK * PANEL], kept[TILE * PANEL];
    for (int64_t top = 0; top < job.rows; top += TILE) {
        const int64_t rows = std::min<int64_t>(TILE, job.rows - top);
        std::fill(kept, kept + rows * PANEL, 0.0f);
        for (int64_t begin = 0; begin < inputs; begin += CHUNK) {
            const int64_t count = std::min<int64_t>(CHUNK, inputs - begin);
            decode<KIND>(job.weight, panel, begin, count, decoded);
            add_rows(rows, job.x + top * inputs + begin, inputs, decoded, count, kept);
        }
        for (int64_t row = 0; row < rows; row++) {
            Vector sums[PARTS];
            std::memcpy(sums, kept + row * PANEL, sizeof sums);
            finish(job, panel, top + row, sums);
        }
    }
}

template <int KIND>
inline void panels(const Product& job, int64_t begin, int64_t end) {
    if (job.rows <= BLOCK) return few_rows<KIND>(job, begin, end);
    if (job.rows <= FEW) {
        const Product first = job.part(0, job.rows / 2), second = job.part(job.rows / 2, job.rows);
        few_rows<KIND>(first, begin, end);
        return few_rows<KIND>(second, begin, end);
    }
    for (int64_t panel = begin; panel < end; panel++) many_rows<KIND>(job, panel);
}

// Called by all threads of a team; each takes panels until none is left. Ends with a barrier.
inline void multiply(const Product& job) {
    const int64_t count = job.weight.count(), share = std::max<int64_t>(2, std::min<int64_t>(32, count / 16 * 2));
#pragma omp for schedule(dynamic)
    for (int64_t begin = 0; begin < count; begin += share) {
        const int64_t end = std::min(begin + share, count);
        switch (job.weight.kind) {
            case FLOAT32: panels<FLOAT32>(job, begin, end); break;
            case BFLOAT16: panels<BFLOAT16>(job, begin, end); break;
            case FLOAT16: panels<FLOAT16>(job, begin, end); break;
            case ROW8: panels<ROW8>(job, begin, end); break;
            case INT8: panels<INT8>(job, begin, end); break;
            case INT4: panels<INT4>(job, begin, end); break;
        }
    }
}
