/* SPDX-License-Identifier: Apache-2.0 */
/* What Jobs and CronJobs share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

bool kinds_job_is_indexed(const cJSON *spec);
void validate_job_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec);
VALIDATES(validate_job_status);
/* A list like "0-2,5", of indexes below completions; how many there are. */
int64_t check_indexes(struct field_errors *e, const struct field_path *p, const cJSON *list,
                      const char *name, int64_t completions);
bool kinds_job_condition_true(const cJSON *job, const char *type);
/* The problem of a cron schedule; NULL when it is valid. */
const char *kinds_cron_problem(struct arena *a, struct str schedule);
