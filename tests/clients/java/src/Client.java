// SPDX-License-Identifier: Apache-2.0

import static java.util.stream.Collectors.toList;

import io.fabric8.kubernetes.api.model.*;
import io.fabric8.kubernetes.api.model.apiextensions.v1.*;
import io.fabric8.kubernetes.api.model.apps.*;
import io.fabric8.kubernetes.api.model.autoscaling.v1.Scale;
import io.fabric8.kubernetes.api.model.authentication.*;
import io.fabric8.kubernetes.api.model.authorization.v1.*;
import io.fabric8.kubernetes.api.model.rbac.*;
import io.fabric8.kubernetes.client.*;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.dsl.*;
import io.fabric8.kubernetes.client.dsl.base.*;
import io.fabric8.kubernetes.client.extended.leaderelection.*;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.*;
import java.io.*;
import java.net.Socket;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;

/** The scenario in the idiom of the fabric8 client: builders, edits, informers, server-side apply, typed kinds. */
public final class Client {
    private static final String NS = Script.NAMESPACE;
    private final KubernetesClient client = new KubernetesClientBuilder().build();
    private final Script script = new Script(client);
    private final NonNamespaceOperation<ConfigMap, ConfigMapList, Resource<ConfigMap>> maps = client.configMaps().inNamespace(NS);

    public static void main(String[] args) {
        new Client().run();
    }

    private void run() {
        script.step("version", () -> Script.list(client.getKubernetesVersion().getMajor(), client.getKubernetesVersion().getMinor()));
        script.step("discovery", this::discovery);
        script.step("namespace", this::namespace);
        script.step("create", this::create);
        script.step("lists", this::lists);
        script.step("dry-run", () -> Script.list(maps.resource(map("dry", "a", "b")).dryRun().create().getData(), maps.withName("dry").get()));
        script.step("watch", this::watch);
        script.step("informer", this::informer);
        script.step("changes", this::changes);
        script.step("apply", this::apply);
        script.step("scale", this::scale);
        script.step("deletion", this::deletion);
        script.step("custom-objects", this::customObjects);
        script.step("watch-from-an-old-revision", this::watchOld);
        script.step("service-account", this::serviceAccount);
        script.step("impersonation", this::impersonation);
        script.step("events", this::events);
        script.step("leader-election", this::leaderElection);
        script.step("pod", this::pod);
        script.step("streams", this::streams);
        script.step("port-forward", this::portForward);
        script.step("end", this::end);
        script.end();
    }

    private static ConfigMap map(String name, String... data) {
        Map<String, String> d = new TreeMap<>();
        for (int i = 0; i < data.length; i += 2) d.put(data[i], data[i + 1]);
        return new ConfigMapBuilder().withNewMetadata().withName(name).endMetadata().withData(d).build();
    }

    private static ConfigMap labelled(String name, String key, String value) {
        return map(name).edit().editMetadata().addToLabels(key, value).endMetadata().build();
    }

    private static PodSpec podSpec() {
        return new PodSpecBuilder().addNewContainer().withName("main").withImage("example.com/x:1").endContainer().build();
    }

    private static Deployment deployment(String name, int replicas) {
        return new DeploymentBuilder().withNewMetadata().withName(name).endMetadata().withNewSpec().withReplicas(replicas)
            .withNewSelector().addToMatchLabels("app", name).endSelector()
            .withNewTemplate().withNewMetadata().addToLabels("app", name).endMetadata().withSpec(podSpec()).endTemplate().endSpec().build();
    }

    private static List<String> names(List<? extends HasMetadata> items) {
        return items.stream().map(o -> o.getMetadata().getName()).collect(toList());
    }

    private Object discovery() {
        List<Object> groups = client.getApiGroups().getGroups().stream().map(g -> (Object) g.getName()).collect(toList());
        List<Object> kinds = client.getApiResources("apps/v1").getResources().stream()
            .map(r -> (Object) Script.list(r.getName(), r.getKind(), r.getVerbs())).collect(toList());
        return Script.list(groups, kinds, client.supports(Gadget.class), client.supports("batch/v1", "CronJob"));
    }

    private Object namespace() throws Exception {
        client.namespaces().resource(new NamespaceBuilder().withNewMetadata().withName(NS).endMetadata().build()).create();
        client.serviceAccounts().inNamespace(NS).withName("default").waitUntilCondition(Objects::nonNull, Script.WAIT, TimeUnit.MILLISECONDS);
        return client.namespaces().withName(NS).get().getStatus();
    }

