// One layer of the Llama family for the rows of many sequences, each row over the keys of its own path.
//
// d hidden size, h query heads, k key-value heads, w width of a head, r rows of the pass.
#include <omp.h>
#include <vector>
#include "linear.h"

struct Layer {
    Weight qkv, output, gate_up, down;
    const float *attention_norm, *query_norm, *key_norm, *mlp_norm;  // two absent where heads are not normed
    float eps;
    int32_t d, h, k, w;
};

// What the rows see. Key i of a row lies in slot i where i is below its `context`, else in slot paths[path + i -
// context].
struct Pass {
    int32_t rows, threads;
    const int32_t *sequence, *length, *slot, *context, *path;  // [r] each
    const int32_t* paths;
    const float* rotations;  // [positions, w]: cosines and sines in turn; a row stands behind all other keys it sees
    float* const* caches;    // by sequence: layer by layer [2 (keys, values), k, slots, w]
    const int64_t *slots, *strides;  // by sequence: slots, and numbers from one layer to the next

    float* cache(int64_t row, int64_t layer) const { return caches[sequence[row]] + layer * strides[sequence[row]]; }
};

namespace {

void normalise(const float* x, const float* weight, float eps, int64_t width, float* out) {
    Vector squares{};
    float rest = 0;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) squares = fma(load(x + i), load(x + i), squares);
    for (; i < width; i++) rest += x[i] * x[i];
    const float factor = 1.0f / std::sqrt((sum(squares) + rest) / (float)width + eps);
    for (i = 0; i < width; i++) out[i] = x[i] * factor * weight[i];
}

void rotate(float* head, const float* rotations, int64_t width) {
    for (int64_t i = 0; i < width; i += 2) {
        const float a = head[i], b = head[i + 1], cosine = rotations[i], sine = rotations[i + 1];
        head[i] = a * cosine - b * sine;
        head[i + 1] = a * sine + b * cosine;
    }
}

// Norms and rotates the heads of a row, and writes its key and value into the cache
void settle(const Layer& layer, const Pass& pass, int64_t number, int64_t row, float* qkv) {
    const int64_t h = layer.h, k = layer.k, w = layer.w, slots = pass.slots[pass.sequence[row]];
    for (int64_t head = 0; head < h + k; head++) {
        float* at = qkv + head * w;
        const float* norm = head < h ? layer.query_norm : layer.key_norm;
        if (norm) normalise(at, norm, layer.eps, w, at);
        rotate(at, pass.rotations + (pass.length[row] - 1) * w, w);
    }
    float* cache = pass.cache(row, number) + pass.slot[row] * w;
    for (int64_t head = 0; head < 2 * k; head++)
        std::memcpy(cache + head * slots * w, qkv + (h + head) * w, w * sizeof(float));
}

// out[n][at + i] = query n · key i, of N query heads that lie side by side and K keys
template <int N, int K>
void dots(const float* queries, const float* const (&keys)[K], int64_t w, float scale, float* const* out, int64_t at) {
    Vector products[N][K] = {};
    int64_t i = 0;
    for (; i + LANES <= w; i += LANES) {
        Vector each[K];
        UNROLL for (int k = 0; k < K; k++) each[k] = load(keys[k] + i);
        UNROLL for (int n = 0; n < N; n++) {
            const Vector query = load(queries + n * w + i);
            UNROLL for (int k = 0; k < K; k++) products[n][k] = fma(query, each[k], products[n][k]);
        }
    }
    UNROLL for (int n = 0; n < N; n++) {
        float rest[K] = {};
        for (int64_t j = i; j < w; j++)
            for (int k = 0; k < K; k++) rest[k] += queries[n * w + j] * keys[k][j];
        float sums[K];
        sum(products[n], sums);
        UNROLL for (int k = 0; k < K; k++) out[n][at + k] = (sums[k] + rest[k]) * scale;
    }
}

// scores [length, padded to whole vectors] -> their exponentials above the largest; returns 1 / their sum
float soften(float* scores, int64_t length) {
    const int64_t padded = (length + LANES - 1) / LANES * LANES;
    for (int64_t i = length; i < padded; i++) scores[i] = -INFINITY;
    Vector most = load(scores), total{};
    for (int64_t i = LANES; i < padded; i += LANES) most = load(scores + i) > most ? load(scores + i) : most;
    const Vector top = splat(largest(most));
    for (int64_t i = 0; i < padded; i += LANES) {
        const Vector each = exponential(load(scores + i) - top);
        store(scores + i, each);
        total += each;
    }
    return 1.0f / sum(total);
}

