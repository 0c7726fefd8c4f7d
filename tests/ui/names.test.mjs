// Names as languages write them, and their forms: tidy, short, bare, package.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { names } = page;

const same = (s) => [s, s, s, s];
const TABLE = [
	// Go
	["main.work", "main.work", "main.work", "work", "main"],
	[
		"encoding/json.(*Decoder).Decode",
		"encoding/json.(*Decoder).Decode",
		"json.(*Decoder).Decode",
		"(*Decoder).Decode",
		"encoding/json",
	],
	[
		"github.com/a/b/v2.(*T).M.func1.2",
		"github.com/a/b/v2.(*T).M.func1.2",
		"v2.(*T).M.func1.2",
		"(*T).M.func1.2",
		"github.com/a/b/v2",
	],
	[
		"slices.SortFunc[go.shape.[]github.com/x/y.T,go.shape.int]",
		"slices.SortFunc[…]",
		"slices.SortFunc[…]",
		"SortFunc[…]",
		"slices",
	],
	[
		"github.com/x/y.(*Map[go.shape.string,go.shape.struct { a/b.C int }]).Get",
		"github.com/x/y.(*Map[…]).Get",
		"y.(*Map[…]).Get",
		"(*Map[…]).Get",
		"github.com/x/y",
	],
	["sort.F[...].func1", "sort.F[…].func1", "sort.F[…].func1", "F[…].func1", "sort"],
	["runtime.main.func1", "runtime.main.func1", "runtime.main.func1", "main.func1", "runtime"],
	[
		"net/http.HandlerFunc.ServeHTTP",
		"net/http.HandlerFunc.ServeHTTP",
		"http.HandlerFunc.ServeHTTP",
		"HandlerFunc.ServeHTTP",
		"net/http",
	],
	["time.Time.String", "time.Time.String", "time.Time.String", "Time.String", "time"],
	[
		"gopkg.in/yaml%2ev3.Unmarshal",
		"gopkg.in/yaml%2ev3.Unmarshal",
		"yaml%2ev3.Unmarshal",
		"Unmarshal",
		"gopkg.in/yaml%2ev3",
	],
	// C++
	[
		"leveldb::DBImpl::Write(leveldb::WriteOptions const&, leveldb::WriteBatch*)",
		"leveldb::DBImpl::Write",
		"DBImpl::Write",
		"DBImpl::Write",
		"leveldb",
	],
	[
		"std::vector<int, std::allocator<int> >::push_back(int&&)",
		"std::vector<…>::push_back",
		"vector<…>::push_back",
		"vector<…>::push_back",
		"std",
	],
	[
		"void std::__sort<int*, __gnu_cxx::__ops::_Iter_less_iter>(int*, int*, int) [clone .isra.0]",
		"std::__sort<…>",
		"std::__sort<…>",
		"__sort<…>",
		"std",
	],
	[
		"(anonymous namespace)::Reader::next(char const*) const",
		"(anon)::Reader::next",
		"Reader::next",
		"Reader::next",
		"(anon)",
	],
	[
		"v8::internal::(anonymous namespace)::Invoke(v8::internal::Isolate*, int)",
		"v8::internal::(anon)::Invoke",
		"(anon)::Invoke",
		"(anon)::Invoke",
		"v8",
	],
	[
		"a::run(std::function<void (int)> const&)::{lambda(int)#2}::operator()(int) const",
		"a::run::{lambda#2}::operator()",
		"a::run::{lambda#2}::operator()",
		"run::{lambda#2}::operator()",
		"a",
	],
	[
		"std::ostream& std::operator<< <char>(std::ostream&, char const*)",
		"std::operator<<<…>",
		"std::operator<<<…>",
		"operator<<<…>",
		"std",
	],
	["operator new(unsigned long)", "operator new", "operator new", "operator new", "operator new"],
	[
		"std::__cxx11::basic_string<char>::_M_append[abi:cxx11](char const*, unsigned long)",
		"std::__cxx11::basic_string<…>::_M_append",
		"basic_string<…>::_M_append",
		"basic_string<…>::_M_append",
		"std",
	],
	[
		"non-virtual thunk to app::Worker::run()",
		"app::Worker::run",
		"Worker::run",
		"Worker::run",
		"app",
	],
	["compare(int, int)", "compare", "compare", "compare", "compare"],
	// Rust
	[
		"core::fmt::write::h0123456789abcdef",
		"core::fmt::write",
		"fmt::write",
		"fmt::write",
		"core",
	],
	[
		"<alloc::vec::Vec<T> as core::iter::traits::collect::Extend<T>>::extend::h00000000deadbeef",
		"alloc::vec::Vec<…>::extend",
		"Vec<…>::extend",
		"Vec<…>::extend",
		"alloc",
	],
	["<&mut W as core::fmt::Write>::write_str", "W::write_str", "W::write_str", "write_str", "W"],
	[
		"tokio::runtime::task::raw::poll::<fn(A) -> B>",
		"tokio::runtime::task::raw::poll<…>",
		"raw::poll<…>",
		"raw::poll<…>",
		"tokio",
	],
	[
		"app::main::{{closure}}::h0123456789abcdef",
		"app::main::{closure}",
		"app::main::{closure}",
		"main::{closure}",
		"app",
	],
	[
		"core::ptr::drop_in_place<alloc::string::String>",
		"core::ptr::drop_in_place<…>",
		"ptr::drop_in_place<…>",
		"ptr::drop_in_place<…>",
		"core",
	],
	// Java
	[
		"java.util.concurrent.ThreadPoolExecutor$Worker.run",
		"java.util.concurrent.ThreadPoolExecutor$Worker.run",
		"ThreadPoolExecutor$Worker.run",
		"ThreadPoolExecutor$Worker.run",
		"java.util.concurrent",
	],
	["java/util/HashMap.put", "java/util/HashMap.put", "HashMap.put", "HashMap.put", "java/util"],
	["Lorg/example/Foo;::bar", "org/example/Foo::bar", "Foo::bar", "Foo::bar", "org/example"],
	[
		"org.example.Main$$Lambda$14/0x0000000800c03000.run",
		"org.example.Main$$Lambda.run",
		"Main$$Lambda.run",
		"Main$$Lambda.run",
		"org.example",
	],
	[
		"org.example.Main.call(String, int)",
		"org.example.Main.call",
		"Main.call",
		"Main.call",
		"org.example",
	],
	// C, kernels, mappings
	["head_append", "head_append", "head_append", "head_append", "head"],
	["memcpy@@GLIBC_2.14", "memcpy", "memcpy", "memcpy", "memcpy"],
	["sort_rows.constprop.0", "sort_rows", "sort_rows", "sort_rows", "sort"],
	["main.cold", "main", "main", "main", "main"],
	["memcpy", ...same("memcpy")],
	["/usr/lib/libc.so.6", "/usr/lib/libc.so.6", "libc.so.6", "libc.so.6", "libc.so.6"],
	["[kernel]", ...same("[kernel]")],
	["[unknown]", ...same("[unknown]")],
	["other", ...same("other")],
	["", ...same("")],
	["<module>", ...same("<module>")],
];

test("names are made readable", () => {
	for (const [full, tidy, short, bare, pkg] of TABLE) {
		assert.deepEqual(
			[names.tidyName(full), names.shortName(full), names.bareName(full), names.packageOf(full)],
			[tidy, short, bare, pkg],
			full,
		);
	}
});

test("whatever comes, something stands there", () => {
	const odd = ["(", "<", "[", "{", "::", "operator", "operator()", "a::", "<T", "f(g(", " ", "->"];
	for (const full of [...odd, ...odd.flatMap((a) => odd.map((b) => a + b))]) {
		assert.ok(names.tidyName(full).length > 0, full);
		assert.ok(names.nameForms(full).length > 0, full);
		assert.equal(typeof names.packageOf(full), "string");
	}
});

test("the forms of a name, the longest first", () => {
	assert.deepEqual(names.nameForms("encoding/json.(*Decoder).Decode"), [
		"encoding/json.(*Decoder).Decode",
		"json.(*Decoder).Decode",
		"(*Decoder).Decode",
		"Decode",
	]);
	assert.deepEqual(names.nameForms("memcpy"), ["memcpy"]);
});
