/* SPDX-License-Identifier: Apache-2.0 */
/* CronJobs. Source: pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "job.h"

#include <string.h>

static const struct default_rule CRON_JOB[] = {
    SET_TEXT_Z("spec.concurrencyPolicy", "Allow"),
    SET_BOOL("spec.suspend", false),
    SET_NUMBER("spec.successfulJobsHistoryLimit", 3),
    SET_NUMBER("spec.failedJobsHistoryLimit", 1),
    SET_TEXT_Z("spec.jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[].status", "True"),
};

/* The job of a CronJob gets its defaults when it is made. */
static void cron_job_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, CRON_JOB, COUNT(CRON_JOB));
    defaults_pod_template(a, json_path(object, "spec.jobTemplate.spec.template"));
}

static void cron_job_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{}");
}

/* Names of IANA begin with a letter and know no dots; files beside the zones do not count. */
static bool is_zone_part(struct str part)
{
    if (!part.n || part.n > 14 || (part.p[0] | 0x20) < 'a' || (part.p[0] | 0x20) > 'z')
        return false;
    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && !strchr("-_+", c))
            return false;
    }
    return true;
}

/* Only the form: which zones there are is not asked. */
static void check_zone(struct field_errors *e, const struct field_path *p, const cJSON *zone)
{
    struct str rest = json_str(zone), whole = rest;

    if (!zone)
        return;
    if (!whole.n) {
        field_invalid(e, p, zone, "timeZone must be nil or non-empty string");
        return;
    }
    do {
        if (!is_zone_part(str_cut(&rest, '/'))) {
            field_invalid(e, p, zone,
                          arena_printf(e->arena, "unknown time zone %.*s", STR_F(whole)).p);
            return;
        }
    } while (rest.p);
    if (str_eqc(lower_case(e->arena, whole), "local"))
        field_invalid(e, p, zone,
                      "timeZone must be an explicit time zone as defined in "
                      "https://www.iana.org/time-zones");
}

static void check_schedule(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    const struct field_path *p = FIELD(&SPEC, "schedule");
    struct str schedule = json_str(json_get(spec, "schedule"));
    bool zoned = str_contains(schedule, STR("TZ"));
    bool may = str_contains(json_str(json_get(old, "schedule")), STR("TZ"));
    const char *why;

    if (!check_given(e, p, schedule))
        return;
    why = cron_problem(e->arena, schedule);
    if (why)
        field_invalid_str(e, p, schedule, why);
    if (zoned && !may)
        field_invalid_str(e, p, schedule,
                          "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (zoned && json_get(spec, "timeZone"))
        field_invalid_str(e, p, schedule,
                          "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

static void check_job_template(struct field_errors *e, const cJSON *template_)
{
    static const char *const none[] = {"nil", "false", NULL};
    const struct field_path *p = FIELD(FIELD(&SPEC, "jobTemplate"), "spec");
    const cJSON *spec = json_get(template_, "spec");

    validate_job_spec(e, p, spec);
    if (given(spec, "selector"))
        field_invalid(e, FIELD(p, "selector"), given(spec, "selector"),
                      "`selector` will be auto-generated");
    if (json_true(json_get(spec, "manualSelector")))
        field_not_supported_value(e, FIELD(p, "manualSelector"), json_get(spec, "manualSelector"),
                                  none);
}

static void validate_cron_job(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
    static const char *const limits[] = {"successfulJobsHistoryLimit", "failedJobsHistoryLimit",
                                         NULL};
    const cJSON *spec = json_get(object, "spec"), *name = json_path(object, "metadata.name");

    check_schedule(e, spec, json_get(old, "spec"));
    check_nonnegative(e, FIELD(&SPEC, "startingDeadlineSeconds"),
                      json_get(spec, "startingDeadlineSeconds"));
    if (!old || !same_value(json_get(spec, "timeZone"), json_path(old, "spec.timeZone")))
        check_zone(e, FIELD(&SPEC, "timeZone"), json_get(spec, "timeZone"));
    check_enum(e, FIELD(&SPEC, "concurrencyPolicy"), json_str(json_get(spec, "concurrencyPolicy")),
               policies);
    check_job_template(e, json_get(spec, "jobTemplate"));
    check_all_nonnegative(e, &SPEC, spec, limits);
    if (!old && json_str(name).n > 52)
        field_invalid(e, FIELD(FIELD(NULL, "metadata"), "name"), name,
                      "must be no more than 52 characters");
}

static WARNS(warn_cron_job)
{
    const struct field_path *p = FIELD(FIELD(FIELD(NULL, "spec"), "jobTemplate"), "spec");
    WARNER(w);

    warn_owner_name(&w, object);
    warn_pod_at(&w, FIELD(p, "template"), json_path(object, "spec.jobTemplate.spec.template"));
}

static ROW_CELLS(cells_cron_job)
{
    struct row r = {a, object, now, cells};
    const cJSON *suspend = json_path(object, "spec.suspend");
    struct str last = json_str_at(object, "status.lastScheduleTime");

    cell_text_at(&r, "spec.schedule");
    cell_text_or(&r, "spec.timeZone", "<none>");
    cell_text(&r, !suspend ? STR("<unset>") : json_true(suspend) ? STR("True") : STR("False"));
    cell_count(&r, "status.active");
    cell_text(&r, last.n ? since(&r, last) : STR("<none>"));
    cell_age(&r);
    cell_template(&r, "spec.jobTemplate.spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.jobTemplate.spec.selector"), "<none>");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Schedule", "string", "", "", 0},      {"Timezone", "string", "", "", 0},
    {"Suspend", "boolean", "", "", 0},      {"Active", "integer", "", "", 0},
    {"Last Schedule", "string", "", "", 0}, {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1},    {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},      {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_CRON_JOB = {
    .resource =
        {
            RESOURCE("batch", "v1", "CronJob", "cronjobs", "cronjob"),
            .short_names = NAMES("cj"),
            .categories = NAMES("all"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("CronJob")),
        },
    .defaults = cron_job_defaults,
    .prepare_create = cron_job_prepare_create,
    .validate = validate_cron_job,
    .warnings = warn_cron_job,
    .cells = cells_cron_job,
};
