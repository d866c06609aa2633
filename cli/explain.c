/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet explain`: reads manifests, requests from the running process what becomes of each object
 * and prints it. Must never decide anything: the process does what it would do in earnest. */
#include "arguments.h"
#include "cli.h"
#include "control.h"

#include <stdio.h>
#include <string.h>

#include <sublet/file.h>
#include <sublet/yaml.h>

enum { MANIFEST_MAX = 4 << 20, VALUE_MAX = 96 };

static const char HELP[] =
    "usage: sublet explain -f FILE [-n NAMESPACE] [-o text|json|yaml] [--config FILE]\n"
    "                      [--data-dir DIR]\n\n"
    "Shows the host object that the running virtual cluster would make of each object in FILE (-:\n"
    "standard input), every field that differs with the reason, and what the host says to a dry\n"
    "run. Pods, workloads with a pod template, Services, claims, ConfigMaps, Secrets and what\n"
    "sync.toHost enables. Nothing is stored or created. -o json and -o yaml print the host "
    "objects\n"
    "alone.\n"
    "Exit code 1 when the virtual cluster or the host would refuse an object, 2 when one cannot\n"
    "be explained.\n";

struct explain {
    struct arena *arena;
    const char *directory, *file, *namespace, *output;
    struct err err;
    bool refused;
    size_t printed;
};

/* --- printing --- */

static struct str value_text(struct explain *e, const cJSON *value)
{
    struct str text = json_text(e->arena, value);

    if (text.n <= VALUE_MAX)
        return text;
    return arena_printf(e->arena, "%.*s...", STR_F(str_clip(text, VALUE_MAX)));
}

/* Of added and dropped items of a list their names say most. */
static struct str items_text(struct explain *e, const cJSON *items)
{
    struct str ret = STR("");

    json_each(item, items)
    {
        struct str name = json_str(json_get(item, "name"));

        if (!name.n)
            return value_text(e, items);
        ret = arena_printf(e->arena, "%.*s%s%.*s", STR_F(ret), ret.n ? ", " : "", STR_F(name));
    }
    return ret.n ? ret : value_text(e, items);
}

static void print_change(struct explain *e, const cJSON *change)
{
    const cJSON *from = json_get(change, "from"), *to = json_get(change, "to");
    struct str reason = json_str(json_get(change, "reason"));

    printf("  %-8.*s %.*s: ", STR_F(json_str(json_get(change, "op"))),
           STR_F(json_str(json_get(change, "path"))));
    if (from && to)
        printf("%.*s -> %.*s\n", STR_F(value_text(e, from)), STR_F(value_text(e, to)));
    else
        printf("%.*s\n", STR_F(items_text(e, from ? from : to)));
    if (reason.n)
        printf("           %.*s\n", STR_F(reason));
}

/* What the fleet grants now may be less than guarantee + burst. */
static void print_pool(const cJSON *pool)
{
    struct str binding = json_str(json_get(pool, "binding"));

    if (!pool)
        return;
    printf("pool %.*s: requested %.*s GPU, used %.*s, limit %.*s",
           STR_F(json_str(json_get(pool, "name"))), STR_F(json_str(json_get(pool, "requested"))),
           STR_F(json_str(json_get(pool, "used"))), STR_F(json_str(json_get(pool, "limit"))));
    if (binding.n)
        printf(" (granted of %.*s by GPUBinding %.*s)", STR_F(json_str(json_get(pool, "most"))),
               STR_F(binding));
    putchar('\n');
}

static void print_queue(const cJSON *queue)
{
    const cJSON *gated = json_get(queue, "gated");

    if (!queue)
        return;
    printf("queue %.*s: label kueue.x-k8s.io/queue-name; %s\n",
           STR_F(json_str(json_get(queue, "name"))),
           !gated             ? "the host has not said whether Kueue holds the pod"
           : json_true(gated) ? "Kueue holds the pod by its gate until it admits it"
                              : "the host's Kueue does not hold it: no gate was added");
}

static void print_answer(struct explain *e, const cJSON *object, const cJSON *answer)
{
    const cJSON *host = json_get(answer, "host");
    struct str refusal = json_str(json_get(answer, "refusal"));
    struct str verdict = json_str(json_get(answer, "verdict"));
    struct str without = json_str(json_get(answer, "without"));
    struct str price = json_str(json_get(answer, "price"));

    printf("%s%.*s %.*s/%.*s", e->printed++ ? "\n" : "", STR_F(json_str(json_get(object, "kind"))),
           STR_F(json_str_at(object, "metadata.namespace")),
           STR_F(json_str_at(object, "metadata.name")));
    if (host)
        printf(" is %.*s %.*s/%.*s on the host", STR_F(json_str(json_get(host, "kind"))),
               STR_F(json_str_at(host, "metadata.namespace")),
               STR_F(json_str_at(host, "metadata.name")));
    putchar('\n');
    json_each(change, json_get(answer, "changes"))
    {
        print_change(e, change);
    }
    json_each(sentence, json_get(answer, "leftOut"))
    {
        printf("left out: %.*s\n", STR_F(json_str(sentence)));
    }
    print_pool(json_get(answer, "pool"));
    if (price.n)
        printf("price: %.*s\n", STR_F(price));
    print_queue(json_get(answer, "queue"));
    if (refusal.n)
        printf("the virtual cluster refuses it: %.*s\n", STR_F(refusal));
    if (!host && !refusal.n)
        printf("it has no object on the host\n");
    else if (host && json_true(json_get(answer, "waits")))
        printf("it waits in the line of the pool: the host gets it when GPUs come free\n");
    else if (host)
        printf("%s%.*s\n",
               verdict.n   ? "the host refuses it: "
               : without.n ? "the host admits it without "
                           : "the host admits it",
               STR_F(verdict.n ? verdict : without));
}

static void print_host(struct explain *e, const cJSON *answer)
{
    const cJSON *host = json_get(answer, "host");
    struct str refusal = json_str(json_get(answer, "refusal"));
    struct str verdict = json_str(json_get(answer, "verdict"));
    struct buf b = BUF_INIT(0);

    if (refusal.n || verdict.n)
        fprintf(stderr, "sublet: %s: %.*s\n", refusal.n ? "refused" : "refused by the host",
                STR_F(refusal.n ? refusal : verdict));
    if (!host)
        return;
    if (!strcmp(e->output, "yaml")) {
        if (e->printed)
            buf_addc(&b, "---\n");
        yaml_print(&b, host);
    } else {
        json_print_pretty(&b, host);
        buf_char(&b, '\n');
    }
    printf("%.*s", STR_F(buf_str(&b)));
    e->printed++;
    buf_fini(&b);
}

/* --- objects --- */

static int explain_object(struct explain *e, cJSON *object)
{
    cJSON *metadata = json_ensure_object(e->arena, object, "metadata"), *answer = NULL;
    struct str text;

    if (!json_str(json_get(metadata, "namespace")).n)
        json_set_str(e->arena, metadata, "namespace", str_c(e->namespace));
    if (control_request(e->arena, e->directory, "explain", json_text(e->arena, object), &text,
                        &e->err) ||
        json_parse(e->arena, text, &answer, &e->err))
        return -1;
    e->refused |= json_get(answer, "refusal") || json_get(answer, "verdict");
    if (strcmp(e->output, "text"))
        print_host(e, answer);
    else
        print_answer(e, object, answer);
    return 0;
}

static int explain_document(struct explain *e, struct str text)
{
    cJSON *document = NULL;

    if (yaml_parse(e->arena, text, NULL, NULL, &document, &e->err))
        return -1;
    if (!json_is_object(document))
        return json_is_null(document)
                   ? 0
                   : err_set(&e->err, &ERR_BAD_REQUEST, "%s: a document is no object", e->file);
    if (!str_eqc(json_str(json_get(document, "kind")), "List"))
        return explain_object(e, document);
    json_each(item, json_get(document, "items"))
    {
        if (!json_is_object(item) || explain_object(e, json_copy(e->arena, item)))
            return -1;
    }
    return 0;
}

static int explain_all(struct explain *e, struct str text)
{
    while (text.p) {
        if (explain_document(e, yaml_cut(&text)))
            return -1;
    }
    return 0;
}

static int take_arguments(struct explain *e, int argc, char **argv)
{
    struct config config;

    e->file = arguments_take(&argc, argv, "-f");
    e->namespace = arguments_take(&argc, argv, "-n");
    e->output = arguments_take(&argc, argv, "-o");
    e->namespace = e->namespace ? e->namespace : "default";
    e->output = e->output ? e->output : "text";
    if (!e->file || str_word_index("text|json|yaml", str_c(e->output)) < 0) {
        fputs(HELP, stderr);
        return -1;
    }
    if (cli_config(e->arena, argc, argv, &config))
        return -1;
    e->directory = arena_cstr(e->arena, config.data_dir);
    return 0;
}

int cmd_explain(int argc, char **argv)
{
    struct explain e = {.arena = arena_new(0)};
    struct str text;
    int code = 2;

    err_init(&e.err, e.arena);
    if (arguments_want_help(argc, argv)) {
        fputs(HELP, stdout);
        code = 0;
    } else if (!take_arguments(&e, argc, argv)) {
        if (!file_read(e.arena, str_c(strcmp(e.file, "-") ? e.file : "/dev/stdin"), MANIFEST_MAX,
                       &text, &e.err) &&
            !explain_all(&e, text))
            code = e.refused;
        else
            fprintf(stderr, "sublet: %.*s\n", STR_F(e.err.message));
    }
    arena_free(e.arena);
    return code;
}
