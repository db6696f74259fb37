/* Simulated streams and the detector that watches them, for millions of windows.

   The formulas are those of mining/detection/innovations.py and changes.py (step_stream), and of
   bench/lib/simulated_hosts.py (measured); tests/bench/lib/test_stream_simulation.py compares both. All constants come from
   Python. Streams do not depend on each other, so one is simulated after the other. */

#include <math.h>
#include <stdint.h>

#define FACTORS 15
#define THRESHOLDS 8

struct constants {
    double steps[FACTORS], slabs[FACTORS], parts[FACTORS];
    double least_step, least_slab, faded, faded_part, faded_windows, young_windows, most_surprise, baseline_seconds, spread_seconds, bound, winsorised, grain;
    double more_correlation, most_correlation, neighbours, early_windows, early_correlation, prior_windows, wider;
    double least_disturbed, most_disturbed, most_share, lasting_seconds, long_seconds, long_share, jumps;
    double up, up_most, up_edge, down, down_scale, far_scale, far_windows, least_far, most_far;
    double suspected, longest_seconds, first_windows, least_windows, least_mean, peaks_from, grid, day;
    double narrow, wide, more;
};

struct stream {
    double baseline, variance, lagged, square, last, gap, interval, seen, place, doubt, outlier, offset, begun, entry,
        age, moved, disturbed, far;
    double evidence[FACTORS], size[FACTORS], unsure[FACTORS], absorbed[FACTORS], windows[FACTORS], total[FACTORS],
        lately[FACTORS], since[FACTORS];
};

struct function {
    double interval, spread, correlation, disturbed, wave, phase, calls, sigma; /* its properties */
    double wander, first, factor, due, before;                                 /* its state */
    uint64_t random[4];
};

struct change {
    double at, factor;           /* from then on the location is higher by so much, in log units */
    double found[THRESHOLDS];    /* when the evidence reached each threshold; inf: not */
    double since[THRESHOLDS];    /* when the change was said to have begun */
    double size[THRESHOLDS];     /* mean of its windows, in log units */
};

struct peak {
    double at, peak;
    int64_t stream;
};

