// x Wᵀ + b: weights are read as they are stored and become float32 in registers, for a pass waits for weights.
//
// Weights lie in panels of 16 outputs, input by input: [panel][input][16]. Each output is one sum in the order of its
// inputs (of codes: group by group, each scaled when it is whole), whatever else is in the pass and whichever thread
// computes it: a row's bits depend on that row alone.
#pragma once
#include <algorithm>
#include <atomic>
#include <type_traits>
#include "vectors.h"

constexpr bool WIDE = LANES == PANEL;    // AVX-512: twice as many registers, each twice as wide
constexpr int BLOCK = WIDE ? 12 : 6;     // rows whose sums fill the registers ...
constexpr int ABREAST = WIDE ? 2 : 1;    // ... of so many panels
constexpr int CHUNK = 256 / ABREAST;     // inputs of such panels that are decoded together for many rows: 16 KiB
constexpr int FINEST = 16;               // inputs of the smallest group that shares a scale
constexpr int TILE = 60 / BLOCK;         // blocks of rows that read one decoded chunk after another
constexpr int FEW = 2 * BLOCK;           // so few rows decode weights as they go, in one block or two
constexpr int LEAST = FEW / 3;           // rows of the smallest block of more than a few, cut evenly
constexpr int TOGETHER = 4;              // the number of panels is a multiple of it

// INT8 and INT4 are scale * code + minimum by groups, ROW8 is scale * code by rows
enum Kind : int32_t { FLOAT32, BFLOAT16, FLOAT16, ROW8, INT8, INT4 };

// panels: as above, padded with zeros to a multiple of four. INT4: where registers are WIDE [panel][input / 8][16] words
// of eight inputs' codes, the first one lowest; else [panel][input][8] bytes, the codes of outputs 8 to 15 in their high
// halves. scales, minima: [panel][group][16] of INT8 and INT4, float32 where they are `wide`, else float16; minima may be
// absent. group: inputs that share one, 16 or 32, or 0. row_scales: [outputs] of ROW8. bias: [outputs], or absent.
struct Weight {
    int32_t kind, outputs, inputs, group, wide;
    const void *panels, *scales, *minima;
    const float *row_scales, *bias;