// out[n] = sum of weights[n][i] * value i, of N heads; M vectors of the width at once
template <int N, int M>
void mix(const float* values, const int32_t* where, float* const* weights, int64_t length, int64_t w, float* out) {
    Vector sums[N][M] = {};
    for (int64_t i = 0; i < length; i++) {
        const float* value = values + where[i] * w;
        UNROLL for (int n = 0; n < N; n++) {
            const Vector weight = splat(weights[n][i]);
            UNROLL for (int m = 0; m < M; m++) sums[n][m] = fma(weight, load(value + m * LANES), sums[n][m]);
        }
    }
    UNROLL for (int n = 0; n < N; n++)
        UNROLL for (int m = 0; m < M; m++) store(out + n * w + m * LANES, sums[n][m]);
}

struct Room {  // of one thread
    std::vector<float> scores;
    std::vector<int32_t> where;
};

// out [N, w] of N query heads of one key head: softmax(q·K / sqrt(w)) V over the row's path, in path order
template <int N>
void attend(const float* queries, const float* keys, const float* values, int64_t length, int64_t w, Room& room,
            float* out) {
    const int64_t padded = (length + LANES - 1) / LANES * LANES;
    room.scores.resize(N * padded);
    float *scores[N], shares[N];
    for (int n = 0; n < N; n++) scores[n] = room.scores.data() + n * padded;
    const int32_t* where = room.where.data();
    const float scale = 1.0f / std::sqrt((float)w);
    int64_t i = 0;
    for (; i + 4 <= length; i += 4) {
        const float* const four[] = {keys + where[i] * w, keys + where[i + 1] * w, keys + where[i + 2] * w,
                                     keys + where[i + 3] * w};
        dots<N>(queries, four, w, scale, scores, i);
    }
    for (; i < length; i++) {
        const float* const one[] = {keys + where[i] * w};
        dots<N>(queries, one, w, scale, scores, i);
    }
    for (int n = 0; n < N; n++) shares[n] = soften(scores[n], length);
    constexpr int M = 12 / N;
    for (i = 0; i + M * LANES <= w; i += M * LANES) mix<N, M>(values + i, where, scores, length, w, out + i);
    for (; i + LANES <= w; i += LANES) mix<N, 1>(values + i, where, scores, length, w, out + i);
    for (; i < w; i++)
        for (int n = 0; n < N; n++) {
            out[n * w + i] = 0;
            for (int64_t key = 0; key < length; key++) out[n * w + i] += scores[n][key] * values[where[key] * w + i];
        }
    for (int n = 0; n < N; n++)
        for (i = 0; i < w; i++) out[n * w + i] *= shares[n];
}

// The query heads of one row that share a key head
void attend(const Layer& layer, const Pass& pass, int64_t number, int64_t row, int64_t group, const float* qkv,
            float* out, Room& room) {
    const int64_t w = layer.w, length = pass.length[row], slots = pass.slots[pass.sequence[row]];
    const float* keys = pass.cache(row, number) + group * slots * w;
    const float* values = keys + layer.k * slots * w;
    const int64_t shared = std::min<int64_t>(length, pass.context[row]);
    room.where.resize(length);
    for (int64_t i = 0; i < shared; i++) room.where[i] = (int32_t)i;
    for (int64_t i = shared; i < length; i++) room.where[i] = pass.paths[pass.path[row] + i - shared];
    int64_t head = group * (layer.h / layer.k), left = layer.h / layer.k;
    while (left) {
        const int64_t some = std::min<int64_t>(left, 4);
        with_constant<4>(some, [&](auto heads) {
            attend<heads>(qkv + head * w, keys, values, length, w, room, out + head * w);
        });
        head += some, left -= some;
    }
}

// silu(gate) * up, of [gate; up] [2m]
void gate(const float* both, int64_t m, int64_t begin, int64_t end, float* out) {
    for (int64_t i = begin; i < end; i += LANES) {
        float lanes[LANES] = {};
        const int64_t count = std::min<int64_t>(LANES, end - i);
        std::memcpy(lanes, both + i, count * sizeof(float));
        Vector x = load(lanes);
        const Vector small = exponential(x < 0.0f ? x : -x);  // e^-|x|
        const Vector sigmoid = (x < 0.0f ? small : splat(1.0f)) / (splat(1.0f) + small);
        store(lanes, x * sigmoid);
        for (int64_t j = 0; j < count; j++) out[i + j] = lanes[j] * both[m + i + j];
    }
}

std::vector<float>& scratch(int which, int64_t size) {
    static thread_local std::vector<float> held[7];
    if ((int64_t)held[which].size() < size) held[which].resize(size);
    return held[which];
}

constexpr int PRODUCTS = 4;  // of a layer

// What a pass of r rows needs beside its input and output, enough for each of its layers; kept for the next pass
struct Scratch {
    float *qkv, *mixed, *both, *gated, *normed, *sums, *between;

