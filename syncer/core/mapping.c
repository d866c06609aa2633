/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping records: "pods/ns/name" -> uids of the virtual and the host object. They are written in
 * the transaction of the virtual object, or before the create request is sent; so after a virtual
 * object is deleted, its record still proves that the host object was its own. Must never be
 * removed while the host object may exist.
 *
 *   value: "uid host-uid flags lost-since[ @given][ ~life][ old-uid...]", "-" for an empty field;
 *   flags: a "t" for each create without an outcome, "h" (headless); given: the addresses and
 *   ports, "10.0.0.7,fd00::7,30080"; life: absent for the first. Records of earlier versions lack
 *   the optional fields. */

#include "core/leader.h"
#include "core/life.h"
#include "core/run.h"
#include <sublet/store.h>
#include <sublet/store_quarantine.h>

/* kube-apiserver times a request out after a minute: a create whose answer was lost is not executed
 * later than this. */
#define LOST_CREATE_S 75

static struct str key_of(const struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                         struct str name)
{
    return arena_printf(a, "%s/%.*s/%.*s", s->kinds[id].record, STR_F(ns), STR_F(name));
}

static struct str field(struct str *rest)
{
    struct str text = str_cut(rest, ' ');

    return str_eqc(text, "-") ? STR("") : text;
}

struct mapping sync_mapping_parse(struct arena *a, struct str text)
{
    struct mapping m = {.exists = true};
    struct str rest = arena_str(a, text), flags;
    int64_t lost = 0;

    m.uid = field(&rest);
    m.host_uid = field(&rest);
    flags = field(&rest);
    for (size_t i = 0; i < flags.n; i++)
        m.tried += flags.p[i] == 't';
    m.headless = str_contains(flags, STR("h"));
    if (str_to_i64(field(&rest), &lost))
        m.lost_s = lost;
    if (rest.n && rest.p[0] == '@')
        m.given = str_from(str_cut(&rest, ' '), 1);
    m.life = LIFE_FIRST;
    if (rest.n && rest.p[0] == '~')
        str_to_i64(str_from(str_cut(&rest, ' '), 1), &m.life);
    while (rest.p && m.n_old < MAPPING_OLD)
        m.old[m.n_old++] = field(&rest);
    return m;
}

struct mapping sync_mapping_on_record(struct syncer *s, struct arena *a, enum sync_id id,
                                      struct str ns, struct str name)
{
    struct str value;

    if (!store_record_get(s->store, RECORD_MAPPING, key_of(s, a, id, ns, name), &value))
        return (struct mapping){0};
    return sync_mapping_parse(a, value);
}

struct mapping sync_mapping_get(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                                struct str name)
{
    struct mapping m = sync_mapping_on_record(s, a, id, ns, name);

    if (m.exists && !LIST_EMPTY(&s->departed))
        sync_departed_apply(s, a, id, ns, name, &m);
    return m;
}

bool sync_mapping_is_lost(struct syncer *s, enum sync_id id, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);
    bool lost = store_record_damaged(s->store, RECORD_MAPPING, key_of(s, a, id, ns, name));

    arena_free(a);
    return lost;
}

static void add(struct buf *b, struct str text)
{
    if (b->n)
        buf_char(b, ' ');
    buf_add(b, text.n ? text : STR("-"));
}

struct str sync_mapping_text(struct arena *a, const struct mapping *m)
{
    struct buf value = BUF_INIT(0);
    struct str ret;

    add(&value, m->uid);
    add(&value, m->host_uid);
    add(&value, arena_printf(a, "%.*s%s", (int)m->tried, "ttttttttt", m->headless ? "h" : ""));
    add(&value, m->lost_s ? arena_printf(a, "%lld", (long long)m->lost_s) : STR(""));
    if (m->given.n)
        add(&value, arena_printf(a, "@%.*s", STR_F(m->given)));
    if (m->life > LIFE_FIRST)
        add(&value, arena_printf(a, "~%lld", (long long)m->life));
    for (size_t i = 0; i < m->n_old; i++)
        add(&value, m->old[i]);
    ret = arena_str(a, buf_str(&value));
    buf_fini(&value);
    return ret;
}

void sync_mapping_put(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                      const struct mapping *m)
{
    struct arena *a = arena_new(0);

    store_record_put(s->store, RECORD_MAPPING, key_of(s, a, id, ns, name), sync_mapping_text(a, m));
    sync_lease_note(s->lease);
    arena_free(a);
}

void sync_mapping_remove(struct syncer *s, enum sync_id id, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);

    store_record_delete(s->store, RECORD_MAPPING, key_of(s, a, id, ns, name));
    arena_free(a);
}

static void drop_old(struct mapping *m, struct str uid)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_old; i++)
        if (!str_eq(m->old[i], uid))
            m->old[n++] = m->old[i];
    m->n_old = n;
}

