// The oracle of no_proxy: prints no_proxy_table.h, Go's own decisions for each list and URL.
//
//	go run tests/base/net/no_proxy.go > tests/base/net/no_proxy_table.h
//
// net/http reads the environment once, so each list has a process of its own.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

var urls = strings.Fields(`
	http://localhost http://localhost:8080 http://127.0.0.1 http://127.8.9.1:80 http://[::1]:6060
	http://[::ffff:127.0.0.1] http://sub.localhost http://localhost.
	http://foo.com https://foo.com http://foo.com:8080 https://foo.com:8443 http://FOO.com http://foo.com.
	http://bar.foo.com https://bar.foo.com http://a.bar.foo.com http://xfoo.com http://com
	http://10.1.2.3 https://10.1.2.3 http://10.1.2.3:8080 http://10.200.0.1 http://11.1.2.3 http://192.168.0.1
	http://[fd00::1] http://[fd00::1]:8080 https://[FD00::1] http://[2001:db8::1] http://[::ffff:10.1.2.3]
	http://0.0.0.0 http://1.2.3.4.foo.com`)

var lists = []string{
	"", "*", " * ", "a,*,b", "*,", ",,", "foo.com", ".foo.com", "*.foo.com", "FOO.COM", "  foo.com  ,x",
	"foo.com:80", "foo.com:443", "foo.com:8080", ".foo.com:80", "*.foo.com:443", "foo.com:", ":80", "foo.com:080",
	"foo.com.", "com", ".com", ".", "*.", "*.*", "foo", "oo.com", "**", "*foo.com", "bar.foo.com,10.1.2.3",
	"10.1.2.3", "10.1.2.3:80", "10.1.2.3:8080", "10.1.2.3:", "10.0.0.0/8", "10.1.2.3/8", "10.1.2.3/32", "0.0.0.0/0",
	"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0/8", "010.1.2.3", "10.1.2", "10.", "::/0", "fd00::/8", "fd00::1",
	"[fd00::1]", "[fd00::1]:8080", "[fd00::1]:", "fd00::1:8080", "[10.1.2.3]:80", "[foo.com]:80", "::ffff:10.1.2.3",
	"::ffff:10.0.0.0/104", "::ffff:10.0.0.0/96", "::ffff:10.0.0.0/90", "fd00:0:0::1", "fd00::1/128", "2001:DB8::/32",
	"localhost", "127.0.0.1", "foo.com;bar.com", "foo.com bar.com", "http://foo.com", "foo.com/", "foo.com,foo.com:81",
	"[", "]", "[]", "[]:80", "[a]b:80", "a]:80", "foo.com:[80", "1.2.3.4.foo.com", "10.1.2.3,", "/8", "10.0.0.0/-1",
}

func main() {
	if len(os.Args) > 1 { // for one list, from the environment
		for _, u := range urls {
			req, err := http.NewRequest("GET", u, nil)
			if err != nil {
				panic(err)
			}
			proxy, err := http.ProxyFromEnvironment(req)
			if err != nil {
				panic(err)
			}
			fmt.Print(map[bool]string{true: "d", false: "p"}[proxy == nil])
		}
		return
	}
	fmt.Println("/*\n * Whether a list of no_proxy sends requests past the proxy, as Go decides: a letter per URL, d for\n" +
		" * directly and p for the proxy. Printed by no_proxy.go.\n */")
	fmt.Println("#ifndef TESTS_BASE_NET_NO_PROXY_TABLE_H\n#define TESTS_BASE_NET_NO_PROXY_TABLE_H\n\n/* clang-format off */")
	fmt.Println("static const char *const no_proxy_urls[] = {")
	for _, u := range urls {
		fmt.Printf("\t%q,\n", u)
	}
	fmt.Println("};\n\nstatic const struct {\n\tconst char *list, *want;\n} no_proxy_rows[] = {")
	for _, list := range lists {
		cmd := exec.Command(os.Args[0], "one")
		cmd.Env = []string{"http_proxy=http://p:1", "https_proxy=http://p:1", "no_proxy=" + list}
		out, err := cmd.Output()
		if err != nil {
			panic(err)
		}
		fmt.Printf("\t{ %q, %q },\n", list, out)
	}
	fmt.Println("};\n/* clang-format on */\n\n#endif")
}
