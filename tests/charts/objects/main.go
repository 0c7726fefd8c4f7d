// Prints YAML documents from stdin as one JSON array; a file of no object is left out.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	all := []any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		if object != nil {
			all = append(all, object)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		log.Fatal(err)
	}
}
