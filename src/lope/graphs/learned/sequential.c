/* The policy of sequential.py: at every step one ready node, with probability weight / sum of the ready weights.
 * lope_sample draws orders from given uniform numbers; lope_replay scores given orders. Ready nodes stay in the order in
 * which they became ready, and sums run in that order, so that Python gives the same numbers to the last bit.
 * Both return 0, or 1 where memory ran out (lope_replay: or an order is not topological). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int64_t n, size; const int64_t *starts, *successors; int64_t *waiting, *ready; } Front;

static int open_front(Front *front, int64_t n, const int64_t *starts, const int64_t *successors) {
    front->n = n;
    front->starts = starts;
    front->successors = successors;
    front->waiting = malloc(sizeof(int64_t) * (n + 1));
    front->ready = malloc(sizeof(int64_t) * (n + 1));
    return !front->waiting || !front->ready;
}

static void reset(Front *front, const int64_t *in_degrees) {
    front->size = 0;
    memcpy(front->waiting, in_degrees, sizeof(int64_t) * front->n);
    for (int64_t v = 0; v < front->n; v++)
        if (!in_degrees[v]) front->ready[front->size++] = v;
}

static double total(const Front *front, const double *weights) {
    double sum = 0;
    for (int64_t i = 0; i < front->size; i++) sum += weights[front->ready[i]];
    return sum;
}

/* Run the ready node at `place`; what becomes ready joins at the end. */
static void run(Front *front, int64_t place) {
    int64_t node = front->ready[place];
    memmove(front->ready + place, front->ready + place + 1, sizeof(int64_t) * (front->size - place - 1));
    front->size--;
    for (int64_t e = front->starts[node]; e < front->starts[node + 1]; e++)
        if (--front->waiting[front->successors[e]] == 0) front->ready[front->size++] = front->successors[e];
}

int lope_sample(int64_t orders_count, int64_t n, const double *uniforms, const double *weights, const int64_t *starts,
                const int64_t *successors, const int64_t *in_degrees, int64_t *orders) {
    Front front;
    int failed = open_front(&front, n, starts, successors);
    for (int64_t k = 0; !failed && k < orders_count; k++) {
        reset(&front, in_degrees);
        for (int64_t step = 0; step < n; step++) {
            double left = uniforms[k * n + step] * total(&front, weights);
            int64_t place = 0;
            while (place < front.size - 1 && left >= weights[front.ready[place]]) left -= weights[front.ready[place++]];
            orders[k * n + step] = front.ready[place];
            run(&front, place);
        }
    }
    free(front.waiting); free(front.ready);
    return failed;
}

int lope_replay(int64_t orders_count, int64_t n, const int64_t *orders, const double *weights, const int64_t *starts,
                const int64_t *successors, const int64_t *in_degrees, double *log_probabilities, double *expected) {
    Front front;
    int failed = open_front(&front, n, starts, successors);
    for (int64_t k = 0; !failed && k < orders_count; k++) {
        double *counts = expected + k * n;
        log_probabilities[k] = 0;
        reset(&front, in_degrees);
        for (int64_t step = 0; !failed && step < n; step++) {
            double sum = total(&front, weights);
            int64_t place = 0, node = orders[k * n + step];
            for (int64_t i = 0; i < front.size; i++) counts[front.ready[i]] += weights[front.ready[i]] / sum;
            while (place < front.size && front.ready[place] != node) place++;
            failed = place == front.size;
            log_probabilities[k] += log(weights[node] / sum);
            if (!failed) run(&front, place);
        }
    }
    free(front.waiting); free(front.ready);
    return failed;
}
