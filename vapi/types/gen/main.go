// SPDX-License-Identifier: Apache-2.0

// Command gen prints vapi/types/builtin_table.c, or builtin_enums.h. Usage: gen <OpenAPI v3 directory>
// <kubernetes version> table|enums.
package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

type root struct {
	group, version, kind string
	node                 uint32
}

// The served stable groups.
var served = []schema.GroupVersion{
	{Group: "", Version: "v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1"},
	{Group: "apiextensions.k8s.io", Version: "v1"},
	{Group: "apiregistration.k8s.io", Version: "v1"},
	{Group: "apps", Version: "v1"},
	{Group: "authentication.k8s.io", Version: "v1"},
	{Group: "authorization.k8s.io", Version: "v1"},
	{Group: "autoscaling", Version: "v1"},
	{Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1"},
	{Group: "certificates.k8s.io", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"},
	{Group: "discovery.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "metrics.k8s.io", Version: "v1beta1"},
	{Group: "networking.k8s.io", Version: "v1"},
	{Group: "node.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "resource.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1"},
}

// Kinds of every group, listed under meta.k8s.io.
var common = []any{
	meta.Status{}, meta.DeleteOptions{}, meta.CreateOptions{}, meta.UpdateOptions{}, meta.PatchOptions{},
	meta.GetOptions{}, meta.ListOptions{}, meta.WatchEvent{}, meta.PartialObjectMetadata{},
	meta.PartialObjectMetadataList{},
}

// Answers of endpoints that are no resources, and the body of patches.
var published = []any{
	meta.APIGroup{}, meta.APIGroupList{}, meta.APIResourceList{}, meta.APIVersions{}, meta.Patch{}, version.Info{},
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func moduleVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "k8s.io/api" {
			return m.Version
		}
	}
	panic("k8s.io/api is not in the build")
}

func main() {
	if len(os.Args) != 4 {
		check(fmt.Errorf("usage: gen <OpenAPI v3 directory> <kubernetes version> table|enums"))
	}
	check(extensions.AddToScheme(scheme.Scheme))
	check(registration.AddToScheme(scheme.Scheme))
	check(metrics.AddToScheme(scheme.Scheme))

	t := newTable(readOpenAPI(os.Args[1]))
	var roots []root
	for _, gv := range served {
		roots = append(roots, t.group(gv)...)
	}
	for _, o := range common {
		roots = append(roots, t.outside("meta.k8s.io", o))
	}
	for _, o := range published {
		roots = append(roots, t.outside("published", o))
	}
	roots = append(roots, root{"published", "v2", "APIGroupDiscoveryList",
		t.node(reflect.TypeOf(discovery.APIGroupDiscoveryList{}), nil)})

	w := bufio.NewWriter(os.Stdout)
	if os.Args[3] == "enums" {
		t.emitEnums(w, moduleVersion())
	} else {
		t.emit(w, roots, moduleVersion(), os.Args[2])
	}
	check(w.Flush())
}

// The kinds a group declares itself; those of meta/v1 are registered in each group.
func (t *table) group(gv schema.GroupVersion) []root {
	var out []root
	known := scheme.Scheme.KnownTypes(gv)
	if len(known) == 0 {
		panic("unknown group " + gv.String())
	}
	for _, kind := range sortedKeys(known) {
		typ := known[kind]
		if strings.HasSuffix(typ.PkgPath(), "/meta/v1") {
			continue
		}
		out = append(out, root{gv.Group, gv.Version, kind, t.node(typ, nil)})
	}
	return out
}

// A type under a group that no request can name.
func (t *table) outside(group string, o any) root {
	typ := reflect.TypeOf(o)
	return root{group, "v1", typ.Name(), t.node(typ, nil)}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
