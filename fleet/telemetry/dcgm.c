/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an exporter, line by line. Why strict: an answer that was cut in the middle, or
 * one of another server, must never read as a GPU that does nothing. Must stay linear in its
 * bytes, whatever labels it has, and keep nothing beyond the limits of dcgm.h. */
#include "dcgm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/buf.h>
#include <sublet/hash.h>

#define PREFIX     "DCGM_FI_"
#define MOST_VALUE 64 /* characters of a number */

static const char *const LABELS[N_DCGM_LABELS] = {
    [DCGM_GPU] = "gpu",
    [DCGM_UUID] = "UUID",
    [DCGM_INSTANCE] = "GPU_I_ID",
    [DCGM_PROFILE] = "GPU_I_PROFILE",
    [DCGM_MODEL] = "modelName",
    [DCGM_HOSTNAME] = "Hostname",
    [DCGM_NAMESPACE] = "namespace",
    [DCGM_POD] = "pod",
    [DCGM_POD_UID] = "pod_uid",
    [DCGM_CONTAINER] = "container",
};

struct device {
    struct map_entry by_key;
    size_t index;
    uint64_t seen[DCGM_MOST_FAMILIES / 64]; /* families with a sample */
};
struct family {
    struct map_entry by_name;
    size_t index;
};
struct parser {
    struct arena *a;
    struct dcgm out;
    size_t cap_devices, cap_families, cap_samples, line;
    struct map devices, families;
    struct buf key, value;
    struct err *err;
};

static int fault(struct parser *p, const char *what)
{
    return err_set(p->err, &ERR_BAD_REQUEST, "line %zu: %s", p->line, what);
}

/* --- words --- */

static bool is_name_char(char c, bool first, bool colon)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':'))
        return true;
    return !first && c >= '0' && c <= '9';
}

static void skip_blanks(struct str *rest)
{
    size_t n = 0;

    while (n < rest->n && (rest->p[n] == ' ' || rest->p[n] == '\t'))
        n++;
    *rest = str_from(*rest, n);
}

/* Empty: there is none, or it is too long. */
static struct str cut_name(struct str *rest, bool colon)
{
    struct str name;
    size_t n = 0;

    while (n < rest->n && n <= DCGM_MOST_NAME && is_name_char(rest->p[n], !n, colon))
        n++;
    name = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return n <= DCGM_MOST_NAME ? name : STR_NULL;
}

static struct str cut_word(struct str *rest)
{
    struct str word;
    size_t n = 0;

    skip_blanks(rest);
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
        n++;
    word = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return word;
}