static double uniform(uint64_t *s)
{
    const uint64_t result = s[0] + s[3], t = s[1] << 17; /* xoshiro256+, Blackman and Vigna 2018 */
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return ((double)(result >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *s)
{
    for (;;) { /* Marsaglia's polar method */
        const double u = 2 * uniform(s) - 1, v = 2 * uniform(s) - 1, q = u * u + v * v;
        if (q < 1 && q > 0)
            return u * sqrt(-2 * log(q) / q);
    }
}

static double density(double distance, double variance)
{
    return exp(-0.5 * distance * distance / variance) / sqrt(2 * M_PI * variance);
}

static double clipped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static double disturbed_density(const struct constants *c, double surprise)
{
    const double distance = fabs(surprise);
    if (surprise > 0)
        return c->up / c->up_most / (1 + exp(fmin((distance - c->up_most) / c->up_edge, 50)));
    return c->down / c->down_scale * exp(-distance / c->down_scale);
}

static double goes_on(const struct constants *c, double age, double elapsed)
{
    const double half = 0.5 * c->lasting_seconds;
    const double still = fmin(1, fmax(0, c->lasting_seconds - age - elapsed) / half);
    const double before = fmin(1, fmax(1e-3, c->lasting_seconds - age) / half);
    return (1 - c->long_share) * fmin(1, still / before) + c->long_share * exp(-elapsed / c->long_seconds);
}

void step_stream(const struct constants *c, struct stream *s, double place_now, double sampling, double elapsed,
                 double began, double learn)
{
    int doubted = 0;
    for (int j = 0; j < FACTORS; j++)
        doubted |= s->evidence[j] > c->suspected;
    const double counts = doubted ? fmin(1, elapsed / s->interval) : 1;
    const double residual = place_now - s->baseline, spread = sqrt(s->variance);
    const double bounded = clipped(residual, -c->bound * spread, c->bound * spread);
    const double ratio = s->lagged / fmax(s->square, 1e-12);
    const double clean = s->variance / fmax(s->variance - sampling, 1e-6);
    const double more = c->more_correlation + c->early_correlation * exp(-s->seen / c->early_windows);
    const double correlation = clipped(ratio * clean + more, 1e-6, c->most_correlation);
    const double kept = pow(correlation, elapsed / s->interval);
    const double wander = fmax(s->variance - sampling, 1e-6);
    const double doubt = kept * kept * s->doubt + wander * (1 - kept * kept);
    const double predicted = kept * s->place;
    const double width = c->wider * (1 + c->young_windows / (s->seen + 1)) * (doubt + sampling);
    const double surprise = clipped(residual - predicted, -c->most_surprise, c->most_surprise);
    const double young = s->begun * goes_on(c, s->entry, elapsed), aged = (1 - s->begun) * goes_on(c, s->age, elapsed);
    const double lasting = fmin(s->outlier * (young + aged), c->most_share);
    const double begins = s->disturbed * fmin(1, elapsed / c->lasting_seconds);
    const double quiet = 1 - begins * (c->up + c->down) - s->far - lasting;
    const double far = s->far * exp(-fabs(surprise) / c->far_scale) / (2 * c->far_scale);
    const double fresh = begins * disturbed_density(c, surprise) + far;
    const double old = lasting > 0 ? lasting * density(surprise - s->offset, 2 * width) : 0;
    const double heavy = fresh + old, stay = 1 - s->moved;
    const double jump_width = c->wider * (wander * (1 - kept * kept) + 2 * sampling);
    const double jump = s->moved > 0 ? s->moved * density(surprise - kept * s->offset, jump_width) : 0;
    const double here = quiet * density(surprise, width) + heavy;
    const double usual = stay * here + jump;
    double outlier = heavy / here, moved = jump / usual;
    const double is_far = stay * far / usual;
    const double full = doubt / (doubt + sampling);
    const double gain = moved > 0.5 ? full : outlier > 0.5 ? 0 : full * (1 - outlier);
    if (moved > 0.5)
        outlier = 0;

    double least = INFINITY;
    int active = 0;
    for (int j = 0; j < FACTORS; j++) {
        least = fmin(least, c->slabs[j]);
        active |= s->evidence[j] > 0;
    }
    if (!active && surprise * surprise <= width * log1p(least * least / width)) {
        for (int j = 0; j < FACTORS; j++)
            s->evidence[j] = 0;
    } else
        for (int j = 0; j < FACTORS; j++) {
            if (s->evidence[j] <= 0) {
                s->evidence[j] = s->absorbed[j] = s->windows[j] = s->total[j] = s->lately[j] = 0;
                s->size[j] = c->steps[j];
                s->unsure[j] = c->slabs[j] * c->slabs[j];
                s->since[j] = began;
            }
            const double left = 1 - kept * s->absorbed[j], apart = surprise - s->size[j] * left;
            const double wide = width + s->unsure[j] * left * left;
            const double there = quiet * density(apart, wide), part = c->parts[j];
            const double changed = part * (stay * (there + heavy) + jump) + (1 - part) * usual;
            const double told = part * stay * there / changed * s->unsure[j] * left / wide;
            const double size = s->size[j] + told * apart;
            s->evidence[j] += part < 1 ? fmin(log(changed / usual), log(part / s->far)) : log(changed / usual);
            s->size[j] = c->steps[j] > 0 ? fmax(size, c->least_step) : fmin(size, -c->least_step);
            s->unsure[j] = fmax(s->unsure[j] * (1 - told * left), c->least_slab * c->least_slab);
            s->absorbed[j] = part < 1 ? 0 : kept * s->absorbed[j] + gain * left;
            s->windows[j] += 1;
            s->total[j] += residual;
            s->lately[j] += (residual - s->lately[j]) / fmin(s->windows[j], c->faded_windows);
            if (s->windows[j] >= c->faded_windows
                && (c->steps[j] > 0 ? s->lately[j] : -s->lately[j]) < fmax(c->faded, c->faded_part * part * fabs(size)))
                s->evidence[j] = 0;
        }

    const double slow = fmax(-expm1(-elapsed / c->baseline_seconds), counts / (s->seen + 1)) * learn;
    const double slower = fmax(-expm1(-elapsed / c->spread_seconds), counts / (s->seen + c->prior_windows)) * learn;
    const double slowest = fmax(-expm1(-elapsed / c->spread_seconds), counts / (s->seen + c->far_windows)) * learn;
    const double gap = s->gap + elapsed;
    const int due = gap >= c->neighbours * s->interval;
    const double regular = slower * due * (1 - outlier);
    const double squared = fmin(residual * residual, c->bound * c->bound * s->variance) / c->winsorised;
    const double variance = s->variance + slower * (squared - s->variance);
    s->baseline += slow * bounded;
    s->variance = fmax(variance, 1.02 * sampling + c->grain * c->grain);
    s->lagged += regular * (bounded * s->last - s->lagged);
    s->square += regular * (bounded * bounded - s->square);
    s->last = due ? bounded : s->last;
    s->gap = due ? 0 : gap;
    s->seen += counts * learn;
    s->place = predicted + gain * surprise;
    s->doubt = doubt * (1 - gain);
    s->age = elapsed + (young * s->entry + aged * s->age) / (young + aged);
    s->entry = fmin(0.5 * fmax(elapsed - 0.5 * c->lasting_seconds, 0), 0.25 * c->lasting_seconds);
    s->begun = fresh / heavy;
    s->offset = surprise;
    s->moved = moved > 0.5 || outlier <= 0.5 ? 0 : moved + (1 - moved) * (1 - outlier) * c->jumps;
    s->disturbed = clipped(s->disturbed + slower * (outlier - s->disturbed), c->least_disturbed, c->most_disturbed);
    s->far = clipped(s->far + slowest * (is_far - s->far), c->least_far, c->most_far);
    s->outlier = outlier;
}

/* Draw the location of a window that ends now. */
static double measured(const struct constants *c, struct function *f, double now, double *sampling, double *elapsed)
{
    uint64_t *r = f->random;
    *elapsed = fmax(now - f->before, c->grid);
    const double kept = pow(f->correlation, *elapsed / f->interval);
    const int near = *elapsed < 2 * c->grid, goes_on = near && f->first;
    f->wander = kept * f->wander + normal(r) * f->spread * sqrt(1 - kept * kept);
    const int begins = uniform(r) < (near ? 0.5 * f->disturbed : f->disturbed);
    const double drawn = log(1.2) + uniform(r) * log(5 / 1.2), half = uniform(r);
    f->factor = goes_on ? f->factor : begins ? drawn : 0;
    f->first = begins && !goes_on && (near || half < 0.5);
    f->before = now;
    *sampling = f->sigma * f->sigma / f->calls;
    const double day = f->wave * sin(2 * M_PI * (now / c->day + f->phase));
    return f->wander + day + f->factor + sqrt(*sampling) * normal(r);
}

/* Write locations only, one row of windows a function. */
void measure(const struct constants *c, struct function *functions, int64_t count, int64_t windows, double *places)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t n = 0; n < windows; n++) {
            double sampling, elapsed;
            places[i * windows + n] = measured(c, &functions[i], (n + 1) * functions[i].interval, &sampling, &elapsed);
        }
}

