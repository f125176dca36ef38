// x Wᵀ + b: weights are read as they are stored and become float32 in registers, for a pass waits for weights.
//
// Weights lie in panels of 16 outputs, input by input: [panel][input][16]. Each output is one sum in the order of its
// inputs (of codes: group by group, each scaled when it is whole), whatever else is in the pass and whichever thread
// computes it: a row's bits depend on that row alone.
#pragma once
#include <algorithm>
#include <type_traits>
#include "vectors.h"

constexpr int CHUNK = 256;  // inputs of a panel that are decoded together for many rows: 16 KiB
constexpr int FINEST = 16;  // inputs of the smallest group that shares a scale
constexpr int TILE = 64;    // rows that read one decoded chunk after another
constexpr int BLOCK = 6;    // rows whose sums fill the registers
constexpr int FEW = 12;     // so few rows decode weights as they go, in one block or two

// INT8 and INT4 are scale * code + minimum by groups, ROW8 is scale * code by rows
enum Kind : int32_t { FLOAT32, BFLOAT16, FLOAT16, ROW8, INT8, INT4 };

// panels: as above, padded with zeros to whole panels. scales, minima: [panel][group][16] of INT8 and INT4, float32
// where they are `wide`, else float16; minima may be absent. group: inputs that share one, 16 or 32, or 0. row_scales:
// [outputs] of ROW8. bias: [outputs], or absent.
struct Weight {
    int32_t kind, outputs, inputs, group, wide;
    const void *panels, *scales, *minima;
    const float *row_scales, *bias;

    int64_t count() const { return (outputs + PANEL - 1) / PANEL; }
    int64_t groups() const { return group ? inputs / group : 0; }
    Vector factors(const void* of, int64_t at) const {
        return wide ? load((const float*)of + at) : from_float16((const uint16_t*)of + at);
    }
};

// out [rows, outputs] = x [rows, inputs] Wᵀ + bias + residual; `residual` may be `out` itself, or absent
struct Product {
    const Weight& weight;
    const float* x;
    float* out;
    const float* residual;
    int64_t rows;
    float* group_sums;  // [rows, groups], room for the sums of x that minima are multiplied with

    Product part(int64_t begin, int64_t end) const {
        const float* beside = residual ? residual + begin * weight.outputs : nullptr;
        float* sums = group_sums + begin * weight.groups();
        return {weight, x + begin * weight.inputs, out + begin * weight.outputs, beside, end - begin, sums};
    }
};

template <int KIND>
constexpr bool grouped = KIND == INT8 || KIND == INT4;

// The numbers of a panel at one input; codes without their scale
template <int KIND>
inline void read(const Weight& weight, int64_t panel, int64_t input, Vector out[PARTS]) {
    const int64_t column = panel * weight.inputs + input, at = column * PANEL;
    if constexpr (KIND == INT4) from_halves((const uint8_t*)weight.panels + column * (PANEL / 2), out);
    UNROLL for (int part = 0; part < PARTS; part++) {
        const int64_t from = at + part * LANES;
        if constexpr (KIND == FLOAT32) out[part] = load((const float*)weight.panels + from);
        if constexpr (KIND == BFLOAT16) out[part] = from_bfloat16((const uint16_t*)weight.panels + from);
        if constexpr (KIND == FLOAT16) out[part] = from_float16((const uint16_t*)weight.panels + from);
        if constexpr (KIND == ROW8 || KIND == INT8) out[part] = from_int8((const int8_t*)weight.panels + from);
    }
}

// Adds what a whole group is worth: scale * sum of code * x, and minimum * sum of x
template <int R>
inline __attribute__((always_inline)) void close(const Vector (&group)[R][PARTS], const Vector scale[PARTS],
                                                 const Vector* minimum, const float* group_sums, int64_t stride,
                                                 Vector (&total)[R][PARTS]) {
    UNROLL for (int row = 0; row < R; row++)
        UNROLL for (int part = 0; part < PARTS; part++) {
            total[row][part] = fma(scale[part], group[row][part], total[row][part]);
            if (minimum) total[row][part] = fma(minimum[part], splat(group_sums[row * stride]), total[row][part]);
        }
}

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

