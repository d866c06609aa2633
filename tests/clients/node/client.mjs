// SPDX-License-Identifier: Apache-2.0
// The scenario in the idiom of @kubernetes/client-node: generated clients, informer, object API, WebSocket streams.

import { PassThrough } from 'node:stream';
import * as k8s from '@kubernetes/client-node';
import { NAMESPACE, eventually, run, step } from './script.mjs';

const GROUP = 'clients.example.com';
const namespace = NAMESPACE;
const kc = new k8s.KubeConfig();
kc.loadFromFile(process.env.KUBECONFIG);
const core = kc.makeApiClient(k8s.CoreV1Api);
const apps = kc.makeApiClient(k8s.AppsV1Api);
const custom = kc.makeApiClient(k8s.CustomObjectsApi);
const extensions = kc.makeApiClient(k8s.ApiextensionsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(kc);

const configMap = (name, data, meta) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ...meta }, data });
const podSpec = { containers: [{ name: 'main', image: 'example.com/x:1' }] };
const deployment = (name, replicas) => ({
    metadata: { name },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: podSpec } },
});
const as = (strategy) => k8s.setHeaderOptions('Content-Type', strategy);

// What the client raises, with the Status in it.
async function refused(call) {
    try {
        await call();
    } catch (e) {
        if (!(e instanceof k8s.ApiException)) throw e;
        return { type: 'ApiException', code: e.code, status: typeof e.body === 'string' ? JSON.parse(e.body) : e.body };
    }
    return 'succeeded';
}

const names = (list) => list.items.map((o) => o.metadata.name);

step('version', async () => {
    const v = await kc.makeApiClient(k8s.VersionApi).getCode();
    return [v.major, v.minor, v.platform];
});

step('discovery', async () => {
    const groups = (await kc.makeApiClient(k8s.ApisApi).getAPIVersions()).groups;
    const resources = (await kc.makeApiClient(k8s.BatchV1Api).getAPIResources()).resources;
    return [groups.map((g) => [g.name, g.preferredVersion.version]), resources.map((r) => [r.name, r.kind, r.verbs.sort()])];
});

step('namespace', async () => {
    const made = await core.createNamespace({ body: { metadata: { name: namespace } } });
    await eventually(async () => (await core.listNamespacedServiceAccount({ namespace })).items.length, 'the default service account');
    return made.status.phase;
});

step('create', async () => [
    await core.createNamespacedConfigMap({ namespace, body: configMap('one', { a: '1' }, { labels: { n: '1' } }) }),
    await refused(() => core.createNamespacedConfigMap({ namespace, body: configMap('one') })),
]);

step('get', async () => [
    await core.readNamespacedConfigMap({ namespace, name: 'one' }),
    await refused(() => core.readNamespacedConfigMap({ namespace, name: 'none' })),
]);

step('list-in-pages', async () => {
    for (let i = 0; i < 7; i++)
        await core.createNamespacedConfigMap({ namespace, body: configMap(`page-${i}`, {}, { labels: { page: String(i % 2) } }) });
    const pages = [];
    let more;
    do {
        const answer = await core.listNamespacedConfigMap({ namespace, limit: 3, _continue: more, labelSelector: 'page' });
        pages.push([names(answer), answer.metadata.remainingItemCount ?? null]);
        more = answer.metadata._continue;
    } while (more);
    return [pages, await refused(() => core.listNamespacedConfigMap({ namespace, limit: 3, _continue: 'nonsense' }))];
});

step('selectors', async () => [
    names(await core.listNamespacedConfigMap({ namespace, labelSelector: 'page notin (1),page' })),
    names(await core.listNamespacedConfigMap({ namespace, fieldSelector: 'metadata.name=page-3' })),
    await refused(() => core.listNamespacedConfigMap({ namespace, fieldSelector: 'data.a=1' })),
]);

step('dry-run', async () => [
    (await core.createNamespacedConfigMap({ namespace, body: configMap('dry', { a: 'b' }), dryRun: 'All' })).data,
    await refused(() => core.readNamespacedConfigMap({ namespace, name: 'dry' })),
]);

// Events of a watch until `count` have come or it ends.
function watched(query, count) {
    const got = [];
    return new Promise((resolve, reject) => {
        let request;
        new k8s.Watch(kc)
            .watch(`/api/v1/namespaces/${namespace}/configmaps`, { timeoutSeconds: 20, ...query }, (type, o) => {
                const gone = type === 'ERROR' ? [o.code, o.reason, o.message] : [o.metadata.name ?? null, o.data ?? null, o.metadata.annotations ?? null];
                got.push([type, ...gone]);
                if (got.length === count) {
                    request?.abort();
                    resolve(got);
                }
            }, (e) => (e && !got.length ? reject(e) : resolve(got)))
            .then((r) => (request = r), reject);
    });
}

