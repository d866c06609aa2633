// SPDX-License-Identifier: Apache-2.0

package main

// The values of enumerations: constants of string types that their authors marked `+enum`. Neither
// reflection nor the published documents know them, so the sources of the package are read.

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

type enums map[string]map[string][]string // package -> type -> values, sorted

func (e enums) values(typ reflect.Type) []string {
	if typ.Kind() != reflect.String || !strings.Contains(typ.PkgPath(), "/") {
		return nil
	}
	if e[typ.PkgPath()] == nil {
		e[typ.PkgPath()] = readEnums(typ.PkgPath())
	}
	return e[typ.PkgPath()][typ.Name()]
}

func readEnums(path string) map[string][]string {
	pkg, err := build.Import(path, ".", 0)
	check(err)
	sources := func(f fs.FileInfo) bool { return slices.Contains(pkg.GoFiles, f.Name()) }
	packages, err := parser.ParseDir(token.NewFileSet(), pkg.Dir, sources, parser.ParseComments)
	check(err)
	out := map[string][]string{}
	each := func(visit func(d *ast.GenDecl)) {
		for _, file := range packages[pkg.Name].Files {
			for _, d := range file.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					visit(g)
				}
			}
		}
	}
	each(func(d *ast.GenDecl) { markTypes(out, d) })
	each(func(d *ast.GenDecl) { addConstants(out, d) })
	for name := range out {
		slices.Sort(out[name])
		out[name] = slices.Compact(out[name])
	}
	return out
}

func isMarked(comments ...*ast.CommentGroup) bool {
	for _, c := range comments {
		if c == nil {
			continue
		}
		for _, line := range c.List {
			if strings.TrimSpace(strings.TrimPrefix(line.Text, "//")) == "+enum" {
				return true
			}
		}
	}
	return false
}

func markTypes(out map[string][]string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		if t, ok := s.(*ast.TypeSpec); ok && isMarked(d.Doc, t.Doc) {
			out[t.Name.Name] = []string{}
		}
	}
}

func addConstants(out map[string][]string, d *ast.GenDecl) {
	if d.Tok != token.CONST {
		return
	}
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		typ, ok := v.Type.(*ast.Ident)
		if !ok || out[typ.Name] == nil {
			continue
		}
		for _, value := range v.Values {
			text, ok := value.(*ast.BasicLit)
			if !ok {
				panic("a value that is no literal: " + typ.Name)
			}
			word, err := strconv.Unquote(text.Value)
			check(err)
			out[typ.Name] = append(out[typ.Name], word)
		}
	}
}
