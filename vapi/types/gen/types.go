// SPDX-License-Identifier: Apache-2.0

package main

// Reads the shape of a Go type by reflection: what the published struct tags say about JSON names,
// protobuf numbers and patch strategies. It must fail loudly on anything it does not understand: a
// type that marshals itself in an unknown way would otherwise become a silent error in the table.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
)

type field struct {
	name     string
	node     uint32
	pb       int
	flags    []string
	patch    []string
	patchKey string
	def      string
}

type node struct {
	kind     string
	listType string
	fields   []field
	elem     uint32
	keys     []string // of a list map; of a string: its only values, sorted
	typeName string
	wrapped  bool // a list: protobuf puts the items into a message of their own
	said     bool // OpenAPI tells the list or map type at the place of use
}

type table struct {
	nodes     []node
	objects   map[string]uint32 // Go type and list type -> node
	plain     map[string]uint32 // printed node -> node, for everything but objects
	facts     *openapi
	enums     enums
	constants map[reflect.Type]*enum // of every string type of the table that has some
}

func newTable(facts *openapi) *table {
	t := &table{objects: map[string]uint32{}, plain: map[string]uint32{}, facts: facts, enums: enums{}, constants: map[reflect.Type]*enum{}}
	t.share(node{kind: "ANY", listType: "ATOMIC"})
	return t
}

// Types with a JSON form of their own, by OpenAPI name.
var special = map[string]string{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":                 "QUANTITY",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString":               "INT_OR_STRING",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":                     "TIME",
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":                "MICRO_TIME",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Duration":                 "DURATION",
	"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":                 "FIELDS_V1",
	"io.k8s.apimachinery.pkg.runtime.RawExtension":                  "ANY",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "ANY",
}

// Messages that are one of several things in JSON: ANY, with the message's shape as element.
var either = map[string]bool{
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray":       true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool":        true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": true,
}

var scalars = map[reflect.Kind]string{
	reflect.String: "STRING", reflect.Bool: "BOOL", reflect.Int32: "INT32", reflect.Int64: "INT64",
	reflect.Uint32: "UINT32", reflect.Uint64: "UINT64", reflect.Uint8: "UINT8",
	reflect.Float64: "DOUBLE",
}

// "k8s.io/api/core/v1".PodSpec -> io.k8s.api.core.v1.PodSpec, as OpenAPI names it.
func openapiName(t reflect.Type) string {
	if t.Name() == "" || t.PkgPath() == "" {
		return ""
	}
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}

func (t *table) share(n node) uint32 {
	key := fmt.Sprintf("%#v", n)
	if id, ok := t.plain[key]; ok {
		return id
	}
	id := uint32(len(t.nodes))
	t.nodes = append(t.nodes, n)
	t.plain[key] = id
	return id
}

// use is what OpenAPI says about a type at the place where it is used.
func (t *table) node(typ reflect.Type, use *property) uint32 {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	name := openapiName(typ)
	if kind, ok := special[name]; ok {
		return t.share(node{kind: kind, listType: listTypeOf(name), typeName: name})
	}
	if either[name] {
		return t.eitherNode(typ, name)
	}
	if typ.Implements(reflect.TypeFor[json.Marshaler]()) {
		panic("unknown JSON form: " + name)
	}
	if kind, ok := scalars[typ.Kind()]; ok {
		n := node{kind: kind, listType: "ATOMIC", typeName: name}
		if kind == "STRING" {
			n.keys = slices.Sorted(slices.Values(t.enums.values(typ)))
			if e := t.enums.of(typ); e != nil {
				t.constants[typ] = e
			}
		}
		return t.share(n)
	}
	switch typ.Kind() {
	case reflect.Struct:
		return t.object(typ, name, use)
	case reflect.Slice:
		return t.list(typ, name, use)
	case reflect.Map:
		return t.mapNode(typ, name, use)
	}
	panic("unknown kind of type: " + typ.String())
}

// OpenAPI knows nothing of JSON's shape: its objects are merged field by field, those of RawExtension whole.
func listTypeOf(name string) string {
	if strings.HasSuffix(name, ".JSON") {
		return "MAP"
	}
	return "ATOMIC"
}

func (t *table) eitherNode(typ reflect.Type, name string) uint32 {
	if id, ok := t.objects[name]; ok {
		return id
	}
	id := uint32(len(t.nodes))
	t.objects[name] = id
	t.nodes = append(t.nodes, node{kind: "ANY", listType: "MAP", typeName: name})
	t.nodes[id].elem = t.object(typ, name+"(wire)", nil)
	return id
}

func (t *table) object(typ reflect.Type, name string, use *property) uint32 {
	listType := t.facts.mapType(name, use)
	key := fmt.Sprint(name, " ", listType, " ", use.saysMapType())
	if id, ok := t.objects[key]; ok {
		return id
	}
	id := uint32(len(t.nodes))
	t.objects[key] = id
	t.nodes = append(t.nodes, node{kind: "OBJECT", listType: listType, typeName: strings.TrimSuffix(name, "(wire)"),
		said: use.saysMapType()})
	fields := t.fields(typ, t.facts.model(name), true)
	sort.SliceStable(fields, func(i, j int) bool { return fields[i].name < fields[j].name })
	for i := 1; i < len(fields); i++ {
		if fields[i].name != "" && fields[i].name == fields[i-1].name {
			panic("two fields named " + fields[i].name + " in " + name)
		}
	}
	t.nodes[id].fields = fields
	return id
}

