/* SPDX-License-Identifier: Apache-2.0 */
/* A kubelet's metrics in Prometheus' text format, cut to the tenant's own. Why: a node's metrics
 * name every pod on it. A line is read by a strict grammar, and written again from what was read;
 * what does not fit is left out. Must never show a series without proof that its pod or claim is
 * the tenant's, a label that is not on the list, or hold more than one line. Source: Prometheus'
 * exposition formats; pkg/kubelet/metrics, cadvisor metrics/prometheus.go. */

#include <string.h>

#include <sublet/translate.h>
#include <sublet/translate_kubelet.h>

#include "shape.h"

#define SERIES_MAGIC    0x73657269u
#define LABELS_MAX      32
#define SERIES_NAME_MAX 256
#define NUMBER_MAX      64
#define HEAD_MAX        8192 /* HELP and TYPE of one family */

struct series_filter {
    unsigned magic;
    struct kubelet_view view;
    struct buf line;
    bool skipping; /* a line that is too long, up to its end */
    struct buf head;
    struct str family; /* of head; heap */
};

/* ---- one line, read ---- */

struct series {
    struct str name;
    struct {
        struct str key, value; /* the value as written, escaped */
    } labels[LABELS_MAX];
    size_t n;
    struct str value; /* with its time */
};

static bool is_name_char(char c, bool first, bool colon)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':'))
        return true;
    return !first && c >= '0' && c <= '9';
}

static struct str cut_name(struct str *rest, bool colon)
{
    size_t n = 0;

    while (n < rest->n && n < SERIES_NAME_MAX && is_name_char(rest->p[n], !n, colon))
        n++;
    struct str name = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return name;
}