step('watch', async () => {
    const resourceVersion = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('seen', { a: '1' }) });
    await core.replaceNamespacedConfigMap({ namespace, name: 'seen', body: { ...made, data: { a: '2' } } });
    await core.deleteNamespacedConfigMap({ namespace, name: 'seen' });
    return watched({ resourceVersion }, 3);
});

step('watch-with-bookmarks', () =>
    watched({ sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan', fieldSelector: 'metadata.name=one' }, 2));

step('informer', async () => {
    const labelSelector = 'cached=1';
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const informer = k8s.makeInformer(kc, path, () => core.listNamespacedConfigMap({ namespace, labelSelector }), labelSelector);
    const got = [];
    for (const verb of ['add', 'update', 'delete']) informer.on(verb, (o) => got.push([verb, o.metadata.name, o.data]));
    await core.createNamespacedConfigMap({ namespace, body: configMap('cached-0', { v: '1' }, { labels: { cached: '1' } }) });
    await informer.start();
    await core.createNamespacedConfigMap({ namespace, body: configMap('cached-1', { v: '1' }, { labels: { cached: '1' } }) });
    await eventually(() => informer.list(namespace).length === 2, 'the second object');
    await core.patchNamespacedConfigMap({ namespace, name: 'cached-1', body: { data: { v: '2' } } }, as(k8s.PatchStrategy.MergePatch));
    await eventually(() => informer.get('cached-1', namespace).data.v === '2', 'the change');
    await core.deleteNamespacedConfigMap({ namespace, name: 'cached-0' });
    await eventually(() => !informer.get('cached-0', namespace), 'the deletion');
    await informer.stop();
    return got;
});

step('replace', async () => {
    const read = await core.readNamespacedConfigMap({ namespace, name: 'one' });
    const body = { ...read, data: { a: '2' } };
    const done = await core.replaceNamespacedConfigMap({ namespace, name: 'one', body, fieldManager: 'replacer' });
    return [done, await refused(() => core.replaceNamespacedConfigMap({ namespace, name: 'one', body }))];
});

step('patches', async () => {
    const patch = (strategy, body) => core.patchNamespacedConfigMap({ namespace, name: 'one', body, fieldManager: 'patcher' }, as(strategy));
    const { JsonPatch, MergePatch, StrategicMergePatch } = k8s.PatchStrategy;
    return [
        await patch(JsonPatch, [{ op: 'test', path: '/data/a', value: '2' }, { op: 'add', path: '/data/b', value: 'x' }]),
        await refused(() => patch(JsonPatch, [{ op: 'test', path: '/data/a', value: '9' }])),
        await patch(MergePatch, { data: { b: null, c: 'y' } }),
        await patch(StrategicMergePatch, { metadata: { labels: { n: null, m: '2' } } }),
        await refused(() => patch('text/plain', { data: {} })),
    ];
});

step('apply', async () => {
    const apply = (manager, data, force) => objects.patch(configMap('applied', data), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
    return [
        await apply('first', { a: '1', b: '1' }),
        await refused(() => apply('second', { a: '2' })),
        await apply('second', { a: '2' }, true),
        await apply('first', { b: '1' }),
    ];
});

step('status-and-scale', async () => {
    const name = 'web';
    await apps.createNamespacedDeployment({ namespace, body: deployment(name, 1) });
    const ready = () =>
        eventually(async () => {
            const d = await apps.readNamespacedDeploymentStatus({ namespace, name });
            return d.status.observedGeneration === d.metadata.generation && (d.status.availableReplicas ?? 0) === d.spec.replicas && d;
        }, 'the deployment to be available');
    const first = await ready();
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name });
    scale.spec.replicas = 2;
    const scaled = await apps.replaceNamespacedDeploymentScale({ namespace, name, body: scale });
    const second = await ready();
    await apps.deleteNamespacedDeployment({ namespace, name, propagationPolicy: 'Foreground' });
    await eventually(async () => !(await apps.listNamespacedReplicaSet({ namespace })).items.length, 'the replica set to be gone');
    return [first.spec, [first, second].map((d) => [d.status.replicas, d.status.availableReplicas, d.metadata.generation]), scaled.spec];
});

step('delete', async () => {
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('guarded') });
    const remove = (preconditions) => core.deleteNamespacedConfigMap({ namespace, name: 'guarded', body: { preconditions } });
    const seen = [await refused(() => remove({ uid: '00000000-0000-0000-0000-000000000000' })), await remove({ uid: made.metadata.uid }), await refused(() => remove({}))];
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'page=1' });
    return [seen, names(await core.listNamespacedConfigMap({ namespace, labelSelector: 'page' }))];
});