// Adds inputs [begin, end) of R rows times P panels
template <int KIND, int R, int P>
inline __attribute__((always_inline)) void add_inputs(const Product& job, int64_t panel, int64_t begin, int64_t end,
                                                      Vector (&sums)[P][R][PARTS]) {
    for (int64_t input = begin; input < end; input++) {
        Vector weights[P][PARTS];
        UNROLL for (int p = 0; p < P; p++) read<KIND>(job.weight, panel + p, input, weights[p]);
        UNROLL for (int row = 0; row < R; row++) {
            const Vector x = splat(job.x[row * job.weight.inputs + input]);
            UNROLL for (int p = 0; p < P; p++)
                UNROLL for (int part = 0; part < PARTS; part++)
                    sums[p][row][part] = fma(x, weights[p][part], sums[p][row][part]);
        }
    }
}

// R rows of P panels, 1 or 2: few rows leave registers for a second panel, which hides the latency of adding
template <int KIND, int R, int P>
__attribute__((noinline)) void decode_and_add(const Product& job, int64_t panel) {
    const Weight& weight = job.weight;
    const int64_t inputs = weight.inputs, groups = weight.groups(), size = weight.group;
    Vector total[P][R][PARTS] = {};
    if constexpr (grouped<KIND>) {
        for (int64_t number = 0; number < groups; number++) {
            Vector group[P][R][PARTS] = {};
            add_inputs<KIND, R, P>(job, panel, number * size, (number + 1) * size, group);
            UNROLL for (int p = 0; p < P; p++) {
                const int64_t at = ((panel + p) * groups + number) * PANEL;
                Vector scale[PARTS], minimum[PARTS];
                UNROLL for (int part = 0; part < PARTS; part++) {
                    scale[part] = weight.factors(weight.scales, at + part * LANES);
                    if (weight.minima) minimum[part] = weight.factors(weight.minima, at + part * LANES);
                }
                close<R>(group[p], scale, weight.minima ? minimum : nullptr, job.group_sums + number, groups, total[p]);
            }
        }
    } else {
        add_inputs<KIND, R, P>(job, panel, 0, inputs, total);
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int row = 0; row < R; row++) {
            Vector done[PARTS];  // a copy: sums whose address were taken would live in memory
            UNROLL for (int part = 0; part < PARTS; part++) done[part] = total[p][row][part];
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

// Some inputs of a panel, read once for many rows
struct Chunk {
    alignas(64) float numbers[CHUNK * PANEL], scales[CHUNK / FINEST * PANEL], minima[CHUNK / FINEST * PANEL];
    int64_t begin, count;  // `begin` is a multiple of CHUNK
};

template <int KIND>
inline void decode(const Weight& weight, int64_t panel, Chunk& chunk) {
    for (int64_t input = 0; input < chunk.count; input++) {
        Vector numbers[PARTS];
        read<KIND>(weight, panel, chunk.begin + input, numbers);
        float* at = chunk.numbers + input * PANEL;
        UNROLL for (int part = 0; part < PARTS; part++) store(at + part * LANES, numbers[part]);
    }
    if constexpr (grouped<KIND>) {
        const int64_t at = (panel * weight.groups() + chunk.begin / weight.group) * PANEL;
        for (int64_t i = 0; i < chunk.count / weight.group * PANEL; i += LANES) {
            store(chunk.scales + i, weight.factors(weight.scales, at + i));
            if (weight.minima) store(chunk.minima + i, weight.factors(weight.minima, at + i));
        }
    }
}

template <int R>
inline __attribute__((always_inline)) void add_decoded(const float* x, int64_t stride, const float* numbers,
                                                       int64_t count, Vector (&sums)[R][PARTS]) {
    for (int64_t input = 0; input < count; input++) {
        Vector weights[PARTS];
        UNROLL for (int part = 0; part < PARTS; part++) weights[part] = load(numbers + input * PANEL + part * LANES);
        UNROLL for (int row = 0; row < R; row++) {
            const Vector each = splat(x[row * stride + input]);
            UNROLL for (int part = 0; part < PARTS; part++) sums[row][part] = fma(each, weights[part], sums[row][part]);
        }
    }
}

// Adds a chunk of R rows, from `row` on, to sums [R][16] that are kept between chunks
template <int KIND, int R>
__attribute__((noinline)) void add_block(const Product& job, const Chunk& chunk, int64_t row, float* kept) {
    const int64_t inputs = job.weight.inputs;
    const float* x = job.x + row * inputs + chunk.begin;
    Vector total[R][PARTS];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int part = 0; part < PARTS; part++) total[r][part] = load(kept + r * PANEL + part * LANES);
    if constexpr (grouped<KIND>) {
        const int64_t groups = job.weight.groups(), size = job.weight.group;
        const float* group_sums = job.group_sums + row * groups + chunk.begin / size;
        for (int64_t number = 0; number < chunk.count / size; number++) {
            Vector group[R][PARTS] = {}, scale[PARTS], minimum[PARTS];
            add_decoded<R>(x + number * size, inputs, chunk.numbers + number * size * PANEL, size, group);
            UNROLL for (int part = 0; part < PARTS; part++) {
                scale[part] = load(chunk.scales + number * PANEL + part * LANES);
                if (job.weight.minima) minimum[part] = load(chunk.minima + number * PANEL + part * LANES);
            }
            close<R>(group, scale, job.weight.minima ? minimum : nullptr, group_sums + number, groups, total);
        }
    } else {
        add_decoded<R>(x, inputs, chunk.numbers, chunk.count, total);
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int part = 0; part < PARTS; part++) store(kept + r * PANEL + part * LANES, total[r][part]);
}

// In blocks of even size: a small last one would wait for its own sums
template <int KIND>
inline void add_rows(const Product& job, const Chunk& chunk, int64_t row, int64_t rows, float* kept) {
    for (int64_t blocks = (rows + BLOCK - 1) / BLOCK; blocks; blocks--) {
        const int64_t some = (rows + blocks - 1) / blocks;
        with_constant<BLOCK>(some, [&](auto block) { add_block<KIND, block>(job, chunk, row, kept); });
        rows -= some, row += some, kept += some * PANEL;
    }
}

template <int KIND>
__attribute__((noinline)) void many_rows(const Product& job, int64_t panel) {
    const int64_t inputs = job.weight.inputs;
    Chunk chunk;
    alignas(64) float kept[TILE * PANEL];
    for (int64_t top = 0; top < job.rows; top += TILE) {
        const int64_t rows = std::min<int64_t>(TILE, job.rows - top);
        std::fill(kept, kept + rows * PANEL, 0.0f);
        for (chunk.begin = 0; chunk.begin < inputs; chunk.begin += CHUNK) {
            chunk.count = std::min<int64_t>(CHUNK, inputs - chunk.begin);
            decode<KIND>(job.weight, panel, chunk);
            add_rows<KIND>(job, chunk, top, rows, kept);
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

// The sums of x [inputs] by groups
inline void sum_groups(const float* x, int64_t size, int64_t groups, float* out) {
    for (int64_t number = 0; number < groups; number++, x += size) {
        Vector total = load(x);
        for (int64_t i = LANES; i < size; i += LANES) total += load(x + i);
        out[number] = sum(total);
    }
}

// Called by all threads of a team; each takes panels until none is left. Ends with a barrier.
inline void multiply(const Product& job) {
    if (job.weight.minima) {
        const int64_t groups = job.weight.groups(), size = job.weight.group;
#pragma omp for
        for (int64_t row = 0; row < job.rows; row++)
            sum_groups(job.x + row * job.weight.inputs, size, groups, job.group_sums + row * groups);
    }
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
