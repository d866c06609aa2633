/* SPDX-License-Identifier: Apache-2.0 */
/* `maintenance` of a pool, by which an admin takes it out of use for a time: of the file, of a
 * GPUPool, and of what the fleet says of it in a GPUBinding. Must never let a word that is not
 * known drain a pool: such a value is an error, and none of it counts. */
#include <string.h>

#include <sublet/clock.h>

#include "impl.h"

#define REASON_MOST  200
#define MOST_GRACE_S INT64_C(86400)

static int read_state(const struct place *at, const cJSON *value, void *into)
{
    struct config_maintenance *m = into;
    int word;

    if (place_word(at, value, "none|cordon|drain", &word))
        return -1;
    m->state = (enum maintenance_state)word;
    return 0;
}

/* One line, which is a part of messages. */
static int read_reason(const struct place *at, const cJSON *value, void *into)
{
    struct config_maintenance *m = into;

    if (place_string(at, value, &m->reason))
        return -1;
    for (size_t i = 0; i < m->reason.n; i++)
        if ((unsigned char)m->reason.p[i] < ' ' || m->reason.p[i] == 0x7f)
            return place_error(at, "want one line");
    return m->reason.n > REASON_MOST ? place_error(at, "at most %d bytes", REASON_MOST) : 0;
}

static int read_time(const struct place *at, const cJSON *value, int64_t *ret)
{
    int64_t us;

    if (!time_parse(json_str(value), &us) || us <= 0)
        return place_error(at, "want a time such as 2026-01-31T12:00:00Z");
    *ret = us / 1000000;
    return 0;
}

static int read_start(const struct place *at, const cJSON *value, void *into)
{
    return read_time(at, value, &((struct config_maintenance *)into)->start_s);
}

static int read_until(const struct place *at, const cJSON *value, void *into)
{
    return read_time(at, value, &((struct config_maintenance *)into)->until_s);
}

static int read_grace(const struct place *at, const cJSON *value, void *into)
{
    struct config_maintenance *m = into;

    if (place_seconds(at, value, &m->grace_s))
        return -1;
    if (m->grace_s < 1 || m->grace_s > MOST_GRACE_S)
        return place_error(at, "want a duration of 1s to 24h, such as 10m");
    return 0;
}

static const struct place_key MAINTENANCE_KEYS[] = {
    {"state", read_state}, {"reason", read_reason}, {"start", read_start},
    {"until", read_until}, {"grace", read_grace},   {0},
};

int config_read_maintenance(const struct place *at, const cJSON *value,
                            struct config_maintenance *ret)
{
    struct config_maintenance m = {0};

    if (place_object(at, value, MAINTENANCE_KEYS, &m))
        return -1;
    if (m.until_s && m.until_s <= m.start_s)
        return place_error(at, "until must be after start");
    *ret = m;
    return 0;
}

int config_maintenance_parse(struct arena *a, struct str where, const cJSON *value,
                             struct config_maintenance *ret, struct err *err)
{
    const struct place at = {a, where, err};

    *ret = (struct config_maintenance){0};
    return value && !json_is_null(value) ? config_read_maintenance(&at, value, ret) : 0;
}

struct str config_maintenance_text(struct arena *a, const struct config_pool *pool)
{
    static const char *const states[] = {"is being changed", "takes no new pods", "is drained"};
    const struct config_maintenance *m = &pool->maintenance;
    struct str until = m->until_s ? time_format_s(a, m->until_s) : STR("");

    if (!m->state && !m->reason.n)
        return STR("");
    return arena_printf(a, "pool \"%.*s\" %s%s%.*s%s%.*s", STR_F(pool->name), states[m->state],
                        m->reason.n ? ": " : "", STR_F(m->reason), until.n ? ", until " : "",
                        STR_F(until));
}
