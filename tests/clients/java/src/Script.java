// SPDX-License-Identifier: Apache-2.0

import com.fasterxml.jackson.databind.ObjectMapper;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.ResourceNotFoundException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** A scenario as steps: each prints one line, `NAME: what the client saw` in JSON, and none ends the program. */
final class Script {
    static final String NAMESPACE = System.getenv("CLIENT_NAMESPACE");
    static final long WAIT = (long) (1000 * Double.parseDouble(System.getenv("CLIENT_WAIT")));

    private final ObjectMapper plain = new ObjectMapper();
    private final KubernetesClient client;
    private int steps;

    Script(KubernetesClient client) {
        this.client = client;
    }

    void step(String name, Callable<Object> body) {
        steps++;
        String seen;
        try {
            seen = plain.writeValueAsString(shown(body.call()));
        } catch (Throwable e) {
            e.printStackTrace();
            seen = "UNEXPECTED " + String.valueOf(e).replaceAll("\\s+", " ");
        }
        System.out.println(name + ": " + seen);
    }

    void end() {
        System.out.println("end: " + steps + " steps");
        System.exit(0);
    }

    /** Objects of the client as it would send them. */
    private Object shown(Object value) throws Exception {
        if (value instanceof List<?> list) {
            List<Object> out = new java.util.ArrayList<>();
            for (Object x : list) out.add(shown(x));
            return out;
        }
        if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) return value;
        return plain.readTree(client.getKubernetesSerialization().asJson(value));
    }

    static List<Object> list(Object... values) {
        return java.util.Arrays.asList(values);
    }

    /** What the client raises, with the Status in it. */
    static Object refused(Callable<?> body) throws Exception {
        try {
            body.call();
            return "succeeded";
        } catch (ResourceNotFoundException e) { // of require(), around what the server said
            return refused(() -> {
                throw (Exception) e.getCause();
            });
        } catch (KubernetesClientException e) {
            Map<String, Object> seen = new LinkedHashMap<>();
            seen.put("code", e.getCode());
            seen.put("status", e.getStatus());
            return seen;
        }
    }

    static <T> T eventually(String what, Callable<T> attempt) throws Exception {
        long begin = System.nanoTime();
        for (;;) {
            T value = attempt.call();
            if (value != null && !Boolean.FALSE.equals(value)) return value;
            if (System.nanoTime() - begin > WAIT * 1_000_000L) throw new IllegalStateException("waited for " + what);
            Thread.sleep(50);
        }
    }
}
