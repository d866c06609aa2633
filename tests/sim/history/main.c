/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: histories in processes of their own, a number of them at once; what broke is run
 * again with less and less of it until nothing more can go. */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history.h"
#include "life.h"
#include "plant.h"
#include "result.h"

#define STEPS       60
#define CPU_SECONDS 120
#define MOST_JOBS   16

#define MOST_REPLAYS         10
#define HISTORIES_PER_REPLAY 50

struct options {
    uint64_t first, histories;
    unsigned jobs;
    bool once, teeth;
    struct script script;
};

static struct world *base;
static uint64_t most_shrunk = 3; /* of the histories that broke */
static char root[64];

/* --- one history --- */

static void child(const struct script *script, struct result *r, unsigned place)
{
    char path[96];
    struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS + 5}, core = {0, 0};

    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &core);
    result_place(r);
    snprintf(path, sizeof(path), "%s/%u", root, place);
    mkdir(path, 0700);
    disk_move_root(path);
    snprintf(path, sizeof(path), "%s/%u/stderr", root, place);
    if (!script->show && !freopen(path, "w", stderr))
        _exit(3);
    history_run(base, script);
}

static pid_t launch(const struct script *script, struct result *r, unsigned place)
{
    pid_t pid;

    memset(r, 0, sizeof(*r));
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        child(script, r, place);
    return pid;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

/* What an assertion or a sanitizer said last: the product's own bug. */
static void read_death(struct result *r, unsigned place)
{
    char path[96], line[400];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%u/stderr", root, place);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (!strstr(line, "Assertion") && !strstr(line, "ERROR") && !strstr(line, "runtime error"))
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(r->message, sizeof(r->message), "died: %s", line);
        break;
    }
    if (f)
        fclose(f);
}