static bool cut_char(struct str *rest, char c)
{
    skip_blanks(rest);
    if (!rest->n || rest->p[0] != c)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

/* --- families --- */

static int family_of(struct parser *p, struct str name, size_t *ret)
{
    struct map_entry *e = map_get(&p->families, name);
    struct dcgm *out = &p->out;
    struct family *f;

    if (!e) {
        if (out->n_families == DCGM_MOST_FAMILIES)
            return fault(p, "too many families");
        f = ARENA_NEW(p->a, struct family);
        f->index = out->n_families;
        ARENA_GROW(p->a, out->families, out->n_families, p->cap_families);
        out->families[out->n_families++] =
            (struct dcgm_family){.name = name, .type = STR("untyped")};
        map_put(&p->families, &f->by_name, name);
        e = &f->by_name;
    }
    *ret = CONTAINER(e, struct family, by_name)->index;
    return 0;
}

static bool is_type(struct str word)
{
    return str_word_index("counter|gauge|histogram|summary|untyped", word) >= 0;
}

/* HELP and TYPE of what is kept; any other comment is none of ours. */
static int read_comment(struct parser *p, struct str line)
{
    struct str what = cut_word(&line), name;
    bool help = str_eqc(what, "HELP"), type = str_eqc(what, "TYPE");
    struct dcgm_family *f;
    size_t index;

    if (!help && !type)
        return 0;
    name = cut_word(&line);
    if (!str_has_prefix(name, STR(PREFIX)) || name.n > DCGM_MOST_NAME || !str_is_utf8(line))
        return 0;
    for (size_t i = 0; i < name.n; i++)
        if (!is_name_char(name.p[i], !i, true))
            return fault(p, "a name of a metric is not valid");
    line = str_trim(line);
    if (type && !is_type(line))
        return fault(p, "an unknown type of metric");
    if (family_of(p, name, &index))
        return -1;
    f = &p->out.families[index];
    if (type)
        f->type = line;
    else
        f->help = str_clip(line, DCGM_MOST_VALUE);
    return 0;
}

/* --- labels --- */

/* \\, \" and \n are the escapes of a label's value. Does it end before the line does? */
static bool cut_value(struct parser *p, struct str *rest, struct str *ret)
{
    bool escaped = false;
    size_t i = 0;

    buf_clear(&p->value);
    for (; i < rest->n && rest->p[i] != '"'; i++) {
        char c = rest->p[i];

        if (c == '\\') {
            if (++i == rest->n || !memchr("\\\"n", rest->p[i], 3))
                return false;
            if (!escaped)
                buf_add(&p->value, str_sub(*rest, 0, i - 1));
            escaped = true;
            c = rest->p[i] == 'n' ? '\n' : rest->p[i];
        }
        if (escaped)
            buf_char(&p->value, c);
    }
    if (i == rest->n)
        return false;
    *ret = escaped ? arena_str(p->a, buf_str(&p->value)) : str_sub(*rest, 0, i);
    *rest = str_from(*rest, i + 1);
    return str_is_utf8(*ret);
}

static int label_index(struct str name)
{
    for (int i = 0; i < N_DCGM_LABELS; i++)
        if (str_eqc(name, LABELS[i]))
            return i;
    return str_eqc(name, "hostname") ? DCGM_HOSTNAME : -1;
}

/* Labels of one line. */
struct line_labels {
    struct dcgm_device device;
    unsigned seen; /* bits of enum dcgm_label */
    bool twice;
};

static int read_label(struct parser *p, struct str *rest, struct line_labels *ret)
{
    struct str name, value;
    int index;

    skip_blanks(rest);
    name = cut_name(rest, false);
    if (!name.n || !cut_char(rest, '=') || !cut_char(rest, '"'))
        return fault(p, "want name=\"value\" in the labels");
    if (!cut_value(p, rest, &value))
        return fault(p, "a value of a label does not end, or has bytes that it may not have");
    index = label_index(name);
    if (index < 0)
        return 0;
    if (value.n > DCGM_MOST_VALUE)
        return fault(p, "a value of a label is too long");
    ret->twice |= ret->seen >> index & 1;
    ret->seen |= 1U << index;
    ret->device.labels[index] = value;
    return 0;
}

static int read_labels(struct parser *p, struct str *rest, struct line_labels *ret)
{
    while (!cut_char(rest, '}')) {
        if (read_label(p, rest, ret))
            return -1;
        skip_blanks(rest);
        if (!cut_char(rest, ',') && !(rest->n && rest->p[0] == '}'))
            return fault(p, "want a comma or the end of the labels");
    }
    return 0;
}

/* --- samples --- */

static bool is_decimal(struct str text)
{
    bool digits = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        digits |= c >= '0' && c <= '9';
        if (!(c >= '0' && c <= '9') && !memchr("+-.eE", c, 5))
            return false;
    }
    return digits;
}

/* As Go's strconv.ParseFloat reads one, but for hexadecimal ones, which no exporter writes. */
static bool number_of(struct str text, double *ret)
{
    static const char *const words[] = {"nan", "inf", "infinity"};
    char copy[MOST_VALUE + 1];
    struct str word = text;
    char *end;

    if (!text.n || text.n > MOST_VALUE)
        return false;
    if (word.p[0] == '+' || word.p[0] == '-')
        word = str_from(word, 1);
    for (size_t i = 0; i < COUNT(words); i++)
        if (str_eq_nocase(word, str_c(words[i]))) {
            *ret = (double)NAN;
            return true;
        }
    if (!is_decimal(text))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    *ret = strtod(copy, &end);
    return end == copy + text.n;
}

static int device_of(struct parser *p, const struct dcgm_device *labels, struct device **ret)
{
    struct dcgm *out = &p->out;
    struct map_entry *e;
    struct device *d;

    buf_clear(&p->key);
    for (size_t i = 0; i < N_DCGM_LABELS; i++)
        buf_printf(&p->key, "%zu:%.*s", labels->labels[i].n, STR_F(labels->labels[i]));
    e = map_get(&p->devices, buf_str(&p->key));
    if (!e) {
        if (out->n_devices == DCGM_MOST_DEVICES)
            return fault(p, "too many devices");
        d = ARENA_NEW(p->a, struct device);
        d->index = out->n_devices;
        ARENA_GROW(p->a, out->devices, out->n_devices, p->cap_devices);
        out->devices[out->n_devices++] = *labels;
        map_put(&p->devices, &d->by_key, arena_str(p->a, buf_str(&p->key)));
        e = &d->by_key;
    }
    *ret = CONTAINER(e, struct device, by_key);
    return 0;
}

