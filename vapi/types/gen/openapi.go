// SPDX-License-Identifier: Apache-2.0

package main

// What only the published OpenAPI documents say: list and map types, required fields, defaults.
// It must never take over descriptions.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type property struct {
	ListType   string          `json:"x-kubernetes-list-type"`
	ListKeys   []string        `json:"x-kubernetes-list-map-keys"`
	MapType    string          `json:"x-kubernetes-map-type"`
	Default    json.RawMessage `json:"default"`
	Items      *property       `json:"items"`
	Additional json.RawMessage `json:"additionalProperties"`
}

type model struct {
	property
	Properties map[string]*property `json:"properties"`
	Required   []string             `json:"required"`
}

type openapi struct {
	models map[string]*model
}

var unstable = regexp.MustCompile(`__v[0-9]+(alpha|beta)[0-9]+_openapi\.json$`)

func readOpenAPI(dir string) *openapi {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		panic("no OpenAPI documents in " + dir)
	}
	o := &openapi{models: map[string]*model{}}
	for _, file := range files {
		if !unstable.MatchString(file) {
			o.read(file)
		}
	}
	return o
}

func (o *openapi) read(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]*model `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		panic(file + ": " + err.Error())
	}
	for name, m := range doc.Components.Schemas {
		o.models[name] = m
	}
}

// model is nil for types no document mentions; everything below accepts nil.
func (o *openapi) model(name string) *model {
	return o.models[name]
}

func (o *openapi) mapType(name string, use *property) string {
	var text string
	if m := o.models[name]; m != nil {
		text = m.MapType
	}
	if use != nil && use.MapType != "" {
		text = use.MapType
	}
	switch text {
	case "atomic":
		return "ATOMIC"
	case "", "granular":
		return "MAP"
	}
	panic("unknown map type " + text)
}

func (m *model) field(name string) *property {
	if m == nil {
		return nil
	}
	return m.Properties[name]
}

func (m *model) isRequired(name string) bool {
	return m != nil && slices.Contains(m.Required, name)
}

func (p *property) list() (string, []string) {
	if p == nil || p.ListType == "" || p.ListType == "atomic" {
		return "ATOMIC", nil
	}
	switch p.ListType {
	case "set":
		return "SET", nil
	case "map":
		return "MAP", p.ListKeys
	}
	panic("unknown list type " + p.ListType)
}

// A list that OpenAPI says nothing of is atomic as well.
func (p *property) saysListType() bool {
	return p != nil && p.ListType != ""
}

func (p *property) saysMapType() bool {
	return p != nil && p.MapType != ""
}

func (p *property) items() *property {
	if p == nil {
		return nil
	}
	return p.Items
}

func (p *property) values() *property {
	if p == nil || !strings.HasPrefix(string(p.Additional), "{") {
		return nil
	}
	var v property
	if err := json.Unmarshal(p.Additional, &v); err != nil {
		panic(err)
	}
	return &v
}

// Zero values as defaults say only that the Go field is no pointer.
func (p *property) defaultText() string {
	if p == nil {
		return ""
	}
	switch text := string(p.Default); text {
	case "", "{}", `""`, "0", "false", "null", "[]":
		return ""
	default:
		return text
	}
}

// A scalar that is Go's zero value when nobody sets it. As a key of a list map it still counts.
func (p *property) defaultsToZero() bool {
	if p == nil {
		return false
	}
	switch string(p.Default) {
	case `""`, "0", "false":
		return true
	}
	return false
}
