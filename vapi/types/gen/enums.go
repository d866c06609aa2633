// SPDX-License-Identifier: Apache-2.0

package main

// The values of enumerations: constants of string types. Neither reflection nor the published documents
// know them, so the sources of the package are read. The table has those that their authors marked
// `+enum`, as the documents do; vapi/kinds may name any.

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type enum struct {
	marked bool
	values []string // as declared
}

type enums map[string]map[string]*enum // package -> type

// What is declared of a type; nil: it has no values.
func (e enums) of(typ reflect.Type) *enum {
	if typ.Kind() != reflect.String || !strings.Contains(typ.PkgPath(), "/") {
		return nil
	}
	if e[typ.PkgPath()] == nil {
		e[typ.PkgPath()] = readEnums(typ.PkgPath())
	}
	return e[typ.PkgPath()][typ.Name()]
}

// The values of a type that is marked.
func (e enums) values(typ reflect.Type) []string {
	if found := e.of(typ); found != nil && found.marked {
		return found.values
	}
	return nil
}

func eachDeclaration(path string, visit func(f *ast.File, d *ast.GenDecl)) {
	pkg, err := build.Import(path, ".", 0)
	check(err)
	sources := func(f fs.FileInfo) bool { return slices.Contains(pkg.GoFiles, f.Name()) }
	packages, err := parser.ParseDir(token.NewFileSet(), pkg.Dir, sources, parser.ParseComments)
	check(err)
	files := packages[pkg.Name].Files
	for _, name := range sortedKeys(files) {
		file := files[name]
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				visit(file, g)
			}
		}
	}
}

func readEnums(path string) map[string]*enum {
	out := map[string]*enum{}
	eachDeclaration(path, func(_ *ast.File, d *ast.GenDecl) { markTypes(out, d) })
	eachDeclaration(path, func(f *ast.File, d *ast.GenDecl) { addConstants(out, path, f, d) })
	for name, e := range out {
		if !e.marked && len(e.values) == 0 {
			delete(out, name)
		}
	}
	return out
}

// The enumerations that the sources under a folder name: ENUM_SERVICE_TYPE is SERVICE_TYPE.
func enumsNamedIn(folder string) map[string]bool {
	out := map[string]bool{}
	check(filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		check(err)
		if filepath.Ext(path) != ".c" {
			return nil
		}
		source, err := os.ReadFile(path)
		check(err)
		for _, m := range regexp.MustCompile(`\bENUM_([A-Z_]+?)(_DECLARED)?\b`).FindAllSubmatch(source, -1) {
			out[string(m[1])] = true
		}
		return nil
	}))
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

func markTypes(out map[string]*enum, d *ast.GenDecl) {
	for _, s := range d.Specs {
		t, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if base, ok := t.Type.(*ast.Ident); ok && base.Name == "string" {
			out[t.Name.Name] = &enum{marked: isMarked(d.Doc, t.Doc), values: []string{}}
		}
	}
}

func addConstants(out map[string]*enum, path string, file *ast.File, d *ast.GenDecl) {
	if d.Tok != token.CONST {
		return
	}
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		for _, value := range v.Values {
			typ, text := v.Type, value
			if call, ok := value.(*ast.CallExpr); ok {
				typ, text = call.Fun, call.Args[0]
			}
			name, ok := typ.(*ast.Ident)
			if !ok || out[name.Name] == nil {
				continue
			}
			if e, w := out[name.Name], word(path, file, text); !slices.Contains(e.values, w) {
				e.values = append(e.values, w)
			}
		}
	}
}

// A literal, a constant of this package or of another one, or such strings joined.
func word(path string, file *ast.File, value ast.Expr) string {
	switch v := value.(type) {
	case *ast.BasicLit:
		word, err := strconv.Unquote(v.Value)
		check(err)
		return word
	case *ast.Ident:
		return constant(path, v.Name)
	case *ast.SelectorExpr:
		return constant(importOf(file, v.X.(*ast.Ident).Name), v.Sel.Name)
	case *ast.BinaryExpr:
		return word(path, file, v.X) + word(path, file, v.Y)
	}
	panic("no string: " + path)
}

func constant(path, name string) string {
	found := ""
	eachDeclaration(path, func(f *ast.File, d *ast.GenDecl) {
		for _, s := range d.Specs {
			v, ok := s.(*ast.ValueSpec)
			if ok && d.Tok == token.CONST && v.Names[0].Name == name {
				found = word(path, f, v.Values[0])
			}
		}
	})
	if found == "" {
		panic("unknown constant " + name)
	}
	return found
}

func importOf(file *ast.File, name string) string {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		check(err)
		if i.Name != nil && i.Name.Name == name || i.Name == nil && strings.HasSuffix(path, "/"+name) {
			return path
		}
	}
	panic("unknown import " + name)
}