static void collect(struct result *r, int status, unsigned place)
{
    char path[96];

    if (!r->over) {
        snprintf(r->kind, sizeof(r->kind), "died");
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
            snprintf(r->message, sizeof(r->message), "did not end within %d s of a processor",
                     CPU_SECONDS);
        else
            snprintf(r->message, sizeof(r->message), "died with status %d", status);
        read_death(r, place);
    }
    snprintf(path, sizeof(path), "%s/%u", root, place);
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void run_one(const struct script *script, struct result *r)
{
    int status;
    pid_t pid = launch(script, r, MOST_JOBS);

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    collect(r, status, MOST_JOBS);
}

/* --- shrinking --- */

static void print_command(const struct script *s)
{
    const char *comma = " --without ";

    printf("    replay: sim_history --seed %llu --steps %u", (unsigned long long)s->seed, s->steps);
    for (int c = 0; c < N_CLASSES; c++) {
        if (s->allowed[c])
            continue;
        printf("%s%s", comma, CLASSES[c]);
        comma = ",";
    }
    comma = " --skip ";
    for (unsigned i = 0; i < s->steps; i++) {
        if (!s->skip[i])
            continue;
        printf("%s%u", comma, i);
        comma = ",";
    }
    printf("\n");
}

/* The same thing breaks, whatever the names and numbers in it. */
static bool still_breaks(const struct script *s, struct result *r, const char *kind)
{
    run_one(s, r);
    return *r->message && !strcmp(r->kind, kind);
}

static void shrink_steps(struct script *s, struct result *r, const char *kind)
{
    unsigned low = 1, high = s->steps;
    struct script less = *s;

    while (low < high) {
        less.steps = (low + high) / 2;
        if (still_breaks(&less, r, kind))
            high = less.steps;
        else
            low = less.steps + 1;
    }
    less.steps = high;
    if (still_breaks(&less, r, kind))
        s->steps = high;
}

static void shrink_classes(struct script *s, struct result *r, const char *kind)
{
    for (int c = 0; c < N_CLASSES; c++) {
        struct script less = *s;

        less.allowed[c] = false;
        if (s->allowed[c] && still_breaks(&less, r, kind))
            *s = less;
    }
}

static void shrink_actions(struct script *s, struct result *r, const char *kind)
{
    for (unsigned size = s->steps / 2; size; size /= 2) {
        for (unsigned from = 0; from < s->steps; from += size) {
            struct script less = *s;

            for (unsigned i = from; i < from + size && i < s->steps; i++)
                less.skip[i] = true;
            if (memcmp(less.skip, s->skip, sizeof(less.skip)) != 0 && still_breaks(&less, r, kind))
                *s = less;
        }
    }
}

static void shrink(struct script s, struct result *r, const char *kind)
{
    if (!still_breaks(&s, r, kind)) {
        printf("    NOT REPEATED: the same seed gave: %s\n", *r->message ? r->message : "nothing");
        return;
    }
    s.steps = r->over && r->step + 1 < s.steps ? r->step + 1 : s.steps;
    shrink_steps(&s, r, kind);
    shrink_classes(&s, r, kind);
    shrink_actions(&s, r, kind);
    shrink_steps(&s, r, kind);
    run_one(&s, r);
    printf("    shortest: %s\n", r->message);
    print_command(&s);
}

/* --- many --- */

static struct {
    unsigned classes[N_CLASSES], wire[N_WIRE_COUNTS], torn, unread;
    unsigned refused, reported, reported_deleted, unknown;
    uint64_t done, failed;
    double virtual_s;
} total;

static void add_up(const struct result *r)
{
    for (int i = 0; i < N_CLASSES; i++)
        total.classes[i] += r->classes[i];
    for (int i = 0; i < N_WIRE_COUNTS; i++)
        total.wire[i] += r->wire[i];
    total.torn += r->torn;
    total.unread += r->unread;
    total.refused += r->refused;
    total.reported += r->reported;
    total.reported_deleted += r->reported_deleted;
    total.unknown += r->unknown;
    total.virtual_s += (double)r->virtual_us / 1e6;
    total.done++;
}

static void print_totals(double seconds)
{
    static const char *const names[N_WIRE_COUNTS] = {
        "refused", "lost",    "late", "duplicated", "truncated", "hung",    "busy",
        "failed",  "expired", "cut",  "pages",      "down",      "requests"};

    printf("%llu histories, %.1f s (%.1f a second), %.0f hours of virtual time\n",
           (unsigned long long)total.done - 1, seconds, (double)(total.done - 1) / seconds,
           total.virtual_s / 3600);
    printf("events:");
    for (int i = 0; i < N_CLASSES; i++)
        if (total.classes[i])
            printf(" %s %u", CLASSES[i], total.classes[i]);
    printf("\ndisk: torn sectors %u failed reads %u\nnetwork:", total.torn, total.unread);
    for (int i = 0; i < N_WIRE_COUNTS; i++)
        printf(" %s %u", names[i], total.wire[i]);
    printf("\ntwo processes: writes refused %u, reported as lacking %u, deletions %u; "
           "looks at an unknown report "
           "%u\n",
           total.refused, total.reported, total.reported_deleted, total.unknown);
}

struct job {
    pid_t pid;
    struct script script;
};

static void finished(struct job *job, struct result *r, struct result *spare, int status,
                     unsigned place)
{
    char kind[sizeof(r->kind)];

    collect(r, status, place);
    add_up(r);
    job->pid = 0;
    if (!*r->message)
        return;
    snprintf(kind, sizeof(kind), "%s", r->kind);
    printf("seed %llu broke at step %u: %s\n", (unsigned long long)job->script.seed, r->step,
           r->message);
    if (total.failed++ < most_shrunk)
        shrink(job->script, spare, kind);
    fflush(stdout);
}

static void run_many(const struct options *o, struct result *results)
{
    struct job jobs[MOST_JOBS] = {0};
    uint64_t next = 0;
    unsigned running = 0;

    while (next < o->histories || running) {
        int status;
        pid_t pid;

        for (unsigned i = 0; i < o->jobs && next < o->histories; i++) {
            if (jobs[i].pid)
                continue;
            jobs[i].script = o->script;
            jobs[i].script.seed = o->first + next++;
            jobs[i].pid = launch(&jobs[i].script, &results[i], i);
            running++;
        }
        pid = waitpid(-1, &status, 0);
        for (unsigned i = 0; i < o->jobs; i++) {
            if (pid > 0 && jobs[i].pid == pid) {
                running--;
                finished(&jobs[i], &results[i], &results[MOST_JOBS], status, i);
            }
        }
    }
}

/* One seed is one history: the same hash twice. */
static bool replays(const struct script *script, struct result *r)
{
    uint64_t hash;

    run_one(script, r);
    hash = r->hash;
    run_one(script, r);
    if (r->hash != hash)
        printf("seed %llu gave two histories: %016llx and %016llx\n",
               (unsigned long long)script->seed, (unsigned long long)hash,
               (unsigned long long)r->hash);
    return r->hash == hash;
}

/* The first seed, and some of the others: not every history reaches what is not replayed. */
static bool all_replay(const struct options *o, struct result *r)
{
    uint64_t n = 1 + o->histories / HISTORIES_PER_REPLAY;
    struct script script = o->script;
    struct moment draw;
    bool same = true;

    moment_init(&draw, o->first);
    for (uint64_t i = 0; i < n && i < MOST_REPLAYS; i++) {
        script.seed = o->first + (i ? dice_below(&draw, DICE_ACTION, o->histories) : 0);
        same &= replays(&script, r);
    }
    return same;
}

/* --- planted defects --- */

enum { MOST_SEEDS = 1000 };

static void allow(struct script *s, const struct plant *p)
{
    memset(s->allowed, 0, sizeof(s->allowed));
    s->allowed[CLASS_TWO] = s->allowed[CLASS_DOWN] = p->second;
}

/* The judge of this defect notices it; one that gets away in some history, or meets another judge
 * first, does not in all. */
static bool bites(struct script script, struct result *r, const struct plant *p)
{
    script.plant = p;
    allow(&script, p);
    for (unsigned i = 0; i < MOST_SEEDS; i++, script.seed++) {
        run_one(&script, r);
        if (!*r->message || !strstr(r->kind, p->breaks))
            continue;
        printf("%s, seed %llu: %s\n", p->name, (unsigned long long)script.seed, r->message);
        return true;
    }
    printf("%s: no judge notices it in %d histories\n", p->name, MOST_SEEDS);
    return false;
}

static void show_teeth(const struct options *o, struct result *r)
{
    for (size_t i = 0; i < N_PLANTS; i++) {
        total.done++;
        if (bites(o->script, r, &PLANTS[i]))
            continue;
        printf("%s is not noticed as it must be: %s\n", PLANTS[i].name, PLANTS[i].breaks);
        total.failed++;
    }
}

/* --- arguments --- */

static void leave_out(struct script *s, const char *names)
{
    struct str rest = str_c(names);

    while (rest.p) {
        struct str name = str_cut(&rest, ',');
        bool found = false;

        for (int c = 0; c < N_CLASSES; c++) {
            if (str_eqc(name, CLASSES[c]) || str_eqc(name, "all")) {
                s->allowed[c] = false;
                found = true;
            }
        }
        if (!found) {
            fprintf(stderr, "no class %.*s\n", STR_F(name));
            exit(2);
        }
    }
}

static void skip(struct script *s, const char *numbers)
{
    struct str rest = str_c(numbers);
    uint64_t n;

    while (rest.p)
        if (str_to_u64(str_cut(&rest, ','), &n) && n < sizeof(s->skip))
            s->skip[n] = true;
}

static uint64_t number(const char *text)
{
    uint64_t n = 0;

    if (!str_to_u64(str_c(text), &n)) {
        fprintf(stderr, "no number: %s\n", text);
        exit(2);
    }
    return n;
}

static const char *const USAGE =
    "sim_history [--histories N] [--first SEED] [--jobs N] [--seed SEED] [--steps N]\n"
    "            [--without CLASS,...] [--skip STEP,...]\n"
    "            [--shrink N] [--show] [--show-disk] [--teeth]\n"
    "--seed runs one history; --show prints it, --show-disk every operation on a disk as well;\n"
    "--shrink: so many of those that broke;\n"
    "--teeth plants defects, each of which its judge must notice.\n";

static void read_option(struct options *o, const char *name, const char *value)
{
    if (!strcmp(name, "--histories"))
        o->histories = number(value);
    else if (!strcmp(name, "--first"))
        o->first = number(value);
    else if (!strcmp(name, "--jobs"))
        o->jobs = (unsigned)number(value);
    else if (!strcmp(name, "--shrink"))
        most_shrunk = number(value);
    else if (!strcmp(name, "--steps"))
        o->script.steps = (unsigned)number(value);
    else if (!strcmp(name, "--without"))
        leave_out(&o->script, value);
    else if (!strcmp(name, "--skip"))
        skip(&o->script, value);
    else if (!strcmp(name, "--seed")) {
        o->once = true;
        o->script.seed = number(value);
    } else {
        fputs(USAGE, stderr);
        exit(2);
    }
}

static void read_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){.first = 1, .histories = 500, .jobs = 2, .script = {.steps = STEPS}};
    for (int c = 0; c < N_CLASSES; c++)
        o->script.allowed[c] = true;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--show"))
            o->script.show = true;
        else if (!strcmp(argv[i], "--show-disk"))
            o->script.show = o->script.show_disk = true;
        else if (!strcmp(argv[i], "--teeth"))
            o->teeth = true;
        else if (i + 1 < argc) {
            read_option(o, argv[i], argv[i + 1]);
            i++;
        } else {
            fputs(USAGE, stderr);
            exit(2);
        }
    }
    if (o->jobs < 1 || o->jobs > MOST_JOBS || o->script.steps > sizeof(o->script.skip)) {
        fprintf(stderr, "at most %d jobs and %zu steps\n", MOST_JOBS, sizeof(o->script.skip));
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    double begun = moment_real_s();
    struct result *results = mmap(NULL, sizeof(*results) * (MOST_JOBS + 1), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    read_options(&o, argc, argv);
    snprintf(root, sizeof(root), "%s/sublet-sim-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (results == MAP_FAILED || !mkdtemp(root))
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    base = world_new(0, root);
    life_stop(base->lives[0]);
    if (o.once) {
        run_one(&o.script, &results[0]);
        printf("seed %llu, %u steps, hash %016llx: %s\n", (unsigned long long)o.script.seed,
               results[0].step, (unsigned long long)results[0].hash,
               *results[0].message ? results[0].message : "nothing broke");
        total.done = 1;
        total.failed = *results[0].message != 0;
    } else if (o.teeth) {
        o.script.seed = o.first;
        show_teeth(&o, &results[MOST_JOBS]);
    } else {
        o.script.seed = o.first;
        total.done = 1; /* the replays */
        total.failed = !all_replay(&o, results);
        run_many(&o, results);
        print_totals(moment_real_s() - begun);
    }
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    printf("%llu passed, %llu failed\n", (unsigned long long)(total.done - total.failed),
           (unsigned long long)total.failed);
    /* The world that all histories begin with is never taken down: no leak of it counts. */
    fflush(NULL);
    _exit(total.failed ? 1 : 0);
}