static int keep_sample(struct parser *p, struct str name, const struct line_labels *labels,
                       double value)
{
    struct dcgm *out = &p->out;
    struct device *d = NULL;
    size_t family = 0;

    if (!str_has_prefix(name, STR(PREFIX)) || !isfinite(value) || labels->twice ||
        !labels->device.labels[DCGM_GPU].n)
        return 0;
    if (family_of(p, name, &family) || device_of(p, &labels->device, &d))
        return -1;
    if (d->seen[family / 64] >> family % 64 & 1)
        return 0;
    d->seen[family / 64] |= UINT64_C(1) << family % 64;
    ARENA_GROW(p->a, out->samples, out->n_samples, p->cap_samples);
    out->samples[out->n_samples++] = (struct dcgm_sample){
        .device = (uint16_t)d->index, .family = (uint16_t)family, .value = value};
    return 0;
}

static int read_sample(struct parser *p, struct str line)
{
    struct line_labels labels = {0};
    struct str name = cut_name(&line, true), text;
    int64_t time_ms;
    double value;

    if (!name.n)
        return fault(p, "want a name of a metric");
    if (cut_char(&line, '{') && read_labels(p, &line, &labels))
        return -1;
    if (!number_of(cut_word(&line), &value))
        return fault(p, "want a number");
    text = cut_word(&line);
    if (text.n && !str_to_i64(text, &time_ms))
        return fault(p, "want a time in milliseconds");
    if (cut_word(&line).n)
        return fault(p, "want the end of the line");
    return keep_sample(p, name, &labels, value);
}

static int read_line(struct parser *p, struct str line)
{
    if (++p->line > DCGM_MOST_LINES)
        return fault(p, "too many lines");
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    skip_blanks(&line);
    if (!line.n)
        return 0;
    return line.p[0] == '#' ? read_comment(p, str_from(line, 1)) : read_sample(p, line);
}

static int read_all(struct parser *p, struct str text)
{
    if (text.n > DCGM_MOST_BYTES)
        return err_set(p->err, &ERR_TOO_LARGE, "more than %zu bytes", DCGM_MOST_BYTES);
    if (text.n && text.p[text.n - 1] != '\n')
        return err_set(p->err, &ERR_BAD_REQUEST, "it ends within a line");
    while (text.n)
        if (read_line(p, str_cut(&text, '\n')))
            return -1;
    return 0;
}

/* A GPU, or an instance of one, whoever has it. */
struct gpu {
    struct map_entry by_key;
    size_t first; /* of its devices that a pod has */
    bool disputed;
};

static struct gpu *gpu_of(struct parser *p, struct map *gpus, size_t index)
{
    const struct str *labels = p->out.devices[index].labels;
    struct map_entry *e;
    struct gpu *g;

    buf_clear(&p->key);
    buf_printf(&p->key, "%zu:%.*s%.*s", labels[DCGM_GPU].n, STR_F(labels[DCGM_GPU]),
               STR_F(labels[DCGM_INSTANCE]));
    e = map_get(gpus, buf_str(&p->key));
    if (e)
        return CONTAINER(e, struct gpu, by_key);
    g = ARENA_NEW(p->a, struct gpu);
    g->first = index;
    map_put(gpus, &g->by_key, arena_str(p->a, buf_str(&p->key)));
    return g;
}

static void find_disputed(struct parser *p)
{
    struct dcgm *out = &p->out;
    struct gpu **gpus = arena_alloc(p->a, (out->n_devices + 1) * sizeof(struct gpu *));
    struct map by_key = {0};

    for (size_t i = 0; i < out->n_devices; i++) {
        if (!out->devices[i].labels[DCGM_NAMESPACE].n)
            continue;
        gpus[i] = gpu_of(p, &by_key, i);
        gpus[i]->disputed |= !str_eq(out->devices[gpus[i]->first].labels[DCGM_NAMESPACE],
                                     out->devices[i].labels[DCGM_NAMESPACE]);
    }
    for (size_t i = 0; i < out->n_devices; i++)
        out->devices[i].disputed = gpus[i] && gpus[i]->disputed;
    map_clear(&by_key);
}

int dcgm_parse(struct arena *a, struct str text, struct dcgm *ret, struct err *err)
{
    struct parser p = {.a = a, .key = BUF_INIT(0), .value = BUF_INIT(0), .err = err};
    int result = read_all(&p, text);

    if (!result)
        find_disputed(&p);
    map_clear(&p.devices);
    map_clear(&p.families);
    buf_fini(&p.key);
    buf_fini(&p.value);
    if (!result)
        *ret = p.out;
    return result;
}

int dcgm_family(const struct dcgm *d, const char *name)
{
    for (size_t i = 0; i < d->n_families; i++)
        if (str_eqc(d->families[i].name, name))
            return (int)i;
    return -1;
}