    private Object create() throws Exception {
        ConfigMap made = maps.resource(map("one", "a", "1")).create();
        return Script.list(made, Script.refused(() -> maps.resource(map("one")).create()), maps.withName("none").get(),
            Script.refused(() -> maps.withName("none").require()), maps.resource(map("one", "a", "1")).createOr(NonDeletingOperation::update),
            Script.refused(() -> client.configMaps().inNamespace("none").resource(map("x")).create()));
    }

    private Object lists() throws Exception {
        for (int i = 0; i < 7; i++) maps.resource(labelled("page-" + i, "page", String.valueOf(i % 2))).create();
        List<Object> pages = new ArrayList<>();
        String more = null;
        do {
            ConfigMapList answer = maps.list(new ListOptionsBuilder().withLimit(3L).withContinue(more).withLabelSelector("page in (0,1)").build());
            pages.add(Script.list(names(answer.getItems()), answer.getMetadata().getRemainingItemCount()));
            more = answer.getMetadata().getContinue();
        } while (more != null && !more.isEmpty());
        return Script.list(pages, names(maps.withLabel("page", "1").list().getItems()), names(maps.withLabelNotIn("page", "1").withLabel("page").list().getItems()),
            names(maps.withField("metadata.name", "page-3").list().getItems()), names(maps.withoutField("metadata.name", "page-3").withLabel("page", "1").list().getItems()),
            Script.refused(() -> maps.withField("data.a", "1").list()));
    }

    /** Collects the events of a watch until one of them is the last. */
    private static final class Seen<T extends HasMetadata> implements Watcher<T> {
        final List<Object> events = new CopyOnWriteArrayList<>();
        final CompletableFuture<Object> closed = new CompletableFuture<>();

        @Override
        public void eventReceived(Action action, T o) {
            events.add(Script.list(action.name(), o.getMetadata().getName(), o instanceof ConfigMap m ? String.valueOf(m.getData()) : null));
        }

        @Override
        public void onClose(WatcherException e) {
            closed.complete(Script.list(e.isHttpGone(), e.asClientException().getStatus()));
        }
    }

    private Object watch() throws Exception {
        String begin = maps.list().getMetadata().getResourceVersion();
        Seen<ConfigMap> seen = new Seen<>();
        try (Watch w = maps.watch(new ListOptionsBuilder().withResourceVersion(begin).withTimeoutSeconds(60L).build(), seen)) {
            maps.resource(map("seen", "a", "1")).create();
            maps.withName("seen").edit(o -> o.edit().addToData("a", "2").build());
            maps.withName("seen").delete();
            Script.eventually("three events", () -> seen.events.size() == 3);
        }
        return seen.events;
    }

    private Object watchOld() throws Exception {
        Seen<ConfigMap> seen = new Seen<>();
        try (Watch w = maps.watch(new ListOptionsBuilder().withResourceVersion("1").build(), seen)) {
            return seen.closed.get(Script.WAIT, TimeUnit.MILLISECONDS);
        }
    }

    private Object informer() throws Exception {
        Set<String> resynced = ConcurrentHashMap.newKeySet();
        List<Object> events = new CopyOnWriteArrayList<>();
        maps.resource(labelled("cached-0", "cached", "1")).create();
        try (SharedIndexInformer<ConfigMap> informer = maps.withLabel("cached", "1").inform(new ResourceEventHandler<ConfigMap>() {
            @Override
            public void onAdd(ConfigMap o) {
                events.add("add " + o.getMetadata().getName());
            }

            @Override
            public void onUpdate(ConfigMap before, ConfigMap after) {
                boolean same = before.getMetadata().getResourceVersion().equals(after.getMetadata().getResourceVersion());
                if (same) resynced.add(after.getMetadata().getName());
                else events.add("update " + after.getMetadata().getName() + " " + after.getData());
            }

            @Override
            public void onDelete(ConfigMap o, boolean unknown) {
                events.add("delete " + o.getMetadata().getName() + " " + unknown);
            }
        }, 1000L)) {
            maps.resource(labelled("cached-1", "cached", "1")).create();
            Script.eventually("both objects", () -> informer.getStore().list().size() == 2);
            Script.eventually("a resync", () -> resynced.size() == 2);
            maps.withName("cached-1").edit(o -> o.edit().addToData("v", "2").build());
            Script.eventually("the change", () -> "2".equals(data(informer.getStore().getByKey(NS + "/cached-1")).get("v")));
            maps.withName("cached-0").delete();
            Script.eventually("the deletion", () -> informer.getStore().list().size() == 1);
            Script.eventually("all events", () -> events.size() == 4);
        }
        return events;
    }