    int64_t count() const { return (outputs + PANEL * TOGETHER - 1) / (PANEL * TOGETHER) * TOGETHER; }
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

// Inputs whose codes are read at once
template <int KIND>
constexpr int STEP = KIND == INT4 && WIDE ? 8 : 1;

// The numbers of a panel at input `first` + `next`, next < STEP; codes without their scale
template <int KIND>
inline void read(const Weight& weight, int64_t panel, int64_t first, int next, Vector out[PARTS]) {
    const uint64_t at = uint64_t(panel * weight.inputs + first) / STEP<KIND> * PANEL;  // signed, it were no shift
    if constexpr (KIND == INT4) return from_halves(weight.panels, at, next, out);
    UNROLL for (int part = 0; part < PARTS; part++) {
        const uint64_t from = at + part * LANES;
        if constexpr (KIND == FLOAT32) out[part] = load((const float*)weight.panels + from);
        if constexpr (KIND == BFLOAT16) out[part] = from_bfloat16((const uint16_t*)weight.panels + from);
        if constexpr (KIND == FLOAT16) out[part] = from_float16((const uint16_t*)weight.panels + from);
        if constexpr (KIND == ROW8 || KIND == INT8) out[part] = from_int8((const int8_t*)weight.panels + from);
    }
}

// Bytes that an input takes in a panel, and how many inputs' are in a line of the cache
template <int KIND>
constexpr int BYTES = KIND == FLOAT32 ? 64 : KIND == BFLOAT16 || KIND == FLOAT16 ? 32 : KIND == INT4 ? 8 : 16;
constexpr int LINE = 64;

// Asks for the line in which a panel's numbers at `input` lie, where one begins there. (A function that is not inlined at
// once has no effect that GCC sees, and is left out.)
template <int KIND>
inline __attribute__((always_inline)) void expect(const Weight& weight, int64_t panel, int64_t input) {
    if ((uint64_t)input % (LINE / BYTES<KIND>) == 0)
        __builtin_prefetch((const char*)weight.panels + uint64_t(panel * weight.inputs + input) * BYTES<KIND>, 0, 3);
}

// Asks for a panel's scales and minima of group `number` and the next: float16 of two groups fill a line
inline __attribute__((always_inline)) void expect_factors(const Weight& weight, int64_t panel, int64_t number) {
    if (number % 2) return;
    const int64_t at = (panel * weight.groups() + number) * PANEL * (weight.wide ? 4 : 2);
    __builtin_prefetch((const char*)weight.scales + at, 0, 3);
    if (weight.minima) __builtin_prefetch((const char*)weight.minima + at, 0, 3);
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
    const int64_t first = panel * PANEL, count = std::min<int64_t>(PANEL, weight.outputs - first);  // below 1: padding
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

// Adds inputs [begin, end) of R rows times P panels, and asks for the same inputs of the panels `then`
template <int KIND, int R, int P>
inline __attribute__((always_inline)) void add_inputs(const Product& job, int64_t panel, int64_t then, int64_t begin,
                                                      int64_t end, Vector (&sums)[P][R][PARTS]) {
    for (int64_t input = begin; input < end; input += STEP<KIND>) {
        UNROLL for (int p = 0; p < P; p++) expect<KIND>(job.weight, then + p, input);
        UNROLL for (int next = 0; next < STEP<KIND>; next++) {
            Vector weights[P][PARTS];
            UNROLL for (int p = 0; p < P; p++) read<KIND>(job.weight, panel + p, input, next, weights[p]);
            UNROLL for (int row = 0; row < R; row++) {
                const Vector x = splat(job.x[row * job.weight.inputs + input + next]);
                UNROLL for (int p = 0; p < P; p++)
                    UNROLL for (int part = 0; part < PARTS; part++)
                        sums[p][row][part] = fma(x, weights[p][part], sums[p][row][part]);
            }
        }
    }
}

// R rows of P panels: few rows leave registers for more panels, which hide the latency of adding. `then`: the panels that
// this thread takes next, for the caches do not foresee where a panel begins
template <int KIND, int R, int P>
__attribute__((noinline)) void decode_and_add(const Product& job, int64_t panel, int64_t then) {
    const Weight& weight = job.weight;
    const int64_t inputs = weight.inputs, groups = weight.groups(), size = weight.group;
    Vector total[P][R][PARTS] = {};
    if constexpr (grouped<KIND>) {
        for (int64_t number = 0; number < groups; number++) {
            Vector group[P][R][PARTS] = {};
            add_inputs<KIND, R, P>(job, panel, then, number * size, (number + 1) * size, group);
            UNROLL for (int p = 0; p < P; p++) {
                expect_factors(weight, then + p, number);
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
        add_inputs<KIND, R, P>(job, panel, then, 0, inputs, total);
    }
    UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int row = 0; row < R; row++) {
            Vector done[PARTS];  // a copy: sums whose address were taken would live in memory
            UNROLL for (int part = 0; part < PARTS; part++) done[part] = total[p][row][part];
            finish(job, panel + p, row, done);
        }
}

// Calls function(constant) for LOW <= rows <= R
template <int R, int LOW = 1, class Function>
inline void with_constant(int64_t rows, const Function& function) {
    if constexpr (R > LOW)
        if (rows < R) return with_constant<R - 1, LOW>(rows, function);
    function(std::integral_constant<int, R>());
}

// Panels [begin, end); `then`: where this thread goes on
template <int KIND>
inline void few_rows(const Product& job, int64_t begin, int64_t end, int64_t then) {
    with_constant<BLOCK>(job.rows, [&](auto rows) {
        constexpr int together = rows <= (WIDE ? 4 : 2) ? 2 * ABREAST : ABREAST;
        for (int64_t panel = begin; panel < end; panel += together)
            decode_and_add<KIND, rows, together>(job, panel, panel + together < end ? panel + together : then);
    });
}

// Some inputs of panels that lie abreast, read once for many rows
struct Chunk {
    alignas(64) float numbers[ABREAST][CHUNK * PANEL];
    alignas(64) float scales[ABREAST][CHUNK / FINEST * PANEL], minima[ABREAST][CHUNK / FINEST * PANEL];
    int64_t begin, count;  // `begin` is a multiple of CHUNK
};

template <int KIND>
inline void decode(const Weight& weight, int64_t panel, Chunk& chunk) {
    for (int p = 0; p < ABREAST; p++, panel++) {
        for (int64_t input = 0; input < chunk.count; input += STEP<KIND>)
            UNROLL for (int next = 0; next < STEP<KIND>; next++) {
                Vector numbers[PARTS];
                read<KIND>(weight, panel, chunk.begin + input, next, numbers);
                float* at = chunk.numbers[p] + (input + next) * PANEL;
                UNROLL for (int part = 0; part < PARTS; part++) store(at + part * LANES, numbers[part]);
            }
        if constexpr (!grouped<KIND>) continue;
        const int64_t at = (panel * weight.groups() + chunk.begin / weight.group) * PANEL;
        for (int64_t i = 0; i < chunk.count / weight.group * PANEL; i += LANES) {
            store(chunk.scales[p] + i, weight.factors(weight.scales, at + i));
            if (weight.minima) store(chunk.minima[p] + i, weight.factors(weight.minima, at + i));
        }
    }
}

// Adds inputs [begin, end) of a chunk; x [R, stride] at the chunk's first input
template <int R>
inline __attribute__((always_inline)) void add_decoded(const float* x, int64_t stride, const Chunk& chunk, int64_t begin,
                                                       int64_t end, Vector (&sums)[ABREAST][R][PARTS]) {
    for (int64_t input = begin; input < end; input++) {
        Vector weights[ABREAST][PARTS];
        UNROLL for (int p = 0; p < ABREAST; p++)
            UNROLL for (int part = 0; part < PARTS; part++)
                weights[p][part] = load(chunk.numbers[p] + input * PANEL + part * LANES);
        UNROLL for (int row = 0; row < R; row++) {
            const Vector each = splat(x[row * stride + input]);
            UNROLL for (int p = 0; p < ABREAST; p++)
                UNROLL for (int part = 0; part < PARTS; part++)
                    sums[p][row][part] = fma(each, weights[p][part], sums[p][row][part]);
        }
    }
}

// Sums of a tile's rows, kept between chunks
using Kept = float[ABREAST][TILE * BLOCK * PANEL];

template <int R>
inline __attribute__((always_inline)) void load_sums(const Kept& kept, int64_t row, Vector (&sums)[ABREAST][R][PARTS]) {
    UNROLL for (int p = 0; p < ABREAST; p++)
        UNROLL for (int r = 0; r < R; r++)
            UNROLL for (int part = 0; part < PARTS; part++)
                sums[p][r][part] = load(kept[p] + (row + r) * PANEL + part * LANES);
}

template <int R>
inline __attribute__((always_inline)) void store_sums(const Vector (&sums)[ABREAST][R][PARTS], int64_t row, Kept& kept) {
    UNROLL for (int p = 0; p < ABREAST; p++)
        UNROLL for (int r = 0; r < R; r++)
            UNROLL for (int part = 0; part < PARTS; part++)
                store(kept[p] + (row + r) * PANEL + part * LANES, sums[p][r][part]);
}

// Adds a chunk of R rows, `row` and the next ones of a tile that begins at x and group_sums
template <int KIND, int R>
__attribute__((noinline)) void add_block(const Weight& weight, const Chunk& chunk, const float* x,
                                         const float* group_sums, int64_t row, Kept& kept) {
    x += row * weight.inputs + chunk.begin;
    Vector total[ABREAST][R][PARTS];
    if constexpr (grouped<KIND>) {
        const int64_t groups = weight.groups(), size = weight.group;
        group_sums += row * groups + chunk.begin / size;
        for (int64_t number = 0; number < chunk.count / size; number++) {
            Vector group[ABREAST][R][PARTS] = {}, scale[PARTS], minimum[PARTS];
            add_decoded<R>(x, weight.inputs, chunk, number * size, (number + 1) * size, group);
            load_sums<R>(kept, row, total);  // anew for each group: there are no registers for both
            UNROLL for (int p = 0; p < ABREAST; p++) {
                UNROLL for (int part = 0; part < PARTS; part++) {
                    scale[part] = load(chunk.scales[p] + number * PANEL + part * LANES);
                    if (weight.minima) minimum[part] = load(chunk.minima[p] + number * PANEL + part * LANES);
                }
                close<R>(group[p], scale, weight.minima ? minimum : nullptr, group_sums + number, groups, total[p]);
            }
            store_sums<R>(total, row, kept);
        }
    } else {
        load_sums<R>(kept, row, total);
        add_decoded<R>(x, weight.inputs, chunk, 0, chunk.count, total);
        store_sums<R>(total, row, kept);
    }
}

// More than a few rows of the panels abreast, in blocks of even size: a small last one would wait for its own sums
template <int KIND>
__attribute__((noinline)) void many_rows(const Product& job, int64_t panel) {
    const int64_t inputs = job.weight.inputs, groups = job.weight.groups();
    Chunk chunk;
    alignas(64) Kept kept;
    int64_t top = 0, blocks = (job.rows + BLOCK - 1) / BLOCK;
    while (blocks) {
        const int64_t some = std::min<int64_t>(blocks, TILE), rows = (job.rows - top) * some / blocks;
        std::memset(kept, 0, sizeof kept);
        for (chunk.begin = 0; chunk.begin < inputs; chunk.begin += CHUNK) {
            chunk.count = std::min<int64_t>(CHUNK, inputs - chunk.begin);
            decode<KIND>(job.weight, panel, chunk);
            for (int64_t left = some, row = 0; left; left--) {
                const int64_t size = (rows - row + left - 1) / left;
                with_constant<BLOCK, LEAST>(size, [&](auto block) {
                    add_block<KIND, block>(job.weight, chunk, job.x + top * inputs, job.group_sums + top * groups, row,
                                           kept);
                });
                row += size;
            }
        }
        for (int p = 0; p < ABREAST; p++)
            for (int64_t row = 0; row < rows; row++) {
                Vector sums[PARTS];
                std::memcpy(sums, kept[p] + row * PANEL, sizeof sums);
                finish(job, panel + p, top + row, sums);
            }
        top += rows, blocks -= some;
    }
}

template <int KIND>
inline void panels(const Product& job, int64_t begin, int64_t end, int64_t then) {
    if (job.rows <= BLOCK) return few_rows<KIND>(job, begin, end, then);
    if (job.rows <= FEW) {
        const Product first = job.part(0, job.rows / 2), second = job.part(job.rows / 2, job.rows);
        few_rows<KIND>(first, begin, end, begin);
        return few_rows<KIND>(second, begin, end, then);
    }
    for (int64_t panel = begin; panel < end; panel += ABREAST) many_rows<KIND>(job, panel);
}

// The sums of x [inputs] by groups
inline void sum_groups(const float* x, int64_t size, int64_t groups, float* out) {
    for (int64_t number = 0; number < groups; number++, x += size) {
        Vector total = load(x);
        for (int64_t i = LANES; i < size; i += LANES) total += load(x + i);
        out[number] = sum(total);
    }
}

// Called by all threads of a team; each takes panels until none is left, and knows which it will take next. `taken`: of
// this product alone, 0 before. Ends with a barrier.
inline void multiply(const Product& job, std::atomic<int64_t>& taken) {
    if (job.weight.minima) {
        const int64_t groups = job.weight.groups(), size = job.weight.group;
#pragma omp for
        for (int64_t row = 0; row < job.rows; row++)
            sum_groups(job.x + row * job.weight.inputs, size, groups, job.group_sums + row * groups);
    }
    const int64_t count = job.weight.count(), share = TOGETHER * std::clamp<int64_t>(count / (8 * TOGETHER), 1, 8);
    for (int64_t begin = taken.fetch_add(share), next; begin < count; begin = next) {
        next = taken.fetch_add(share);
        const int64_t end = std::min(begin + share, count), then = next < count ? next : begin;
        switch (job.weight.kind) {
            case FLOAT32: panels<FLOAT32>(job, begin, end, then); break;
            case BFLOAT16: panels<BFLOAT16>(job, begin, end, then); break;
            case FLOAT16: panels<FLOAT16>(job, begin, end, then); break;
            case ROW8: panels<ROW8>(job, begin, end, then); break;
            case INT8: panels<INT8>(job, begin, end, then); break;
            case INT4: panels<INT4>(job, begin, end, then); break;
        }
    }
#pragma omp barrier
}