bool sync_mapping_begin(struct mapping *m, struct str uid)
{
    if (m->exists && str_eq(m->uid, uid))
        return false;
    drop_old(m, uid);
    if (m->exists && m->uid.n) {
        if (m->n_old < MAPPING_OLD)
            m->n_old++;
        for (size_t i = m->n_old - 1; i > 0; i--)
            m->old[i] = m->old[i - 1];
        m->old[0] = m->uid;
    }
    m->exists = true;
    m->uid = uid;
    m->host_uid = STR("");
    m->given = STR("");
    m->headless = false;
    m->lost_s = 0;
    return true;
}

void sync_mapping_try(struct mapping *m)
{
    if (m->tried < MAPPING_TRIED)
        m->tried++;
    m->lost_s = 0;
}

bool sync_mapping_try_over(struct mapping *m)
{
    if (!m->tried)
        return false;
    m->tried--;
    return true;
}

void sync_mapping_try_alone(const struct syncer *s, struct mapping *m)
{
    m->host_uid = STR("");
    m->life = s->life;
    sync_mapping_try(m);
    m->lost_s = syncer_steady_s(s);
}

/* The wall clock may have been set since an earlier process recorded the loss, so the age of this
 * process bounds what has passed. */
int64_t sync_mapping_lost_left_s(const struct syncer *s, const struct mapping *m)
{
    int64_t now, passed, lost_s;

    if (!m->tried)
        return 0;
    now = syncer_steady_s(s);
    passed = syncer_age_s(s);
    lost_s = m->lost_s ? m->lost_s : now;
    if (lost_s <= now && now - lost_s < passed)
        passed = now - lost_s;
    return passed < LOST_CREATE_S ? LOST_CREATE_S - passed : 0;
}

bool sync_mapping_is_full(const struct mapping *m)
{
    return m->n_old == MAPPING_OLD;
}

bool sync_mapping_has_host(const struct syncer *s, const struct mapping *m)
{
    return m->host_uid.n && m->life == s->life;
}

void sync_mapping_set_host(const struct syncer *s, struct mapping *m, struct str host_uid)
{
    if (!str_eq(m->host_uid, host_uid))
        (void)sync_mapping_try_over(m);
    m->lost_s = m->tried ? syncer_steady_s(s) : 0;
    m->host_uid = host_uid;
    m->life = s->life;
}

void sync_mapping_note_host(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                            struct str uid, const cJSON *host_object)
{
    struct arena *a = arena_new(0);
    struct mapping m = sync_mapping_get(s, a, id, ns, name);

    if (m.exists && str_eq(m.uid, uid) && !sync_mapping_has_host(s, &m)) {
        sync_mapping_set_host(s, &m, sync_uid(host_object));
        sync_mapping_put(s, id, ns, name, &m);
        sync_revision_note(s, id, host_object);
    }
    arena_free(a);
}

bool sync_mapping_knows(const struct mapping *m, struct str uid)
{
    if (!m->exists || !uid.n)
        return false;
    for (size_t i = 0; i < m->n_old; i++)
        if (str_eq(m->old[i], uid))
            return true;
    return str_eq(m->uid, uid);
}

bool sync_mapping_proves(const struct syncer *s, enum sync_id id, const struct mapping *m,
                         struct str uid)
{
    return sync_mapping_knows(m, uid) && (id != SYNC_CLAIMS || m->life == s->life);
}

struct service_count {
    struct str but; /* this key is not counted */
    bool headless;
    size_t n;
};

static bool on_service_record(void *ctx, struct str key, struct str value)
{
    struct service_count *c = ctx;
    struct str rest = value;

    str_cut(&rest, ' ');
    str_cut(&rest, ' ');
    if (!str_eq(key, c->but) && str_contains(str_cut(&rest, ' '), STR("h")) == c->headless)
        c->n++;
    return true;
}

size_t sync_mapping_count_services(struct syncer *s, bool headless, struct str but_ns,
                                   struct str but_name)
{
    struct arena *a = arena_new(0);
    struct service_count c = {key_of(s, a, SYNC_SERVICES, but_ns, but_name), headless, 0};

    store_record_each(s->store, RECORD_MAPPING,
                      arena_printf(a, "%s/", s->kinds[SYNC_SERVICES].record), on_service_record,
                      &c);
    arena_free(a);
    return c.n;
}

struct record_count {
    struct str but; /* this key is not counted */
    size_t n;
};

static bool on_record(void *ctx, struct str key, struct str value)
{
    struct record_count *c = ctx;

    (void)value;
    c->n += !str_eq(key, c->but);
    return true;
}

size_t sync_mapping_count(struct syncer *s, enum sync_id id, struct str but_ns, struct str but_name)
{
    struct arena *a = arena_new(0);
    struct record_count c = {key_of(s, a, id, but_ns, but_name), 0};

    store_record_each(s->store, RECORD_MAPPING, arena_printf(a, "%s/", s->kinds[id].record),
                      on_record, &c);
    arena_free(a);
    return c.n;
}