const gadgets = { group: GROUP, version: 'v1', namespace, plural: 'gadgets' };
const gadget = (name, spec) => ({ apiVersion: `${GROUP}/v1`, kind: 'Gadget', metadata: { name, namespace }, spec });

step('custom-objects', async () => {
    const spec = { type: 'object', required: ['size'], properties: { size: { type: 'integer', minimum: 1 }, mode: { type: 'string', _default: 'slow' }, replicas: { type: 'integer' } } };
    const status = { type: 'object', properties: { phase: { type: 'string' } } };
    const made = await extensions.createCustomResourceDefinition({
        body: {
            metadata: { name: `gadgets.${GROUP}` },
            spec: {
                group: GROUP, scope: 'Namespaced', names: { kind: 'Gadget', plural: 'gadgets' },
                versions: [{
                    name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
                    subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
                }],
            },
        },
    });
    await eventually(async () => {
        const d = await extensions.readCustomResourceDefinition({ name: made.metadata.name });
        return d.status.conditions?.some((c) => c.type === 'Established' && c.status === 'True');
    }, 'the CRD to be established');
    let first;
    await eventually(async () => {
        const answer = await refused(async () => (first = await custom.createNamespacedCustomObject({ ...gadgets, body: gadget('g', { size: 3, unknown: 1 }) })));
        return answer === 'succeeded';
    }, 'the kind to be served');
    const patched = await custom.patchNamespacedCustomObjectStatus({ ...gadgets, name: 'g', body: { status: { phase: 'Ready' }, spec: { size: 9 } } }, as(k8s.PatchStrategy.MergePatch));
    const read = await objects.read(gadget('g'));
    const applied = await objects.patch(gadget('h', { size: 1 }), undefined, undefined, 'node', true, k8s.PatchStrategy.ServerSideApply);
    return [
        made.spec, first, patched, read.spec, applied, (await objects.list(`${GROUP}/v1`, 'Gadget', namespace)).items.map((o) => o.metadata.name),
        await refused(() => custom.createNamespacedCustomObject({ ...gadgets, body: gadget('bad', { size: 0 }) })),
        await refused(() => objects.create(gadget('bad', {}))),
    ];
});

step('watch-from-an-old-revision', () => watched({ resourceVersion: '1' }, 1));

step('invalid', async () => {
    const bad = deployment('bad', -1);
    bad.spec.selector.matchLabels.app = 'other';
    return [await refused(() => apps.createNamespacedDeployment({ namespace, body: bad })), await refused(() => core.createNamespacedConfigMap({ namespace: 'none', body: { metadata: { name: 'x' } } }))];
});

step('service-account', async () => {
    await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'reader' } } });
    const answer = await core.createNamespacedServiceAccountToken({ namespace, name: 'reader', body: { spec: { audiences: [], expirationSeconds: 3600 } } });
    const loaded = new k8s.KubeConfig();
    loaded.loadFromClusterAndUser(kc.getCurrentCluster(), { name: 'reader', token: answer.status.token });
    const reader = loaded.makeApiClient(k8s.CoreV1Api);
    const before = await refused(() => reader.listNamespacedConfigMap({ namespace }));
    const rbac = kc.makeApiClient(k8s.RbacAuthorizationV1Api);
    await rbac.createNamespacedRole({ namespace, body: { metadata: { name: 'reader' }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }] } });
    await rbac.createNamespacedRoleBinding({
        namespace,
        body: { metadata: { name: 'reader' }, subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace }], roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' } },
    });
    await eventually(async () => (await refused(() => reader.listNamespacedConfigMap({ namespace }))) === 'succeeded', 'the role');
    const who = await loaded.makeApiClient(k8s.AuthenticationV1Api).createSelfSubjectReview({ body: {} });
    const may = async (attributes) => {
        const body = { spec: { resourceAttributes: { namespace, ...attributes } } };
        return (await loaded.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({ body })).status.allowed;
    };
    return [
        before, await refused(() => reader.deleteNamespacedConfigMap({ namespace, name: 'one' })), who.status.userInfo.username, who.status.userInfo.groups.sort(),
        [await may({ verb: 'get', resource: 'configmaps' }), await may({ verb: 'create', resource: 'configmaps' })],
    ];
});

