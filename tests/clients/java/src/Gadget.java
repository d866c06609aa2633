// SPDX-License-Identifier: Apache-2.0

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** A kind of the scenario's own, typed by hand. */
@Group("clients.example.com")
@Version("v1")
public class Gadget extends CustomResource<Gadget.Spec, Gadget.Status> implements Namespaced {
    public static class Spec {
        public Integer size;
        public Integer replicas;
    }

    public static class Status {
        public String phase;
        public Integer replicas;
    }

    static Gadget of(String name, int size) {
        Gadget g = new Gadget();
        g.getMetadata().setName(name);
        g.setSpec(new Spec());
        g.getSpec().size = size;
        return g;
    }
}
