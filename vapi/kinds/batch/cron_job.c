/* SPDX-License-Identifier: Apache-2.0 */
/* CronJobs. Source: pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "job.h"

#include <ctype.h>

#include <sublet/time_zone.h>

static const struct default_rule CRON_JOB[] = {
    SET_TEXT_Z("spec.concurrencyPolicy", "Allow"),
    SET_BOOL("spec.suspend", false),
    SET_NUMBER("spec.successfulJobsHistoryLimit", 3),
    SET_NUMBER("spec.failedJobsHistoryLimit", 1),
    SET_TEXT_Z("spec.jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[].status", "True"),
    /* The job of a CronJob gets its defaults when it is made. */
    SET_BY("spec.jobTemplate.spec.template", defaults_pod_template),
};

/* Names of IANA begin with a letter and know no dots; files beside the zones do not count. */
static bool is_zone_part(struct str part)
{
    return part.n <= 14 && kinds_is_made_of(part, "-_+") && isalpha((unsigned char)part.p[0]);
}

/* In validateTimeZone()'s order. */
static void check_zone(const struct check *c)
{
    struct field_errors *e = c->e;
    const struct field_path *p = c->at;
    const cJSON *zone = c->value;
    struct str rest = json_str(zone), whole = rest;

    if (!zone || (c->before && kinds_same_value(zone, c->old)))
        return;
    if (!whole.n) {
        field_invalid(e, p, zone, "timeZone must be nil or non-empty string");
        return;
    }
    do {
        if (!is_zone_part(str_cut(&rest, '/'))) {
            field_invalid_printf(e, p, zone, "unknown time zone %.*s", STR_F(whole));
            return;
        }
    } while (rest.p);
    if (str_eqc(kinds_lower_case(e->arena, whole), "local"))
        field_invalid(e, p, zone,
                      "timeZone must be an explicit time zone as defined in "
                      "https://www.iana.org/time-zones");
    if (!str_eqc(whole, "Local") && time_zone_is_unknown(e->arena, whole))
        field_invalid_printf(e, p, zone, "unknown time zone %.*s", STR_F(whole));
}

static void check_schedule(const struct check *c)
{
    struct field_errors *e = c->e;
    const struct field_path *p = c->at;
    struct str schedule = json_str(c->value);
    bool zoned = str_contains(schedule, STR("TZ"));
    bool may = str_contains(json_str(c->old), STR("TZ"));
    const char *why;

    if (!check_given(e, p, schedule))
        return;
    why = kinds_cron_problem(e->arena, schedule);
    if (why)
        field_invalid_str(e, p, schedule, why);
    if (zoned && !may)
        field_invalid_str(e, p, schedule,
                          "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (zoned && json_path(c->object, "spec.timeZone"))
        field_invalid_str(e, p, schedule,
                          "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

static void check_not_manual(struct field_errors *e, const struct field_path *p,
                             const cJSON *manual)
{
    if (json_true(manual))
        field_not_supported_value(e, p, manual, NAMES("nil", "false"));
}

static const struct rule CRON_JOB_RULES[] = {
    CALL("spec.schedule", check_schedule),
    NONNEGATIVE("spec.startingDeadlineSeconds"),
    CALL("spec.timeZone", check_zone),
    ENUM("spec.concurrencyPolicy", ENUM_CONCURRENCY_POLICY),
    CHECK_ALWAYS("spec.jobTemplate.spec", validate_job_spec),
    INVALID("spec.jobTemplate.spec.selector", "`selector` will be auto-generated"),
    CHECK("spec.jobTemplate.spec.manualSelector", check_not_manual),
    NONNEGATIVES("spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
    ON_CREATE(MAX_LENGTH_ELSE("metadata.name", 52, "must be no more than 52 characters")),
};

/* ---- warnings ---- */

static WARNS(warn_cron_job)
{
    const struct field_path *p = FIELD(FIELD(FIELD(NULL, "spec"), "jobTemplate"), "spec");
    WARNER(w);

    warn_owner_name(&w, object);
    warn_pod_at(&w, FIELD(p, "template"), json_path(object, "spec.jobTemplate.spec.template"));
}

CELL(cell_suspend)
{
    const cJSON *suspend = json_path(r->object, "spec.suspend");

    cell_text(r, !suspend ? STR("<unset>") : json_true(suspend) ? STR("True") : STR("False"));
}

CELL(cell_last_schedule)
{
    struct str last = json_str_at(r->object, "status.lastScheduleTime");

    cell_text(r, last.n ? kinds_since(r, last) : STR("<none>"));
}

/* ---- the kind ---- */

const struct kind KIND_CRON_JOB = {
    RESOURCE("batch", "v1", "CronJob", "cronjobs", "cronjob"),
    .resource.short_names = NAMES("cj"),
    .resource.categories = NAMES("all"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
    COLUMNS(
        {"Schedule", "string", .cell = show_text, .path = "spec.schedule"},
        {"Timezone", "string", .cell = show_text, .path = "spec.timeZone", .otherwise = "<none>"},
        {"Suspend", "boolean", .cell = cell_suspend},
        {"Active", "integer", .cell = show_count, .path = "status.active"},
        {"Last Schedule", "string", .cell = cell_last_schedule},
        {"Age", "string", .cell = show_age}, TEMPLATE_COLUMNS("spec.jobTemplate.spec.template"),
        {"Selector", "string", .priority = 1, .cell = show_selector,
         .path = "spec.jobTemplate.spec.selector", .otherwise = "<none>"}),
    SUBRESOURCES(STATUS_OF("CronJob")),
    .default_rules = DEFAULTS(CRON_JOB),
    .new_status = "{}",
    .rules = RULES(CRON_JOB_RULES),
    .warnings = warn_cron_job,
};
