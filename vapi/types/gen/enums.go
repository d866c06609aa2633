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
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type enums map[string]map[string][]string // package -> type -> values, as declared

// The values of a type in the order of their declarations.
func (e enums) values(typ reflect.Type) []string {
	if typ.Kind() != reflect.String || !strings.Contains(typ.PkgPath(), "/") {
		return nil
	}
	if e[typ.PkgPath()] == nil {
		e[typ.PkgPath()] = readEnums(typ.PkgPath())
	}
	return e[typ.PkgPath()][typ.Name()]
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

func readEnums(path string) map[string][]string {
	out := map[string][]string{}
	eachDeclaration(path, func(_ *ast.File, d *ast.GenDecl) { markTypes(out, d) })
	eachDeclaration(path, func(f *ast.File, d *ast.GenDecl) { addConstants(out, f, d) })
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

func markTypes(out map[string][]string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		if t, ok := s.(*ast.TypeSpec); ok && isMarked(d.Doc, t.Doc) {
			out[t.Name.Name] = []string{}
		}
	}
}

func addConstants(out map[string][]string, file *ast.File, d *ast.GenDecl) {
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
			if ok && out[name.Name] != nil {
				if w := word(file, text); !slices.Contains(out[name.Name], w) {
					out[name.Name] = append(out[name.Name], w)
				}
			}
		}
	}
}

// A literal, or a constant of another package.
func word(file *ast.File, value ast.Expr) string {
	if text, ok := value.(*ast.BasicLit); ok {
		word, err := strconv.Unquote(text.Value)
		check(err)
		return word
	}
	other := value.(*ast.SelectorExpr)
	found := ""
	eachDeclaration(importOf(file, other.X.(*ast.Ident).Name), func(f *ast.File, d *ast.GenDecl) {
		for _, s := range d.Specs {
			v, ok := s.(*ast.ValueSpec)
			if ok && d.Tok == token.CONST && v.Names[0].Name == other.Sel.Name {
				found = word(f, v.Values[0])
			}
		}
	})
	if found == "" {
		panic("unknown constant " + other.Sel.Name)
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
