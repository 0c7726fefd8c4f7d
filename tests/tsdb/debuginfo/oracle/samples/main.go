// A sample for the comparison of names and lines: Go's own runtime is most of it.
package main

import "os"

type list struct {
	v    int
	next *list
}

func sum(l *list) (n int) {
	for ; l != nil; l = l.next {
		n += l.v
	}
	return n
}

func main() {
	var l *list
	for i := range os.Args {
		l = &list{i, l}
	}
	println(sum(l))
}