static bool cut_char(struct str *rest, char c)
{
    if (!rest->n || rest->p[0] != c)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

/* The inside of a quoted value: \\, \" and \n are its escapes. */
static bool cut_value(struct str *rest, struct str *ret)
{
    size_t i = 0;

    if (!cut_char(rest, '"'))
        return false;
    for (; i < rest->n && rest->p[i] != '"'; i++) {
        if ((unsigned char)rest->p[i] < 0x20 || rest->p[i] == 0x7f)
            return false;
        if (rest->p[i] == '\\' && (++i == rest->n || !memchr("\\\"n", rest->p[i], 3)))
            return false;
    }
    *ret = str_sub(*rest, 0, i);
    *rest = str_from(*rest, i);
    return cut_char(rest, '"') && str_is_utf8(*ret);
}

static struct str label(const struct series *s, const char *key)
{
    for (size_t i = 0; i < s->n; i++) {
        if (str_eqc(s->labels[i].key, key))
            return s->labels[i].value;
    }
    return STR("");
}

static bool read_labels(struct str *rest, struct series *s)
{
    while (!cut_char(rest, '}')) {
        struct str key = cut_name(rest, false), value;

        if (!key.n || s->n == LABELS_MAX || !cut_char(rest, '=') || !cut_value(rest, &value))
            return false;
        for (size_t i = 0; i < s->n; i++) {
            if (str_eq(s->labels[i].key, key))
                return false;
        }
        s->labels[s->n].key = key;
        s->labels[s->n++].value = value;
        if (!cut_char(rest, ',') && !(rest->n && rest->p[0] == '}'))
            return false;
    }
    return true;
}

static size_t cut_digits(struct str *rest)
{
    size_t n = 0;

    while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9')
        n++;
    *rest = str_from(*rest, n);
    return n;
}

static bool cut_sign(struct str *rest)
{
    return cut_char(rest, '-') || cut_char(rest, '+');
}

/* As Go's strconv.FormatFloat writes one: 1, -0.5, 2.5e-05, NaN, +Inf, -Inf. */
static bool is_number(struct str text)
{
    size_t n;

    if (text.n > NUMBER_MAX)
        return false;
    if (str_eqc(text, "NaN"))
        return true;
    cut_sign(&text);
    if (str_eqc(text, "Inf"))
        return true;
    n = cut_digits(&text);
    if (cut_char(&text, '.'))
        n += cut_digits(&text);
    if (n && (cut_char(&text, 'e') || cut_char(&text, 'E'))) {
        cut_sign(&text);
        n = cut_digits(&text);
    }
    return n && !text.n;
}

/* A number, and perhaps its time: milliseconds. */
static bool is_value(struct str text)
{
    struct str number = str_cut(&text, ' ');
    int64_t time;

    return is_number(number) && (!text.p || str_to_i64(text, &time));
}

static bool read_series(struct str line, struct series *s)
{
    s->name = cut_name(&line, true);
    s->n = 0;
    if (!s->name.n || (cut_char(&line, '{') && !read_labels(&line, s)) || !cut_char(&line, ' '))
        return false;
    s->value = str_trim(line);
    return is_value(s->value);
}

/* ---- whose it is ---- */

/* Labels that distinguish the series of one pod, container, volume or node, in the words of its
 * kernel and its kubelet. */
static const char *const SHOWN[] = {
    "container", "cpu",   "device",    "failure_type", "image",      "interface", "le",
    "major",     "minor", "name",      "operation",    "probe_type", "quantile",  "result",
    "scope",     "state", "tcp_state", "type",         "udp_state",
};

/* Of a GPU, as DCGM's exporter names it; Hostname is written by write_series(). */
static const char *const OF_DEVICES[] = {"gpu", "UUID", "modelName", "GPU_I_PROFILE", "GPU_I_ID"};

static bool is_of_a_device(struct str key)
{
    for (size_t i = 0; i < COUNT(OF_DEVICES); i++)
        if (str_eqc(key, OF_DEVICES[i]))
            return true;
    return false;
}

static bool is_shown(struct str key)
{
    for (size_t i = 0; i < COUNT(SHOWN); i++) {
        if (str_eqc(key, SHOWN[i]))
            return true;
    }
    return false;
}

/* Sizes of a disk that all pods of the node share, as in the summary. */
static bool is_of_the_disk(struct str name)
{
    static const char *const families[] = {"container_fs_limit_bytes", "container_fs_inodes_free",
                                           "container_fs_inodes_total"};

    for (size_t i = 0; i < COUNT(families); i++) {
        if (str_eqc(name, families[i]))
            return true;
    }
    return false;
}

struct owner {
    const cJSON *pod, *claim; /* virtual; neither: the node's own */
};

static bool find_owner(const struct kubelet_view *v, const struct series *s, struct owner *ret)
{
    struct str ns = label(s, "namespace"), pod = label(s, "pod"),
               claim = label(s, "persistentvolumeclaim"), uid = label(s, "pod_uid"),
               container = label(s, "container");

    *ret = (struct owner){NULL, NULL};
    if (!ns.n && !pod.n && !claim.n)
        return v->whole;
    if (!str_eq(ns, v->tenant->host_namespace) || (!pod.n && !claim.n) ||
        (is_of_the_disk(s->name) && !v->whole))
        return false;
    if (pod.n)
        ret->pod = v->own(v->ctx, KUBELET_POD, pod, uid.n ? uid : label(s, "uid"));
    if (claim.n)
        ret->claim = v->own(v->ctx, KUBELET_CLAIM, claim, STR(""));
    if ((pod.n && !ret->pod) || (claim.n && !ret->claim))
        return false;
    return !container.n || str_eqc(container, "POD") ||
           (ret->pod && translate_kubelet_has_container(ret->pod, container));
}

/* Families about the machine, or the whole of its control groups: nothing else says of a series
 * without a pod that it names none. */
static bool is_of_the_node(const struct series *s)
{
    static const char *const families[] = {"node_", "machine_", "scrape_error",
                                           "resource_scrape_error"};

    if (str_has_prefix(s->name, STR("container_")))
        return str_eqc(label(s, "id"), "/");
    for (size_t i = 0; i < COUNT(families); i++) {
        if (str_has_prefix(s->name, str_c(families[i])))
            return true;
    }
    return false;
}

/* ---- written again ---- */

static void add_label(struct buf *out, bool *first, struct str key, struct str value)
{
    buf_char(out, *first ? '{' : ',');
    buf_add(out, key);
    buf_addc(out, "=\"");
    buf_add(out, value);
    buf_char(out, '"');
    *first = false;
}

/* The tenant's word for a label's value; STR_NULL: the label is left out. Names and uids of objects
 * need no escapes. */
static struct str value_up(const struct kubelet_view *v, const struct owner *o, struct str key,
                           struct str value)
{
    const cJSON *of = o->pod ? o->pod : o->claim;

    if (is_shown(key) || (v->devices && is_of_a_device(key)))
        return value;
    if (!of) /* is_of_the_node(): the id of all control groups */
        return str_eqc(key, "id") ? value : STR_NULL;
    if (str_eqc(key, "namespace"))
        return json_str_at(of, "metadata.namespace");
    if (str_eqc(key, "pod"))
        return json_str_at(o->pod, "metadata.name");
    if (str_eqc(key, "pod_uid") || str_eqc(key, "uid"))
        return json_str_at(o->pod, "metadata.uid");
    if (str_eqc(key, "persistentvolumeclaim"))
        return json_str_at(o->claim, "metadata.name");
    return STR_NULL;
}

static void write_series(const struct kubelet_view *v, const struct series *s,
                         const struct owner *o, struct buf *out)
{
    bool first = true;

    buf_add(out, s->name);
    for (size_t i = 0; i < s->n; i++) {
        struct str value = value_up(v, o, s->labels[i].key, s->labels[i].value);

        if (value.p)
            add_label(out, &first, s->labels[i].key, value);
    }
    if (v->devices)
        add_label(out, &first, STR("Hostname"), json_str_at(o->pod, "spec.nodeName"));
    if (!first)
        buf_char(out, '}');
    buf_char(out, ' ');
    buf_add(out, s->value);
    buf_char(out, '\n');
}

/* ---- lines ---- */

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return false;
    }
    return str_is_utf8(text);
}