    private static Map<String, String> data(ConfigMap o) {
        return o.getData() == null ? Map.of() : o.getData();
    }

    private Object changes() throws Exception {
        ConfigMap read = maps.withName("one").get();
        ConfigMap done = maps.resource(read.edit().addToData("a", "2").build()).lockResourceVersion(read.getMetadata().getResourceVersion()).update();
        Object conflict = Script.refused(() -> maps.resource(read.edit().addToData("a", "3").build())
            .lockResourceVersion(read.getMetadata().getResourceVersion()).update());
        Resource<ConfigMap> one = maps.withName("one");
        return Script.list(done, conflict, one.edit(o -> o.edit().addToData("b", "x").build()),
            one.patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"test\",\"path\":\"/data/b\",\"value\":\"x\"},{\"op\":\"remove\",\"path\":\"/data/b\"}]"),
            Script.refused(() -> one.patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"9\"}]")),
            one.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"c\":\"y\"}}"),
            one.patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"metadata\":{\"labels\":{\"m\":\"2\"}}}"),
            Script.refused(() -> one.patch(PatchContext.of(PatchType.JSON_MERGE), "nonsense")));
    }

    private Object apply() throws Exception {
        ConfigMap first = maps.resource(map("applied", "a", "1", "b", "1")).fieldManager("first").serverSideApply();
        Object conflict = Script.refused(() -> maps.resource(map("applied", "a", "2")).fieldManager("second").serverSideApply());
        ConfigMap forced = maps.resource(map("applied", "a", "2")).fieldManager("second").forceConflicts().serverSideApply();
        return Script.list(first, conflict, forced, maps.resource(map("applied", "b", "1")).fieldManager("first").serverSideApply());
    }

    private Object scale() throws Exception {
        RollableScalableResource<Deployment> web = client.apps().deployments().inNamespace(NS).withName("web");
        client.apps().deployments().inNamespace(NS).resource(deployment("web", 1)).create();
        Deployment ready = web.waitUntilReady(Script.WAIT, TimeUnit.MILLISECONDS);
        web.scale(2);
        Deployment full = web.waitUntilCondition(d -> d.getStatus() != null && Objects.equals(d.getStatus().getAvailableReplicas(), 2), Script.WAIT, TimeUnit.MILLISECONDS);
        Scale scale = web.scale();
        List<StatusDetails> deleted = web.withPropagationPolicy(DeletionPropagation.FOREGROUND).delete();
        web.waitUntilCondition(Objects::isNull, Script.WAIT, TimeUnit.MILLISECONDS);
        Script.eventually("the replica set to be gone", () -> client.apps().replicaSets().inNamespace(NS).list().getItems().isEmpty());
        return Script.list(ready.getSpec(), full.getSpec().getReplicas(), full.getMetadata().getGeneration(), scale.getSpec(), names(details(deleted)),
            Script.refused(() -> client.apps().deployments().inNamespace(NS).resource(deployment("bad", -1)).create()));
    }

    private static List<HasMetadata> details(List<StatusDetails> details) {
        return details.stream().map(d -> (HasMetadata) map(d.getKind() + " " + d.getName())).collect(toList());
    }

    private Object deletion() throws Exception {
        ConfigMap made = maps.resource(map("guarded")).create();
        Object wrong = Script.refused(() -> maps.resource(made).lockResourceVersion("1").delete());
        List<StatusDetails> right = maps.resource(made).lockResourceVersion(made.getMetadata().getResourceVersion()).delete();
        maps.withLabel("page", "1").delete();
        return Script.list(wrong, right.size(), maps.withName("guarded").delete().size(), names(maps.withLabel("page").list().getItems()));
    }

    private Object customObjects() throws Exception {
        JSONSchemaProps spec = new JSONSchemaPropsBuilder().withType("object").addToRequired("size")
            .addToProperties("size", new JSONSchemaPropsBuilder().withType("integer").withMinimum(1.0).build())
            .addToProperties("replicas", new JSONSchemaPropsBuilder().withType("integer").build()).build();
        JSONSchemaProps status = new JSONSchemaPropsBuilder().withType("object")
            .addToProperties("phase", new JSONSchemaPropsBuilder().withType("string").build()).build();
        CustomResourceDefinition crd = new CustomResourceDefinitionBuilder(CustomResourceDefinitionContext.v1CRDFromCustomResourceType(Gadget.class).build())
            .editSpec().editFirstVersion().withNewSchema().withNewOpenAPIV3Schema().withType("object").addToProperties("spec", spec)
            .addToProperties("status", status).endOpenAPIV3Schema().endSchema().withNewSubresources().withNewStatus().endStatus()
            .withNewScale().withSpecReplicasPath(".spec.replicas").withStatusReplicasPath(".status.replicas").endScale().endSubresources().endVersion().endSpec().build();
        NonNamespaceOperation<CustomResourceDefinition, CustomResourceDefinitionList, Resource<CustomResourceDefinition>> crds =
            client.apiextensions().v1().customResourceDefinitions();
        CustomResourceDefinition made = crds.resource(crd).createOr(NonDeletingOperation::update);
        crds.withName(made.getMetadata().getName()).waitUntilCondition(c -> c != null && c.getStatus() != null && c.getStatus().getConditions() != null
            && c.getStatus().getConditions().stream().anyMatch(x -> "Established".equals(x.getType()) && "True".equals(x.getStatus())), Script.WAIT, TimeUnit.MILLISECONDS);
        var gadgets = client.resources(Gadget.class).inNamespace(NS);
        Gadget first = Script.eventually("the kind to be served", () -> {
            try {
                return gadgets.resource(Gadget.of("g", 3)).create();
            } catch (KubernetesClientException e) {
                return null;
            }
        });
        Gadget ready = gadgets.withName("g").editStatus(g -> {
            g.setStatus(new Gadget.Status());
            g.getStatus().phase = "Ready";
            return g;
        });
        Gadget applied = gadgets.resource(Gadget.of("h", 1)).serverSideApply();
        GenericKubernetesResource generic = client.genericKubernetesResources("clients.example.com/v1", "Gadget").inNamespace(NS).withName("g").get();
        return Script.list(made.getSpec(), first, ready, applied, generic.getAdditionalProperties(), names(gadgets.list().getItems()),
            Script.refused(() -> gadgets.resource(Gadget.of("bad", 0)).create()), client.supports(Gadget.class));
    }

    private Object serviceAccount() throws Exception {
        client.serviceAccounts().inNamespace(NS).resource(new ServiceAccountBuilder().withNewMetadata().withName("reader").endMetadata().build()).create();
        TokenRequest answer = client.serviceAccounts().inNamespace(NS).withName("reader").tokenRequest(
            new TokenRequestBuilder().withNewSpec().withExpirationSeconds(3600L).endSpec().build());
        Config base = client.getConfiguration();
        Config config = new ConfigBuilder(Config.empty()).withMasterUrl(base.getMasterUrl()).withCaCertData(base.getCaCertData())
            .withOauthToken(answer.getStatus().getToken()).build();
        try (KubernetesClient reader = new KubernetesClientBuilder().withConfig(config).build()) {
            Object before = Script.refused(() -> reader.configMaps().inNamespace(NS).list());
            client.rbac().roles().inNamespace(NS).resource(new RoleBuilder().withNewMetadata().withName("reader").endMetadata().addNewRule().withApiGroups("")
                .withResources("configmaps").withVerbs("get", "list").endRule().build()).create();
            client.rbac().roleBindings().inNamespace(NS).resource(new RoleBindingBuilder().withNewMetadata().withName("reader").endMetadata()
                .addNewSubject().withKind("ServiceAccount").withName("reader").withNamespace(NS).endSubject()
                .withNewRoleRef().withApiGroup("rbac.authorization.k8s.io").withKind("Role").withName("reader").endRoleRef().build()).create();
            Script.eventually("the role", () -> "succeeded".equals(Script.refused(() -> reader.configMaps().inNamespace(NS).list())));
            return Script.list(before, Script.refused(() -> reader.secrets().inNamespace(NS).list()), Script.refused(() -> reader.configMaps().inNamespace(NS).withName("one").delete()),
                may(reader, "get"), may(reader, "delete"));
        }
    }

    private static Object may(KubernetesClient user, String verb) {
        SelfSubjectAccessReview review = new SelfSubjectAccessReviewBuilder().withNewSpec().withNewResourceAttributes().withNamespace(NS).withVerb(verb)
            .withResource("configmaps").endResourceAttributes().endSpec().build();
        return user.authorization().v1().selfSubjectAccessReview().create(review).getStatus();
    }

    private Object impersonation() throws Exception {
        Config config = new ConfigBuilder(client.getConfiguration()).withImpersonateUsername("jane").withImpersonateGroups("readers").build();
        try (KubernetesClient jane = new KubernetesClientBuilder().withConfig(config).build()) {
            return Script.list(may(jane, "get"), Script.refused(() -> jane.configMaps().inNamespace(NS).list()));
        }
    }

    private Object events() {
        ConfigMap one = maps.withName("one").get();
        client.v1().events().inNamespace(NS).resource(new EventBuilder().withNewMetadata().withName("one.1").endMetadata()
            .withNewInvolvedObject().withApiVersion("v1").withKind("ConfigMap").withName("one").withNamespace(NS).withUid(one.getMetadata().getUid()).endInvolvedObject()
            .withReason("Seen").withMessage("a look").withType("Normal").withCount(1).build()).create();
        return client.v1().events().inNamespace(NS).withInvolvedObject(new ObjectReferenceBuilder().withName("one").withKind("ConfigMap").build()).list().getItems();
    }

    private Object leaderElection() throws Exception {
        CompletableFuture<String> leads = new CompletableFuture<>();
        LeaderElector elector = client.leaderElector().withConfig(new LeaderElectionConfigBuilder().withName("election").withLock(new LeaseLock(NS, "leader", "one"))
            .withLeaseDuration(Duration.ofSeconds(15)).withRenewDeadline(Duration.ofSeconds(10)).withRetryPeriod(Duration.ofSeconds(1)).withReleaseOnCancel(true)
            .withLeaderCallbacks(new LeaderCallbacks(() -> { }, () -> { }, leads::complete)).build()).build();
        CompletableFuture<?> running = elector.start();
        String leader = leads.get(Script.WAIT, TimeUnit.MILLISECONDS);
        String holder = client.leases().inNamespace(NS).withName("leader").get().getSpec().getHolderIdentity();
        running.cancel(true);
        return Script.list(leader, holder);
    }

    private PodResource runs() {
        return client.pods().inNamespace(NS).withName("runs");
    }

    private Object pod() throws Exception {
        client.pods().inNamespace(NS).resource(new PodBuilder().withNewMetadata().withName("runs").endMetadata().withSpec(podSpec()).build()).create();
        Pod pod = runs().waitUntilReady(Script.WAIT, TimeUnit.MILLISECONDS);
        return Script.list(pod.getStatus().getPhase(), pod.getStatus().getQosClass(), pod.getSpec().getTolerations(), pod.getSpec().getRestartPolicy());
    }

    private Object streams() throws Exception {
        List<Object> seen = new ArrayList<>(Script.list(runs().getLog(), runs().inContainer("main").tailingLines(1).getLog()));
        for (String[] command : new String[][] {{"/bin/echo", "hello"}, {"/bin/sh", "-c", "echo no >&2"}}) {
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            try (ExecWatch w = runs().inContainer("main").writingOutput(out).writingError(err).exec(command)) {
                Integer code = w.exitCode().get(Script.WAIT, TimeUnit.MILLISECONDS);
                seen.add(Script.list(code, out.toString(), err.toString()));
            }
        }
        return seen;
    }

    private Object portForward() throws Exception {
        byte[] sent = "0123456789".repeat(5000).getBytes();
        try (LocalPortForward forward = runs().portForward(8080); Socket s = new Socket("127.0.0.1", forward.getLocalPort())) {
            s.setSoTimeout((int) Script.WAIT);
            Thread sender = new Thread(() -> {
                try {
                    s.getOutputStream().write(sent);
                } catch (IOException e) {
                    e.printStackTrace();
                }
            });
            sender.start();
            byte[] got = s.getInputStream().readNBytes(sent.length);
            sender.join();
            return Arrays.equals(sent, got);
        }
    }

    private Object end() throws Exception {
        Object evicted = runs().evict();
        Script.eventually("the pod to be gone", () -> runs().get() == null);
        client.apiextensions().v1().customResourceDefinitions().withName("gadgets.clients.example.com").delete();
        client.namespaces().withName(NS).delete();
        client.namespaces().withName(NS).waitUntilCondition(Objects::isNull, Script.WAIT, TimeUnit.MILLISECONDS);
        return Script.list(evicted, client.namespaces().withName(NS).get());
    }
}
