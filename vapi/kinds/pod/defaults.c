/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of pods and pod templates, and the fields that upstream's conversion keeps in step.
 * A template must get fewer of them than a pod: what differs is in defaults_pod(). Source:
 * pkg/apis/core/v1 defaults.go and conversion.go. */
#include "parts.h"

#include <string.h>

/* ---- images ---- */

/* Whether a reference ends in :tag or @digest other than :latest. */
static bool has_fixed_tag(struct str image)
{
    size_t slash = str_rfind(image, '/');
    struct str last = slash < image.n ? str_from(image, slash + 1) : image;
    size_t at = str_find(last, '@');
    struct str named = str_sub(last, 0, at);
    size_t colon = str_find(named, ':');

    if (colon < named.n)
        return !str_eqc(str_from(named, colon + 1), "latest");
    return at < last.n;
}

/* What upstream's parser makes of it; a reference it cannot read has no tag at all. */
static void set_pull_policy(struct arena *a, cJSON *object, const char *key, struct str image)
{
    bool fixed = !kinds_image_reference_ok(image) || has_fixed_tag(image);

    if (!json_str(json_get(object, key)).n)
        json_set_str(a, object, key, fixed ? STR("IfNotPresent") : STR("Always"));
}

/* ---- containers ---- */

static const struct default_rule CONTAINER[] = {
    SET_TEXT_Z("terminationMessagePath", "/dev/termination-log"),
    SET_TEXT_Z("terminationMessagePolicy", "File"),
    SET_TEXT_Z("ports[].protocol", "TCP"),
    SET_TEXT_Z("env[].valueFrom.fieldRef.apiVersion", "v1"),
    SET_BOOL("env[].valueFrom.fileKeyRef.optional", false),
    SET_TEXT_Z("lifecycle.postStart.httpGet.path", "/"),
    SET_TEXT_Z("lifecycle.postStart.httpGet.scheme", "HTTP"),
    SET_TEXT_Z("lifecycle.preStop.httpGet.path", "/"),
    SET_TEXT_Z("lifecycle.preStop.httpGet.scheme", "HTTP"),
    SET_BY("resources", defaults_resources),
};

static const struct default_rule PROBE[] = {
    SET_NUMBER_Z("timeoutSeconds", 1),   SET_NUMBER_Z("periodSeconds", 10),
    SET_NUMBER_Z("successThreshold", 1), SET_NUMBER_Z("failureThreshold", 3),
    SET_TEXT_Z("httpGet.path", "/"),     SET_TEXT_Z("httpGet.scheme", "HTTP"),
    SET_TEXT("grpc.service", ""),
};

static void defaults_container(struct arena *a, cJSON *container)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    cJSON *lifecycle = json_get(container, "lifecycle");

    /* Of a feature that upstream has off. */
    if (json_get(lifecycle, "stopSignal")) {
        json_remove(lifecycle, "stopSignal");
        if (!lifecycle->child)
            json_remove(container, "lifecycle");
    }
    set_pull_policy(a, container, "imagePullPolicy", json_str(json_get(container, "image")));
    defaults_apply(a, container, CONTAINER, COUNT(CONTAINER));
    for (size_t i = 0; i < COUNT(probes); i++)
        defaults_apply(a, json_get(container, probes[i]), PROBE, COUNT(PROBE));
}

/* ---- volumes ---- */

/* Of sources that PersistentVolumes have too. */
static const struct default_rule SOURCE[] = {
    SET_TEXT("hostPath.type", ""),
    SET_TEXT_Z("iscsi.iscsiInterface", "default"),
    SET_TEXT_Z("rbd.pool", "rbd"),
    SET_TEXT_Z("rbd.user", "admin"),
    SET_TEXT_Z("rbd.keyring", "/etc/ceph/keyring"),
    SET_TEXT("azureDisk.cachingMode", "ReadWrite"),
    SET_TEXT("azureDisk.fsType", "ext4"),
    SET_BOOL("azureDisk.readOnly", false),
    SET_TEXT("azureDisk.kind", "Shared"),
    SET_TEXT_Z("scaleIO.storageMode", "ThinProvisioned"),
    SET_TEXT_Z("scaleIO.fsType", "xfs"),
};

static const struct default_rule VOLUME[] = {
    SET_NUMBER("secret.defaultMode", 0644),
    SET_NUMBER("configMap.defaultMode", 0644),
    SET_NUMBER("downwardAPI.defaultMode", 0644),
    SET_TEXT_Z("downwardAPI.items[].fieldRef.apiVersion", "v1"),
    SET_NUMBER("projected.defaultMode", 0644),
    SET_TEXT_Z("projected.sources[].downwardAPI.items[].fieldRef.apiVersion", "v1"),
    SET_NUMBER("projected.sources[].serviceAccountToken.expirationSeconds", 3600),
};

void defaults_volume_source(struct arena *a, cJSON *source)
{
    defaults_apply(a, source, SOURCE, COUNT(SOURCE));
}

static void defaults_volume(struct arena *a, cJSON *volume)
{
    cJSON *image = json_get(volume, "image");

    if (!json_get(volume, "name") ? !json_count(volume) : json_count(volume) == 1)
        json_set(a, volume, "emptyDir", json_new_object(a));
    if (image)
        set_pull_policy(a, image, "pullPolicy", json_str(json_get(image, "reference")));
    defaults_volume_source(a, volume);
    defaults_apply(a, volume, VOLUME, COUNT(VOLUME));
    defaults_claim_spec(a, json_path(volume, "ephemeral.volumeClaimTemplate.spec"));
}

