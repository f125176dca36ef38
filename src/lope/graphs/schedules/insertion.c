/* Insertion schedules of many priority orders: the same rule as insertion.py and usage.py, about 100 times as fast.
 * The use of a machine type is a list of pieces: `used` units from `times[i]` to `times[i + 1]`.
 * Returns 0, or 1 where memory ran out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int64_t size, capacity; double *times; int64_t *used; } Usage;

/* The last piece that begins at or before `time`; pieces begin at 0. */
static int64_t piece_of(const Usage *usage, double time) {
    int64_t low = 0, high = usage->size;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (usage->times[middle] <= time) low = middle; else high = middle;
    }
    return low;
}

static double earliest(const Usage *usage, double ready, double duration, int64_t need) {
    double start = ready;
    for (int64_t i = piece_of(usage, ready); i < usage->size; i++) {
        if (usage->times[i] >= start + duration && usage->times[i] > start) return start;
        if (usage->used[i] + need > usage->capacity && !(i + 1 < usage->size && usage->times[i + 1] <= start))
            start = usage->times[i + 1];
    }
    return start;
}

/* The piece that begins at `time`, made if it is not there. */
static int64_t cut(Usage *usage, double time) {
    int64_t i = piece_of(usage, time);
    if (usage->times[i] == time) return i;
    i++;
    memmove(usage->times + i + 1, usage->times + i, sizeof(double) * (usage->size - i));
    memmove(usage->used + i + 1, usage->used + i, sizeof(int64_t) * (usage->size - i));
    usage->times[i] = time;
    usage->used[i] = usage->used[i - 1];
    usage->size++;
    return i;
}

static void add(Usage *usage, double start, double end, int64_t need) {
    if (end <= start) return;
    int64_t first = cut(usage, start), last = cut(usage, end);
    for (int64_t i = first; i < last; i++) usage->used[i] += need;
}

int lope_insertion_makespans(int64_t orders_count, int64_t n, int64_t kinds, const int64_t *orders,
                             const double *durations, const int64_t *needs, const int64_t *kind_of,
                             const int64_t *capacities, const int64_t *starts, const int64_t *successors,
                             const int64_t *in_degrees, double *makespans) {
    const int64_t words = (n + 63) / 64, pieces = 2 * n + 2;
    uint64_t *open = malloc(sizeof(uint64_t) * words);
    int64_t *rank = malloc(sizeof(int64_t) * n), *waiting = malloc(sizeof(int64_t) * n);
    double *ready = malloc(sizeof(double) * n), *times = malloc(sizeof(double) * pieces * kinds);
    int64_t *used = malloc(sizeof(int64_t) * pieces * kinds);
    Usage *usages = malloc(sizeof(Usage) * kinds);
    int failed = !open || !rank || !waiting || !ready || !times || !used || !usages;
    for (int64_t k = 0; !failed && k < orders_count; k++) {
        const int64_t *order = orders + k * n;
        double makespan = 0;
        int64_t word = 0;
        memset(open, 0, sizeof(uint64_t) * words);
        memcpy(waiting, in_degrees, sizeof(int64_t) * n);
        for (int64_t m = 0; m < kinds; m++) {
            Usage fresh = {1, capacities[m], times + m * pieces, used + m * pieces};
            fresh.times[0] = 0;
            fresh.used[0] = 0;
            usages[m] = fresh;
        }
        for (int64_t i = 0; i < n; i++) {
            rank[order[i]] = i;
            ready[i] = 0;
            if (!waiting[order[i]]) open[i / 64] |= 1ull << (i & 63);
        }
        for (int64_t placed = 0; placed < n; placed++) {
            while (!open[word]) word++;
            int64_t i = word * 64 + __builtin_ctzll(open[word]), v = order[i];
            open[word] &= open[word] - 1;
            Usage *usage = usages + kind_of[v];
            double start = earliest(usage, ready[v], durations[v], needs[v]), end = start + durations[v];
            add(usage, start, end, needs[v]);
            if (end > makespan) makespan = end;
            for (int64_t e = starts[v]; e < starts[v + 1]; e++) {
                int64_t u = successors[e];
                if (end > ready[u]) ready[u] = end;
                if (--waiting[u] == 0) {
                    open[rank[u] / 64] |= 1ull << (rank[u] & 63);
                    if (rank[u] / 64 < word) word = rank[u] / 64;
                }
            }
        }
        makespans[k] = makespan;
    }
    free(open); free(rank); free(waiting); free(ready); free(times); free(used); free(usages);
    return failed;
}