    Scratch(int64_t rows, const Layer* const* layers, int64_t count) {
        int64_t width = 0, mixed_width = 0, m = 0, d = 0, widest = 0;
        for (int64_t i = 0; i < count; i++) {
            const Layer& layer = *layers[i];
            width = std::max<int64_t>(width, (layer.h + 2 * layer.k) * layer.w);
            mixed_width = std::max<int64_t>(mixed_width, layer.h * layer.w);
            m = std::max<int64_t>(m, layer.down.inputs);
            d = std::max<int64_t>(d, layer.d);
            widest = std::max<int64_t>(widest, layer.qkv.inputs);
        }
        qkv = scratch(0, rows * width).data();
        mixed = scratch(1, rows * mixed_width).data();
        both = scratch(2, rows * 2 * m).data();
        gated = scratch(3, rows * m).data();
        normed = scratch(4, rows * d).data();
        sums = scratch(5, rows * (std::max(std::max(widest, mixed_width), m) / FINEST)).data();
        between = scratch(6, rows * d).data();
    }
};

// out [r, d]: what a layer makes of x [r, d]. Called by all threads of a team; ends with a barrier
void run(const Layer& layer, const Pass& pass, int64_t number, const float* x, const float* read, float* out,
         const Scratch& at, std::atomic<int64_t>* taken) {
    static thread_local Room room;
    const int64_t rows = pass.rows, d = layer.d, m = layer.down.inputs, width = (layer.h + 2 * layer.k) * layer.w;
    const int64_t mixed_width = layer.h * layer.w, piece = 512, pieces = (m + piece - 1) / piece;
    if (!read) {
#pragma omp for
        for (int64_t row = 0; row < rows; row++)
            normalise(x + row * d, layer.attention_norm, layer.eps, d, at.normed + row * d);
    }
    multiply(Product{layer.qkv, read ? read : at.normed, at.qkv, nullptr, rows, at.sums}, taken[0]);
#pragma omp for
    for (int64_t row = 0; row < rows; row++) settle(layer, pass, number, row, at.qkv + row * width);
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < rows * layer.k; item++) {
        const int64_t row = item / layer.k, group = item % layer.k;
        attend(layer, pass, number, row, group, at.qkv + row * width, at.mixed + row * mixed_width, room);
    }
    multiply(Product{layer.output, at.mixed, out, x, rows, at.sums}, taken[1]);
#pragma omp for
    for (int64_t row = 0; row < rows; row++)
        normalise(out + row * d, layer.mlp_norm, layer.eps, d, at.normed + row * d);
    multiply(Product{layer.gate_up, at.normed, at.both, nullptr, rows, at.sums}, taken[2]);
#pragma omp for
    for (int64_t item = 0; item < rows * pieces; item++) {
        const int64_t row = item / pieces, begin = item % pieces * piece;
        gate(at.both + row * 2 * m, m, begin, std::min(begin + piece, m), at.gated + row * m);
    }
    multiply(Product{layer.down, at.gated, out, out, rows, at.sums}, taken[3]);
}

}  // namespace

extern "C" {

// How the panels of four-bit codes lie: the inputs that are read at once
int lope_step() { return STEP<INT4>; }

void lope_linear(const Weight* weight, int64_t rows, int threads, const float* x, const float* residual, float* out) {
    float* sums = scratch(5, rows * (weight->inputs / FINEST)).data();
    std::atomic<int64_t> taken{0};
#pragma omp parallel num_threads(threads)
    multiply(Product{*weight, x, out, residual, rows, sums}, taken);
}

// out [rows, width]: x over its root mean square, times weight
void lope_norm(int64_t rows, int64_t width, float eps, const float* x, const float* weight, float* out) {
    for (int64_t row = 0; row < rows; row++) normalise(x + row * width, weight, eps, width, out + row * width);
}

// out [r, d]: what the layers `first`, first + 1, ... of which `about` has `count` make of x [r, d], another place. `read`
// [r, qkv.inputs] is what the attention of the first one reads; absent: x, normed
void lope_layers(const Layer* const* about, int64_t count, const Pass* view, int64_t first, const float* x,
                 const float* read, float* out) {
    const Pass& pass = *view;
    const Scratch room(pass.rows, about, count);
    std::vector<std::atomic<int64_t>> taken(PRODUCTS * count);
#pragma omp parallel num_threads(pass.threads)
    for (int64_t i = 0; i < count; i++) {
        // the last one writes to `out`
        float* to = (count - i) % 2 ? out : room.between;
        run(*about[i], pass, first + i, x, i ? nullptr : read, to, room, &taken[PRODUCTS * i]);
        x = to;
    }
}
}
