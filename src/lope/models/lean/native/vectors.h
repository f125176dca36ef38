// Vectors of float32 as wide as the CPU's registers. Every product and sum is written out (-ffp-contract=off): the same
// numbers give the same bits in every kernel.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int LANES = 16;
#else
constexpr int LANES = 8;
#endif
constexpr int PANEL = 16;  // outputs whose weights lie side by side
constexpr int PARTS = PANEL / LANES;
// loops over registers: one left rolled would keep them in memory
#define UNROLL _Pragma("GCC unroll 16")

typedef float Vector __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(LANES * 4)));

inline Vector splat(float x) { return x - Vector{}; }
inline Vector load(const float* p) { return *(const Vector*)p; }
inline void store(float* p, Vector x) { *(Vector*)p = x; }

// a * b + c, rounded once
inline Vector fma(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    for (int i = 0; i < LANES; i++) c[i] = std::fma(a[i], b[i], c[i]);
    return c;
#endif
}

#if defined(__AVX2__)
inline __m128 quarters(Vector x) {
#if defined(__AVX512F__)
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)x),
                                       _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)x), 1)));
#else
    const __m256 eight = (__m256)x;
#endif
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}
#endif

// Halves are added to each other until one number is left
inline float sum(Vector x) {
#if defined(__AVX2__)
    const __m128 four = quarters(x);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    float lanes[LANES];
    std::memcpy(lanes, &x, sizeof lanes);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
    return lanes[0];
#endif
}

// The sum of each, to the same bits: of four at once, for putting numbers side by side takes longer than adding them
template <int K>
inline void sum(const Vector (&x)[K], float (&out)[K]) {
#if defined(__AVX2__)
    if constexpr (K == 4) {
        const __m128 a = quarters(x[0]), b = quarters(x[1]), c = quarters(x[2]), d = quarters(x[3]);
        const __m128 ab = _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));  // two numbers of each
        const __m128 cd = _mm_add_ps(_mm_movelh_ps(c, d), _mm_movehl_ps(d, c));
        return _mm_storeu_ps(out, _mm_hadd_ps(ab, cd));
    }
#endif
    for (int k = 0; k < K; k++) out[k] = sum(x[k]);
}

inline float largest(Vector x) {
    float most = x[0];
    for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
    return most;
}

// e^x for x <= 0, to 2 units in the last place; 0 far below (range reduction and polynomial of Cephes' expf)
inline Vector exponential(Vector x) {
    const Vector low = splat(-87.0f);
    const Whole tiny = x < low;
    x = tiny ? low : x;
    Vector n = fma(x, splat(1.44269504088896341f), splat(12582912.0f)) - splat(12582912.0f);
    x = fma(n, splat(-0.693359375f), x);
    x = fma(n, splat(2.12194440e-4f), x);
    Vector y = splat(1.9875691500e-4f);
    for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        y = fma(y, x, splat(c));
    y = fma(y, x * x, x + splat(1.0f));
    Vector power = (Vector)((__builtin_convertvector(n, Whole) + 127) << 23);
    return tiny ? Vector{} : y * power;
}

// ---- what is stored in fewer bits -----------------------------------------------------------------------------------

inline Vector from_float16(const uint16_t* p) {
#if defined(__AVX512F__)
    return (Vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
#elif defined(__F16C__)
    return (Vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
#else
    Vector out;
    for (int i = 0; i < LANES; i++) {
        _Float16 x;
        std::memcpy(&x, p + i, 2);
        out[i] = (float)x;
    }
    return out;
#endif
}

inline Vector from_bfloat16(const uint16_t* p) {
#if defined(__AVX512F__)
    return (Vector)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16);
#elif defined(__AVX2__)
    return (Vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
#else
    Whole out;
    for (int i = 0; i < LANES; i++) out[i] = (int32_t)((uint32_t)p[i] << 16);
    return (Vector)out;
#endif
}

inline Vector from_int8(const int8_t* p) {
#if defined(__AVX512F__)
    return (Vector)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
#elif defined(__AVX2__)
    return (Vector)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
#else
    Vector out;
    for (int i = 0; i < LANES; i++) out[i] = (float)p[i];
    return out;
#endif
}

// AVX-512: half `number`, the lowest being 0, of each of the 16 words at p + at; else the halves of 8 bytes at p + at / 2:
// the low ones, then the high ones
inline void from_halves(const void* p, uint64_t at, int number, Vector out[PARTS]) {
#if defined(__AVX512F__)
    const __m512 codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i word = _mm512_srli_epi32(_mm512_loadu_si512((const int32_t*)p + at), 4 * number);
    out[0] = (Vector)_mm512_permutexvar_ps(word, codes);  // reads no more than the lowest four bits
#else
    const uint8_t* bytes = (const uint8_t*)p + at / 2;
#if defined(__AVX2__)
    const __m256i word = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)bytes));
    out[0] = (Vector)_mm256_cvtepi32_ps(_mm256_and_si256(word, _mm256_set1_epi32(15)));
    out[1] = (Vector)_mm256_cvtepi32_ps(_mm256_srli_epi32(word, 4));
#else
    for (int i = 0; i < PANEL; i++) out[i / LANES][i % LANES] = (float)(i < 8 ? bytes[i] & 15 : bytes[i - 8] >> 4);
#endif
#endif
}
