// Makes a JSON schema of each kind, as kubeconform looks for them: schemas DIR SWAGGER CRD...
//
// The schemas are strict: a field that the API server would drop is an error.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

func main() {
	log.SetFlags(0)
	dir := os.Args[1]
	if err := writeSwagger(dir, os.Args[2]); err != nil {
		log.Fatalf("%s: %v", os.Args[2], err)
	}
	for _, file := range os.Args[3:] {
		if err := writeCRD(dir, file); err != nil {
			log.Fatalf("%s: %v", file, err)
		}
	}
}

// write puts a schema where {{.ResourceKind}}{{.KindSuffix}}.json finds it.
func write(dir, group, version, kind string, schema object) error {
	name := kind
	if group != "" {
		name += "-" + strings.Split(group, ".")[0]
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.ToLower(name+"-"+version)+".json"), text, 0o644)
}

// ---- Kubernetes

func writeSwagger(dir, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var swagger struct{ Definitions map[string]object }
	if err := json.Unmarshal(text, &swagger); err != nil {
		return err
	}
	definitions := swagger.Definitions
	for name, d := range definitions {
		strict(d)
		switch {
		case d["format"] == "int-or-string":
			definitions[name] = object{"type": []string{"string", "integer"}}
		case strings.HasSuffix(name, ".resource.Quantity"):
			definitions[name] = object{"type": []string{"string", "number"}}
		}
	}
	kinds := 0
	for name, d := range definitions {
		list, _ := d["x-kubernetes-group-version-kind"].([]any)
		if len(list) != 1 { // options of requests are of every group
			continue
		}
		kind := list[0].(object)
		needed := map[string]object{}
		collect(definitions, name, needed)
		schema := object{"$ref": "#/definitions/" + name, "definitions": needed}
		if err := write(dir, kind["group"].(string), kind["version"].(string), kind["kind"].(string), schema); err != nil {
			return err
		}
		kinds++
	}
	if kinds < 100 {
		return fmt.Errorf("only %d kinds", kinds)
	}
	return nil
}

// collect puts a definition, and all that it refers to, into needed.
func collect(definitions map[string]object, name string, needed map[string]object) {
	if needed[name] != nil {
		return
	}
	needed[name] = definitions[name]
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				collect(definitions, strings.TrimPrefix(ref, "#/definitions/"), needed)
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(definitions[name])
}

// ---- definitions of custom resources

func writeCRD(dir, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema object }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	for _, v := range crd.Spec.Versions {
		strict(v.Schema.OpenAPIV3Schema)
		if err := write(dir, crd.Spec.Group, v.Name, crd.Spec.Names.Kind, v.Schema.OpenAPIV3Schema); err != nil {
			return err
		}
	}
	if len(crd.Spec.Versions) == 0 {
		return fmt.Errorf("no version")
	}
	return nil
}

// strict refuses fields that an object does not name, there and in what is below it.
func strict(schema object) {
	properties, _ := schema["properties"].(object)
	for _, p := range properties {
		strict(p.(object))
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := schema[key].(object); ok {
			strict(below)
		}
	}
	if schema["x-kubernetes-int-or-string"] == true {
		delete(schema, "anyOf")
		schema["type"] = []string{"string", "integer"}
	}
	if properties != nil && schema["additionalProperties"] == nil && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
}
