/* SPDX-License-Identifier: Apache-2.0 */
/* What the tenant and the host must agree on when all is quiet: read from both sides, changed on
 * neither. */
#include "worlds.h"

#include "engine.h"

#define POD "{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c','image':'i'%s}]%s}}"

void sim_create_pod(struct sim *s, const char *name, const char *more_container,
                    const char *more_spec)
{
    char text[1024];

    snprintf(text, sizeof(text), POD, name, more_container, more_spec);
    sim_create(s, "pods", "default", text);
}

static const cJSON *host_of(const cJSON *host_pods, struct str uid)
{
    const cJSON *found = NULL;

    json_each(pod, host_pods)
    {
        const cJSON *notes = json_path(pod, "metadata.annotations");

        if (str_eq(json_str(json_get(notes, "sublet.dev/uid")), uid)) {
            assert_null(found);
            found = pod;
        }
    }
    return found;
}

static bool agree(const cJSON *pod, const cJSON *host)
{
    struct str phase = json_str_at(pod, "status.phase");

    if (!host)
        return str_eqc(phase, "Failed") || str_eqc(phase, "Succeeded");
    return str_eq(phase, json_str_at(host, "status.phase")) &&
           str_eq(json_str_at(pod, "spec.nodeName"), json_str_at(host, "spec.nodeName")) &&
           str_eq(json_str_at(pod, "status.podIP"), json_str_at(host, "status.podIP")) &&
           !json_path(pod, "metadata.deletionTimestamp");
}

bool sim_worlds_agree(struct sim *s)
{
    struct arena *a = arena_new(0);
    cJSON *pods = sim_list(s, a, "pods", ""), *host_pods = fake_host_list(s->host, a, "pods");
    size_t with_host = 0, running = 0;
    bool same = s->writes == 0;

    json_each(pod, pods)
    {
        const cJSON *host = host_of(host_pods, json_str_at(pod, "metadata.uid"));

        same &= agree(pod, host);
        with_host += host != NULL;
        running += host && str_eqc(json_str_at(host, "status.phase"), "Running");
    }
    same &= with_host == fake_host_count(s->host, "pods");
    /* One token Secret for each pod that runs on the host, and copies of what they refer to. */
    same &= fake_host_count(s->host, "secrets") == running;
    same &= running || !fake_host_count(s->host, "configmaps");
    arena_free(a);
    return same;
}

static void count_mapping(void *ctx, struct str key)
{
    (void)key;
    ++*(unsigned *)ctx;
}

static bool on_record(void *ctx, struct str key, struct str value)
{
    (void)value;
    count_mapping(ctx, key);
    return true;
}

unsigned sim_records(struct sim *s, enum store_record kind, const char *prefix)
{
    unsigned n = 0;

    store_record_each(s->store, kind, str_c(prefix), on_record, &n);
    return n;
}

bool sim_nothing_recorded(struct sim *s)
{
    return !sim_records(s, RECORD_MAPPING, "") && !sim_records(s, RECORD_LEDGER, "gpu/");
}

static void print_objects(const char *where, const cJSON *list)
{
    json_each(o, list) print_message(
        "%s %.*s uid %.*s of %.*s rv %.*s phase %.*s node %.*s deleted %.*s\n", where,
        STR_F(json_str_at(o, "metadata.name")), STR_F(json_str_at(o, "metadata.uid")),
        STR_F(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/uid"))),
        STR_F(json_str_at(o, "metadata.resourceVersion")), STR_F(json_str_at(o, "status.phase")),
        STR_F(json_str_at(o, "spec.nodeName")),
        STR_F(json_str_at(o, "metadata.deletionTimestamp")));
}

static bool print_record(void *ctx, struct str key, struct str value)
{
    (void)ctx;
    print_message("record %.*s = %.*s\n", STR_F(key), STR_F(value));
    return true;
}

static void print_worlds(struct sim *s)
{
    struct arena *a = arena_new(0);

    print_objects("virtual", sim_list(s, a, "pods", ""));
    print_objects("host", fake_host_list(s->host, a, "pods"));
    print_objects("host secret", fake_host_list(s->host, a, "secrets"));
    print_message("secrets %zu, configmaps %zu, services %zu, writes %u\n",
                  fake_host_count(s->host, "secrets"), fake_host_count(s->host, "configmaps"),
                  fake_host_count(s->host, "services"), s->writes);
    store_record_each(s->store, RECORD_MAPPING, STR(""), print_record, NULL);
    store_record_each(s->store, RECORD_LEDGER, STR("gpu/"), print_record, NULL);
    arena_free(a);
}

bool sim_pods_run(struct sim *s)
{
    struct arena *a = arena_new(0);
    cJSON *pods = sim_list(s, a, "pods", "");
    bool all = json_count(pods) > 0;

    json_each(pod, pods) all &= str_eqc(json_str_at(pod, "status.phase"), "Running");
    arena_free(a);
    return all && sim_worlds_agree(s);
}

static bool account_is_there(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool there = sim_get(s, a, "serviceaccounts", "default", "default") != NULL;

    arena_free(a);
    return there;
}

struct sim *sim_new_ready(uint64_t seed, const char *config)
{
    struct sim *s = sim_new(seed, config);

    s->explain = print_worlds;
    sim_until(s, account_is_there, "the default service account");
    return s;
}

static bool noted_runs(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", s->note);
    bool ret = str_eqc(json_str_at(pod, "status.phase"), "Running");

    arena_free(a);
    return ret;
}

void sim_until_runs(struct sim *s, const char *name)
{
    snprintf(s->note, sizeof(s->note), "%s", name);
    sim_until(s, noted_runs, name);
}

bool sim_pod_is_gone(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool gone = !sim_get(s, a, "pods", "default", "a");

    arena_free(a);
    return gone;
}
