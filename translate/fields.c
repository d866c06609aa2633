/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the table of fields. Why: the reason for a change is found by the path at which it
 * was seen. Must never decide what is sent. */

#include <sublet/translate_fields.h>

const struct translate_field TRANSLATE_FIELDS[] = {
#define FIELD(section, field, treat, text)      {section, field, TREAT_##treat, false, text},
#define FIELD_SAID(section, field, treat, text) {section, field, TREAT_##treat, true, text},
#include <sublet/tbl/fields.h>
#undef FIELD
#undef FIELD_SAID
};
const size_t TRANSLATE_N_FIELDS = COUNT(TRANSLATE_FIELDS);

static const struct translate_field *find(struct str section, struct str field)
{
    for (size_t i = 0; i < TRANSLATE_N_FIELDS; i++) {
        const struct translate_field *row = &TRANSLATE_FIELDS[i];

        if (str_eqc(field, row->field) && str_eqc(section, row->section))
            return row;
    }
    return NULL;
}

const struct translate_field *translate_field(const char *section, struct str field)
{
    return find(str_c(section), field);
}

const struct translate_field *translate_field_at(struct str kind, struct str path)
{
    const struct translate_field *row = NULL;
    struct str section = kind;

    while (path.n) {
        struct str part = str_cut(&path, '.');

        row = find(section, str_cut(&part, '['));
        if (!row || row->treatment != TREAT_INSIDE)
            return row;
        section = str_c(row->text);
    }
    return row;
}