func (t *table) list(typ reflect.Type, name string, use *property) uint32 {
	if typ.Elem().Kind() == reflect.Uint8 {
		return t.share(node{kind: "BYTES", listType: "ATOMIC", typeName: name, said: use.saysListType()})
	}
	if typ.Elem().Kind() == reflect.Pointer {
		panic("list of pointers: " + typ.String())
	}
	n := node{kind: "LIST", typeName: name}
	n.listType, n.keys = use.list()
	n.said = use.saysListType()
	n.elem = t.node(typ.Elem(), use.items())
	_, n.wrapped = reflect.PointerTo(typ).MethodByName("Unmarshal")
	return t.share(n)
}

func (t *table) mapNode(typ reflect.Type, name string, use *property) uint32 {
	if typ.Elem().Kind() == reflect.Pointer || typ.Key().Kind() != reflect.String {
		panic("unknown kind of map: " + typ.String())
	}
	if _, wrapped := reflect.PointerTo(typ).MethodByName("Unmarshal"); wrapped {
		panic("map that is a message of its own: " + name)
	}
	if name == "" && typ.Key().Name() != "string" {
		name = typ.String()
	}
	n := node{kind: "MAP", listType: t.facts.mapType(name, use), typeName: name, said: use.saysMapType()}
	n.elem = t.node(typ.Elem(), use.values())
	return t.share(n)
}

func (t *table) fields(typ reflect.Type, facts *model, wire bool) []field {
	var out []field
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		pb, packed, pbName := protobuf(f.Tag.Get("protobuf"))
		if strings.Contains(options, "inline") || (f.Anonymous && name == "") {
			out = append(out, t.inline(f, facts, wire, pb)...)
			continue
		}
		if name == "" {
			name = pbName // the wire shape of an `either`
		}
		if name == "" {
			panic("no JSON name: " + typ.String() + "." + f.Name)
		}
		if !wire {
			pb = 0
		}
		use := facts.field(name)
		o := field{name: name, pb: pb, node: t.node(f.Type, use)}
		o.flags = flags(f, options, facts.isRequired(name), packed)
		if t.isPrinted(o) {
			o.flags = append(o.flags, "PRINTED")
		}
		o.patch, o.patchKey = patch(f)
		if use.defaultsToZero() {
			o.patch = append(o.patch, "ZERO")
		}
		if o.def = use.defaultText(); o.def != "" {
			o.flags = append(o.flags, "HAS_DEFAULT")
		}
		out = append(out, o)
	}
	return out
}

// Inlined in JSON. In protobuf it is a message of its own, which a nameless row leads into, or not there
// at all (TypeMeta, which the envelope has): the flattened rows have no number.
func (t *table) inline(f reflect.StructField, facts *model, wire bool, pb int) []field {
	if f.Type.Kind() != reflect.Struct {
		panic("inlined pointer: " + f.Name)
	}
	var out []field
	if wire && pb != 0 {
		out = append(out, field{pb: pb, node: t.node(f.Type, nil), flags: []string{"INLINE"}})
	}
	return append(out, t.fields(f.Type, facts, false)...)
}

func flags(f reflect.StructField, options string, required, packed bool) []string {
	var out []string
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty":
			out = append(out, "OMITEMPTY")
		case "omitzero":
			out = append(out, "OMITZERO")
		case "":
		default:
			panic("unknown JSON option " + option)
		}
	}
	if f.Type.Kind() == reflect.Pointer {
		out = append(out, "POINTER")
	}
	if required {
		out = append(out, "REQUIRED")
	}
	if packed {
		out = append(out, "PB_PACKED")
	}
	return out
}

// Kinds that are structs in Go: omitempty never drops them.
var structs = []string{"OBJECT", "ANY", "QUANTITY", "INT_OR_STRING", "TIME", "MICRO_TIME", "DURATION", "FIELDS_V1"}

// Whether Go prints the field although nobody set it.
func (t *table) isPrinted(f field) bool {
	if slices.Contains(f.flags, "OMITZERO") {
		return false
	}
	if !slices.Contains(f.flags, "OMITEMPTY") {
		return true
	}
	return !slices.Contains(f.flags, "POINTER") && slices.Contains(structs, t.nodes[f.node].kind)
}

// `protobuf:"bytes,2,opt,name=spec"`
func protobuf(tag string) (number int, packed bool, name string) {
	if tag == "" {
		return 0, false, ""
	}
	parts := strings.Split(tag, ",")
	number, err := strconv.Atoi(parts[1])
	if err != nil || number <= 0 || number > 65535 {
		panic("bad protobuf tag " + tag)
	}
	for _, p := range parts[2:] {
		switch {
		case p == "packed":
			packed = true
		case strings.HasPrefix(p, "name="):
			name = strings.TrimPrefix(p, "name=")
		case p == "opt" || p == "req" || p == "rep" || strings.Contains(p, "="):
		default:
			panic("unknown protobuf option in " + tag)
		}
	}
	if parts[0] != "bytes" && parts[0] != "varint" && parts[0] != "fixed64" {
		panic("unknown wire type in " + tag)
	}
	return number, packed, name
}

func patch(f reflect.StructField) ([]string, string) {
	var out []string
	tag := f.Tag.Get("patchStrategy")
	if tag == "" {
		return nil, f.Tag.Get("patchMergeKey")
	}
	for _, s := range strings.Split(tag, ",") {
		switch s {
		case "merge":
			out = append(out, "MERGE")
		case "retainKeys":
			out = append(out, "RETAIN_KEYS")
		case "replace":
			out = append(out, "WHOLE")
		default:
			panic("unknown patch strategy " + tag)
		}
	}
	return out, f.Tag.Get("patchMergeKey")
}
