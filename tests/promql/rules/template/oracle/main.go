// Renders templates with Go's own text/template: lines of JSON {"text", "value"} on standard input,
// lines of JSON strings on standard output: what was made, with a "!" behind it where that failed.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"text/template"
)

type row struct {
	Text  string
	Value float64
}

type data struct {
	Labels map[string]string
	Value  float64
}

const prefix = "{{$labels := .Labels}}{{$value := .Value}}"

func render(r row) string {
	t, err := template.New("t").Option("missingkey=zero").Parse(prefix + r.Text)
	if err != nil {
		return "parse"
	}
	d := data{map[string]string{
		"host": "db-1.example.com:9090", "job": "api", "q": "<a&\"b'>",
	}, r.Value}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return b.String() + "!"
	}
	return b.String()
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var r row
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		if err := out.Encode(render(r)); err != nil {
			panic(err)
		}
	}
}