step('impersonation', async () => {
    const headers = k8s.setHeaderOptions('Impersonate-User', 'jane');
    const who = await kc.makeApiClient(k8s.AuthenticationV1Api).createSelfSubjectReview({ body: {} }, headers);
    return [who.status.userInfo, await refused(() => core.listNamespacedConfigMap({ namespace }, headers))];
});

step('events', async () => {
    const one = await core.readNamespacedConfigMap({ namespace, name: 'one' });
    const involvedObject = { kind: 'ConfigMap', apiVersion: 'v1', name: 'one', namespace, uid: one.metadata.uid };
    await core.createNamespacedEvent({
        namespace,
        body: { metadata: { name: 'one.1' }, involvedObject, reason: 'Seen', message: 'a look', type: 'Normal', firstTimestamp: new Date('2026-01-02T03:04:05Z'), eventTime: new k8s.V1MicroTime('2026-01-02T03:04:05.678Z'), action: 'Look', reportingComponent: 'example.com/c', reportingInstance: 'c-1' },
    });
    return (await kc.makeApiClient(k8s.EventsV1Api).listNamespacedEvent({ namespace, fieldSelector: 'reason=Seen' })).items;
});

step('lease', async () => {
    const api = kc.makeApiClient(k8s.CoordinationV1Api);
    const spec = { holderIdentity: 'a', leaseDurationSeconds: 15, acquireTime: new k8s.V1MicroTime(), renewTime: new k8s.V1MicroTime() };
    const made = await api.createNamespacedLease({ namespace, body: { metadata: { name: 'leader' }, spec } });
    made.spec.holderIdentity = 'b';
    return [made.spec, (await api.replaceNamespacedLease({ namespace, name: 'leader', body: made })).spec.holderIdentity];
});

step('pod-runs', async () => {
    await core.createNamespacedPod({ namespace, body: { metadata: { name: 'runs' }, spec: podSpec } });
    const pod = await eventually(async () => {
        const p = await core.readNamespacedPod({ namespace, name: 'runs' });
        return p.status.phase === 'Running' && p;
    }, 'the pod to run');
    return [pod.status.qosClass, pod.status.conditions.map((c) => [c.type, c.status]).sort(), pod.spec.tolerations];
});

// A stream and what was written to it.
function collected() {
    const stream = new PassThrough();
    const parts = [];
    stream.on('data', (part) => parts.push(part));
    return { stream, text: () => Buffer.concat(parts).toString() };
}

step('logs', async () => {
    const out = collected();
    const ended = new Promise((resolve) => out.stream.on('end', resolve));
    await new k8s.Log(kc).log(namespace, 'runs', 'main', out.stream, { tailLines: 2 });
    await ended;
    return [out.text(), await core.readNamespacedPodLog({ namespace, name: 'runs', container: 'main', tailLines: 1 })];
});

step('exec', async () => {
    const seen = [];
    for (const command of [['/bin/echo', 'hello'], ['/bin/sh', '-c', 'echo no >&2; exit 3']]) {
        const [out, err] = [collected(), collected()];
        const status = await new Promise((resolve, reject) =>
            new k8s.Exec(kc).exec(namespace, 'runs', 'main', command, out.stream, err.stream, null, false, resolve).catch(reject));
        seen.push([out.text(), err.text(), status]);
    }
    return seen;
});

step('port-forward', async () => {
    const [out, err, sent] = [collected(), collected(), '0123456789'.repeat(5000)];
    const input = new PassThrough();
    const socket = await new k8s.PortForward(kc).portForward(namespace, 'runs', [8080], out.stream, err.stream, input);
    input.write(sent);
    await eventually(() => out.text().length >= sent.length, 'the echo');
    socket.close();
    return [out.text() === sent, err.text()];
});

step('eviction', async () => {
    const answer = await core.createNamespacedPodEviction({ namespace, name: 'runs', body: { metadata: { name: 'runs' }, deleteOptions: { gracePeriodSeconds: 0 } } });
    await eventually(async () => !(await core.listNamespacedPod({ namespace, fieldSelector: 'metadata.name=runs' })).items.length, 'the pod to be gone');
    return answer;
});

step('end-of-the-namespace', async () => {
    await extensions.deleteCustomResourceDefinition({ name: `gadgets.${GROUP}` });
    await core.deleteNamespace({ name: namespace });
    await eventually(async () => (await refused(() => core.readNamespace({ name: namespace }))) !== 'succeeded', 'the namespace to be gone');
    return refused(() => core.readNamespace({ name: namespace }));
});

await run();