/* ---- pod specs ---- */

static const struct default_rule POD_SPEC[] = {
    SET_TEXT_Z("dnsPolicy", "ClusterFirst"),
    SET_TEXT_Z("restartPolicy", "Always"),
    SET_OBJECT("securityContext"),
    SET_NUMBER("terminationGracePeriodSeconds", 30),
    SET_TEXT_Z("schedulerName", "default-scheduler"),
    SET_BY("overhead", defaults_resource_list),
    SET_BY("resources", defaults_resources),
    DROPPED("schedulingGroup"),
    DROPPED("volumes[].projected.sources[].clusterTrustBundle"),
    DROPPED("volumes[].projected.sources[].podCertificate"),
};

static void defaults_pod_spec(struct arena *a, cJSON *spec)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    struct str name, alias;

    if (!json_is_object(spec))
        return;
    defaults_apply(a, spec, POD_SPEC, COUNT(POD_SPEC));
    json_each(v, json_get(spec, "volumes")) defaults_volume(a, v);
    for (size_t i = 0; i < COUNT(lists); i++)
        json_each(c, json_get(spec, lists[i])) defaults_container(a, c);
    /* The deprecated alias says what the name says. */
    name = json_str(json_get(spec, "serviceAccountName"));
    alias = json_str(json_get(spec, "serviceAccount"));
    if (!name.n && alias.n)
        json_set_str(a, spec, "serviceAccountName", alias);
    else if (name.n && !str_eq(name, alias))
        json_set_str(a, spec, "serviceAccount", name);
}

/* Ancient kubelets obeyed these; upstream drops them on the way in and out. */
static void drop_init_annotations(cJSON *object)
{
    static const char *const names[] = {
        "pod.beta.kubernetes.io/init-containers",
        "pod.alpha.kubernetes.io/init-containers",
        "pod.beta.kubernetes.io/init-container-statuses",
        "pod.alpha.kubernetes.io/init-container-statuses",
    };
    cJSON *metadata = json_get(object, "metadata"), *map = json_get(metadata, "annotations");

    for (size_t i = 0; map && i < COUNT(names); i++)
        json_remove(map, names[i]);
    if (map && !map->child)
        json_remove(metadata, "annotations");
}

void defaults_pod_template(struct arena *a, cJSON *template_)
{
    drop_init_annotations(template_);
    defaults_pod_spec(a, json_get(template_, "spec"));
}

/* ---- pods only ---- */

static void requests_from_limits(struct arena *a, cJSON *containers)
{
    json_each(c, containers)
    {
        cJSON *resources = json_get(c, "resources");
        const cJSON *limits = json_get(resources, "limits");

        if (json_count(limits))
            defaults_merge(a, json_ensure_object(a, resources, "requests"), limits);
    }
}

static void host_ports(struct arena *a, cJSON *containers)
{
    json_each(c, containers) json_each(port, json_get(c, "ports"))
    {
        int64_t inside = json_i64_at(port, "containerPort", 0);

        if (!json_i64_at(port, "hostPort", 0) && inside)
            json_set_i64(a, port, "hostPort", inside);
    }
}

/* podIP is the first of podIPs; where they differ, podIP is right (old kubelets). */
static void sync_addresses(struct arena *a, cJSON *status)
{
    struct str ip = json_str(json_get(status, "podIP"));
    struct str first = json_str_at(json_at(json_get(status, "podIPs"), 0), "ip");
    cJSON *list;

    if (ip.n && !str_eq(ip, first)) {
        list = json_set(a, status, "podIPs", json_new_array(a));
        json_set_str(a, json_append(list, json_new_object(a)), "ip", ip);
    } else if (!ip.n && first.n) {
        json_set_str(a, status, "podIP", first);
    }
}

/* Quantities a kubelet reports. */
static const struct default_rule REPORTED[] = {
    SET_BY("initContainerStatuses[].allocatedResources", defaults_resource_list),
    SET_BY("initContainerStatuses[].resources", defaults_resources),
    SET_BY("containerStatuses[].allocatedResources", defaults_resource_list),
    SET_BY("containerStatuses[].resources", defaults_resources),
    SET_BY("ephemeralContainerStatuses[].allocatedResources", defaults_resource_list),
    SET_BY("ephemeralContainerStatuses[].resources", defaults_resources),
    SET_BY("allocatedResources", defaults_resource_list),
    SET_BY("resources", defaults_resources),
};

void defaults_pod(struct arena *a, cJSON *pod)
{
    cJSON *spec = json_get(pod, "spec");

    drop_init_annotations(pod);
    if (json_is_object(spec)) {
        requests_from_limits(a, json_get(spec, "containers"));
        requests_from_limits(a, json_get(spec, "initContainers"));
        defaults_pod_resources(a, spec);
        if (!json_get(spec, "enableServiceLinks"))
            json_set_bool(a, spec, "enableServiceLinks", true);
        if (json_true(json_get(spec, "hostNetwork"))) {
            host_ports(a, json_get(spec, "containers"));
            host_ports(a, json_get(spec, "initContainers"));
        }
        if (json_i64_at(spec, "terminationGracePeriodSeconds", 0) < 0)
            json_set_i64(a, spec, "terminationGracePeriodSeconds", 1);
    }
    defaults_pod_spec(a, spec);
    sync_addresses(a, json_get(pod, "status"));
    defaults_apply(a, json_get(pod, "status"), REPORTED, COUNT(REPORTED));
}