/* "# HELP family ..." and "# TYPE family ..." wait for the first series that is shown. */
static void take_head(struct series_filter *f, struct str line)
{
    bool is_type = str_has_prefix(line, STR("# TYPE "));
    struct str rest = str_from(line, 7), family;

    if (!is_type && !str_has_prefix(line, STR("# HELP ")))
        return;
    family = cut_name(&rest, true);
    if (!family.n || !cut_char(&rest, ' ') || !is_plain(rest) ||
        (is_type && str_word_index("counter|gauge|histogram|summary|untyped", rest) < 0))
        return;
    if (!str_eq(family, f->family)) {
        buf_clear(&f->head);
        mem_free(f->family.p);
        f->family = mem_str(family);
    }
    if (f->head.n + line.n >= HEAD_MAX)
        return;
    buf_add(&f->head, line);
    buf_char(&f->head, '\n');
}

/* The series of a histogram and of a summary have longer names than it has. */
static bool is_of_family(struct str name, struct str family)
{
    static const char *const endings[] = {"", "_bucket", "_sum", "_count"};

    if (!family.n || !str_has_prefix(name, family))
        return false;
    for (size_t i = 0; i < COUNT(endings); i++) {
        if (str_eqc(str_from(name, family.n), endings[i]))
            return true;
    }
    return false;
}

static void take_line(struct series_filter *f, struct str line, struct buf *out)
{
    struct series s;
    struct owner owner;

    if (line.n && line.p[0] == '#') {
        take_head(f, line);
        return;
    }
    if (!read_series(line, &s) || !find_owner(&f->view, &s, &owner) ||
        (!owner.pod && !owner.claim && !is_of_the_node(&s)) || (f->view.devices && !owner.pod))
        return;
    if (is_of_family(s.name, f->family))
        buf_add(out, buf_str(&f->head));
    buf_clear(&f->head);
    write_series(&f->view, &s, &owner, out);
}

static void end_line(struct series_filter *f, struct buf *out)
{
    if (!f->skipping)
        take_line(f, buf_str(&f->line), out);
    f->skipping = false;
    buf_clear(&f->line);
}

void series_filter_add(struct series_filter *f, struct str bytes, struct buf *out)
{
    while (bytes.n) {
        size_t n = str_find(bytes, '\n');
        struct str piece = str_sub(bytes, 0, n);

        f->skipping |= f->line.n + piece.n > SERIES_LINE_MAX;
        if (!f->skipping)
            buf_add(&f->line, piece);
        if (n < bytes.n)
            end_line(f, out);
        bytes = str_from(bytes, n + 1);
    }
}

void series_filter_end(struct series_filter *f, struct buf *out)
{
    end_line(f, out);
}

/* ---- life ---- */

struct series_filter *series_filter_new(const struct kubelet_view *v)
{
    struct series_filter *f = NEW(struct series_filter);

    *f = (struct series_filter){.magic = SERIES_MAGIC, .view = *v};
    return f;
}

struct series_filter *series_filter_free(struct series_filter *f)
{
    if (!f)
        return NULL;
    buf_fini(&f->line);
    buf_fini(&f->head);
    mem_free(f->family.p);
    f->magic = 0;
    return mem_free(f);
}
