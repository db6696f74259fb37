// What a load task is told on its command line: KEY=VALUE; step=KIND:AMOUNT[:uniform or :exponential] may be repeated.

#include <stdio.h>

enum { MOST_STEPS = 16 };
enum random { FIXED, UNIFORM, EXPONENTIAL };
enum stop { NEVER, CHANGED };

struct step { enum kind kind; int64_t amount; enum random random; };

static struct {
    const char *sensor, *group, *folder;
    struct step steps[MOST_STEPS];
    int n_steps, cpu, nice, policy, window, final_iterations, forks, go, page, ready;
    enum stop stop;
    int64_t seconds_ns, delay_ns, slice_ns, slack_ns, threshold_ns, iterations, capacity, fork_units;
} task = {.sensor = "none", .group = "", .folder = "/tmp", .cpu = -1, .seconds_ns = 1000000000,
          .threshold_ns = 300000, .capacity = 65536, .window = 8};

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(4);
}

static void parse_step(char *text)
{
    struct step *step = &task.steps[task.n_steps++];
    char *amount = strchr(text, ':'), *random = amount ? strchr(amount + 1, ':') : NULL;
    if (!amount || task.n_steps > MOST_STEPS) {
        errno = EINVAL;
        fail(text);
    }
    *amount++ = 0;
    if (random)
        *random++ = 0;
    step->amount = strtoll(amount, NULL, 10);
    step->random = !random ? FIXED : strcmp(random, "uniform") == 0 ? UNIFORM : EXPONENTIAL;
    for (step->kind = 0; step->kind < KINDS && strcmp(text, KIND_NAMES[step->kind]) != 0; step->kind++)
        continue;
    if (step->kind == KINDS) {
        errno = EINVAL;
        fail(text);
    }
}

static void parse(char *argument)
{
    char *value = strchr(argument, '=');
    if (!value) {
        errno = EINVAL;
        fail(argument);
    }
    *value++ = 0;
    int64_t number = strtoll(value, NULL, 10);
    const struct { const char *name; int *whole; int64_t *large; const char **text; } keys[] = {
        {"sensor", NULL, NULL, &task.sensor},          {"group", NULL, NULL, &task.group},
        {"folder", NULL, NULL, &task.folder},          {"cpu", &task.cpu, NULL, NULL},
        {"nice", &task.nice, NULL, NULL},              {"policy", &task.policy, NULL, NULL},
        {"partner", &partner_cpu, NULL, NULL},         {"window", &task.window, NULL, NULL},
        {"final", &task.final_iterations, NULL, NULL}, {"forks", &task.forks, NULL, NULL},
        {"go", &task.go, NULL, NULL},                  {"page", &task.page, NULL, NULL},
        {"ready", &task.ready, NULL, NULL},
        {"seconds_ns", NULL, &task.seconds_ns, NULL},  {"delay_ns", NULL, &task.delay_ns, NULL},
        {"slice_ns", NULL, &task.slice_ns, NULL},      {"slack_ns", NULL, &task.slack_ns, NULL},
        {"threshold_ns", NULL, &task.threshold_ns, NULL}, {"iterations", NULL, &task.iterations, NULL},
        {"capacity", NULL, &task.capacity, NULL},      {"fork_units", NULL, &task.fork_units, NULL},
    };
    if (strcmp(argument, "step") == 0)
        return parse_step(value);
    if (strcmp(argument, "seed") == 0) {
        random_state ^= (uint64_t)number * 2654435761u;
        return;
    }
    if (strcmp(argument, "changed") == 0) {
        task.stop = number ? CHANGED : NEVER;
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(argument, keys[i].name) == 0) {
            if (keys[i].whole)
                *keys[i].whole = (int)number;
            else if (keys[i].large)
                *keys[i].large = number;
            else
                *keys[i].text = value;
            return;
        }
    errno = EINVAL;
    fail(argument);
}