/* How much more evidence a stream needs whose windows vary widely (mining/detection/threshold.py). */
static double more_evidence(const struct constants *c, double wander)
{
    return c->more * clipped((sqrt(fmax(0, wander)) - c->narrow) / (c->wide - c->narrow), 0, 1);
}

/* The evidence that the function is slower, beyond what is needed more, where the other conditions of an open change
   hold. */
static double qualified(const struct constants *c, const struct stream *s, double sampling, int *best)
{
    double most = 0;
    for (int j = 0; j < FACTORS; j++)
        if (c->steps[j] > 0 && s->evidence[j] > most && s->windows[j] >= c->least_windows && s->total[j] >= c->least_mean * s->windows[j]) {
            most = s->evidence[j];
            *best = j;
        }
    return fmax(0, most - more_evidence(c, s->variance - sampling));
}

/* Watch functions from begin to end. Return the number of peaks above peaks_from, of which most are written. */
int64_t watch(const struct constants *c, struct function *functions, struct stream *streams, int64_t count, double begin,
              double end, struct change *changes, const double *thresholds, struct peak *peaks, int64_t most,
              int64_t *windows, int64_t *fast)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        struct function *f = &functions[i];
        struct stream *s = &streams[i];
        struct change *change = changes ? &changes[i] : 0;
        double peak = 0;
        for (double now = fmax(begin, f->due); now < end; now = f->due) {
            double sampling, elapsed;
            double place = measured(c, f, now, &sampling, &elapsed);
            if (change && now - c->grid >= change->at)
                place += change->factor;
            step_stream(c, s, place, sampling, elapsed, now - c->grid, 1);
            if (s->seen <= c->first_windows)
                for (int j = 0; j < FACTORS; j++)
                    s->evidence[j] = 0;
            double up = 0, down = 0;
            for (int j = 0; j < FACTORS; j++)
                if (c->steps[j] > 0)
                    up = fmax(up, s->evidence[j]);
                else
                    down = fmax(down, s->evidence[j]);
            const int alert = up > c->suspected || down > 2 * c->suspected;
            f->due = now + (alert ? c->grid : f->interval);
            ++*windows;
            *fast += alert;
            int best = 0;
            const double evidence = qualified(c, s, sampling, &best);
            peak = fmax(peak, evidence);
            if (change)
                for (int k = 0; k < THRESHOLDS; k++)
                    if (evidence >= thresholds[k] && now > change->at && isinf(change->found[k])) {
                        change->found[k] = now;
                        change->since[k] = s->since[best];
                        change->size[k] = s->total[best] / s->windows[best];
                    }
            if (peak > 0 && up <= 0) {
                if (peak > c->peaks_from && peaks && found < most)
                    peaks[found] = (struct peak){now, peak, i};
                found += peak > c->peaks_from;
                peak = 0;
            }
        }
        if (peak > c->peaks_from) {
            if (peaks && found < most)
                peaks[found] = (struct peak){end, peak, i};
            found++;
        }
    }
    return found;
}
