/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of validation that many kinds share, in upstream's words and order. Must never change what
 * it looks at. Source: apimachinery pkg/apis/meta/v1/validation. */
#include "impl.h"

#include <sublet/selector.h>

void check_rule(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                struct str s)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, s, messages);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, p, s, messages[i]);
}

void validate_labels(struct field_errors *e, const struct field_path *p, const cJSON *labels)
{
    json_each(label, labels)
    {
        check_rule(e, p, NAME_QUALIFIED, str_c(label->string));
        check_rule(e, p, NAME_LABEL_VALUE, json_str(label));
    }
}

static void check_requirement(struct field_errors *e, const struct field_path *p,
                              const cJSON *requirement)
{
    struct str op = json_str(json_get(requirement, "operator"));
    const cJSON *values = json_get(requirement, "values");
    size_t i = 0;

    if (str_eqc(op, "In") || str_eqc(op, "NotIn")) {
        if (!json_count(values))
            field_required(e, FIELD(p, "values"),
                           "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (str_eqc(op, "Exists") || str_eqc(op, "DoesNotExist")) {
        if (json_count(values))
            field_forbidden(e, FIELD(p, "values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        field_invalid_str(e, FIELD(p, "operator"), op, "not a valid selector operator");
    }
    check_rule(e, FIELD(p, "key"), NAME_QUALIFIED, json_str(json_get(requirement, "key")));
    json_each(value, values)
        check_rule(e, FIELD_INDEX(FIELD(p, "values"), i++), NAME_LABEL_VALUE, json_str(value));
}

void validate_label_selector(struct field_errors *e, const struct field_path *p,
                             const cJSON *selector)
{
    const struct field_path *list = FIELD(p, "matchExpressions");
    size_t i = 0;

    if (!selector)
        return;
    validate_labels(e, FIELD(p, "matchLabels"), json_get(selector, "matchLabels"));
    json_each(requirement, json_get(selector, "matchExpressions"))
        check_requirement(e, FIELD_INDEX(list, i++), requirement);
}

void validate_pod_template(struct field_errors *e, const struct field_path *p,
                           const cJSON *template_)
{
    validate_labels(e, FIELD(FIELD(p, "metadata"), "labels"),
                    json_path(template_, "metadata.labels"));
}
