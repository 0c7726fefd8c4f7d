/*
 * What a request becomes, by tables: requests in JSON (their dictionary is the same for all), and
 * the whole text that tests/proto/otlp/show.c prints.
 */
#include "tests/check.h"
#include "tests/proto/otlp/show.h"

#define DICTIONARY \
	"'dictionary':{'stringTable':['','samples','count','cpu','nanoseconds','main','a.go','k','v'," \
	"'n','off_cpu','By','bin','process.executable.build_id.gnu','abc'," \
	"'process.executable.build_id.htlhash']," \
	"'mappingTable':[{},{'memoryStart':'4096','memoryLimit':8192,'fileOffset':1," \
	"'filenameStrindex':12,'attributeIndices':[8,7]},{'filenameStrindex':99}]," \
	"'functionTable':[{},{'nameStrindex':5,'systemNameStrindex':5,'filenameStrindex':6," \
	"'startLine':'3'}]," \
	"'locationTable':[{},{'mappingIndex':1,'address':'4100','lines':[{'functionIndex':1," \
	"'line':'7','column':2},{'functionIndex':1,'line':9}]},{'address':'18446744073709551615'}," \
	"{'mappingIndex':2},{'lines':[{'functionIndex':5}]},{'mappingIndex':7}]," \
	"'stackTable':[{},{'locationIndices':[1,2]},{'locationIndices':[2]},{'locationIndices':[3]}," \
	"{'locationIndices':[4]},{'locationIndices':[5]},{'locationIndices':[9]}]," \
	"'linkTable':[{},{'traceId':'000102030405060708090A0b0c0d0e0f','spanId':'a0a1a2a3a4a5a6a7'}]," \
	"'attributeTable':[{},{'keyStrindex':7,'value':{'stringValue':'v'}}," \
	"{'keyStrindex':9,'value':{'intValue':'5'},'unitStrindex':11}," \
	"{'keyStrindex':9,'value':{'intValue':0}},{'keyStrindex':7,'value':{'stringValueStrindex':8}}" \
	"," \
	"{'keyStrindex':7,'value':{'stringValue':''}},{'keyStrindex':7,'value':{'boolValue':true}}," \
	"{'keyStrindex':13,'value':{'stringValue':'abc'}}," \
	"{'keyStrindex':15,'value':{'stringValue':'def'}}," \
	"{'value':{'stringValue':'x'}},{'keyStrindex':7,'value':{'stringValueStrindex':77}}]}"

#define REQUEST(resource, profile) \
	"{'resourceProfiles':[{'resource':{'attributes':[" resource "]},'scopeProfiles':[{" \
	"'scope':{'name':'s','version':'1'},'profiles':[" profile "]}]}]," DICTIONARY "}"

#define OFF_CPU "{'sampleType':{'typeStrindex':10,'unitStrindex':4},'samples':["
#define HEAD "profile of s 1 off_cpu/nanoseconds per 0 / at 0 for 0 "
#define NO_ID " id 00000000000000000000000000000000\n"
#define STACK \
	" | 1004@bin(abc) 1000-2000+1 < main,main,a.go,3:7:2 < main,main,a.go,3:9:0" \
	" | ffffffffffffffff\n"

static const struct {
	const char *request, *want;
} cases[] = {
	{ "{}", "" },
	{ "{'resourceProfiles':[],'later':{'x':[1,{'y':null}]}}", "" },
	/* the shapes of values */
	{ REQUEST("", OFF_CPU "{'stackIndex':1,'timestampsUnixNano':['30','10',20]}]}"),
		HEAD "rows 1 times 3 from 10 to 30" NO_ID " 3 {}" STACK },
	{ REQUEST("", OFF_CPU "{'stackIndex':1,'values':['-7']}]}"),
		HEAD "rows 1 times 0 from 0 to 0" NO_ID " -7 {}" STACK },
	{ REQUEST("", OFF_CPU "{'stackIndex':1,'values':[7,8],'timestampsUnixNano':[1,2]}]}"),
		HEAD "rows 1 times 2 from 1 to 2" NO_ID " 15 {}" STACK },
	/* snake_case; no stack; times and id */
	{ REQUEST("",
		  "{'sample_type':{'type_strindex':10,'unit_strindex':4},'time_unix_nano':'5',"
		  "'duration_nano':6,'profile_id':'00112233445566778899aabbccddeeff',"
		  "'samples':[{'values':[1]}]}"),
		"profile of s 1 off_cpu/nanoseconds per 0 / at 5 for 6 rows 1 times 0 from 0 to 0 id "
		"00112233445566778899aabbccddeeff\n 1 {}\n" },
	/* samples/count per cpu/nanoseconds has a second column */
	{ REQUEST("",
		  "{'sampleType':{'typeStrindex':1,'unitStrindex':2},'periodType':{"
		  "'typeStrindex':3,'unitStrindex':4},'period':'100','samples':[{'values':[3]}]}"),
		"profile of s 1 samples/count cpu/nanoseconds per 100 cpu/nanoseconds at 0 for 0 "
		"rows 1 times 0 from 0 to 0" NO_ID " 3 300 {}\n" },
	/* labels: text, number with unit, zero, by reference, empty, bool; equal samples are merged */
	{ REQUEST("",
		  OFF_CPU "{'attributeIndices':[1,2,3,0,5],'values':[1]},"
				  "{'attributeIndices':[3,4,2],'values':[10]},"
				  "{'attributeIndices':[6],'values':[100]}]}"),
		HEAD "rows 3 times 0 from 0 to 0" NO_ID
			 " 100 {k=\"true\"}\n 11 {k=\"v\", n=0 n, n=5 By}\n" },
	/* samples with different links are kept apart */
	{ REQUEST(
		  "", OFF_CPU "{'linkIndex':1,'values':[1]},{'values':[2]},{'linkIndex':1,'values':[4]}]}"),
		HEAD "rows 3 times 0 from 0 to 0" NO_ID
			 " 2 {}\n 5 {} 000102030405060708090a0b0c0d0e0f/a0a1a2a3a4a5a6a7\n" },
	/* attributes of the resource, of all kinds, by value and by reference; of the profile */
	{ REQUEST(
		  "{'key':'a','value':{'stringValue':'\\u00e9\\n\\ud83d\\ude00\\ud800.'}},"
		  "{'keyStrindex':7,'value':{'stringValueStrindex':8}},{'key':'e'},"
		  "{'key':'b','value':{'boolValue':false}},{'key':'i','value':{'intValue':'-"
		  "9223372036854775808'}},"
		  "{'key':'d','value':{'doubleValue':1.5e3}},{'key':'inf','value':{'doubleValue':'Infinity'"
		  "}},"
		  "{'key':'y','value':{'bytesValue':'_-8'}},"
		  "{'key':'l','value':{'arrayValue':{'values':[{'intValue':1},{'stringValueStrindex':8},{}]"
		  "}}},"
		  "{'key':'m','value':{'kvlistValue':{'values':[{'key':'x','value':{'doubleValue':0.5}},"
		  "{'keyStrindex':7,'value':{'bytesValue':'YQ=='}}]}}}",
		  OFF_CPU "],'attributeIndices':[2]}"),
		HEAD "rows 0 times 0 from 0 to 0" NO_ID
			 "resource a=string:\xc3\xa9\n\xf0\x9f\x98\x80\xef\xbf\xbd.\nresource b=bool:false\n"
			 "resource d=double:1500\nresource e=empty:\nresource i=int:-9223372036854775808\n"
			 "resource inf=double:+Inf\nresource k=string:v\nresource l=array:[1,\"v\",null]\n"
			 "resource m=map:{\"x\":0.5,\"k\":\"YQ==\"}\nresource y=bytes:/+8=\n"
			 "attribute n=int:5 By\n" },
	/* names of 1.8; the temporality that only 1.8 has */
	{ REQUEST("",
		  "{'sampleType':{'typeStrindex':10,'unitStrindex':4,'aggregationTemporality':"
		  "'AGGREGATION_TEMPORALITY_CUMULATIVE'},'sample':[{'values':[1]}]}"),
		"profile of s 1 cumulative off_cpu/nanoseconds per 0 / at 0 for 0 rows 1 times 0 from 0 to "
		"0" NO_ID " 1 {}\n" },
};

/* One profile is left out, the others stay. */
static const struct {
	const char *samples, *want;
} rejected[] = {
	{ "{}", "samples[0]: neither values nor timestamps" },
	{ "{'values':[1]},{'values':[1,2]}", "samples[1]: 2 values for 0 timestamps" },
	{ "{'values':[1],'timestampsUnixNano':[1,2]}", "samples[0]: 1 values for 2 timestamps" },
	{ "{'timestampsUnixNano':['9223372036854775808']}", "samples[0]: a timestamp exceeds 63 bits" },
	{ "{'values':['9223372036854775807',1],'timestampsUnixNano':[1,2]}",
		"samples[0]: the sum of its values exceeds 64 bits" },
	{ "{'values':['9223372036854775807']},{'values':[1]}",
		"samples[1]: the sum of equal samples exceeds 64 bits" },
	{ "{'stackIndex':7,'values':[1]}", "samples[0]: no stack 7, stackTable has 7" },
	{ "{'stackIndex':-1,'values':[1]}", "samples[0]: no stack 4294967295, stackTable has 7" },
	{ "{'stackIndex':6,'values':[1]}", "samples[0]: no location 9, locationTable has 6" },
	{ "{'stackIndex':3,'values':[1]}",
		"samples[0]: mapping.filenameStrindex: no string 99, stringTable has 16" },
	{ "{'stackIndex':4,'values':[1]}", "samples[0]: no function 5, functionTable has 2" },
	{ "{'stackIndex':5,'values':[1]}", "samples[0]: no mapping 7, mappingTable has 3" },
	{ "{'linkIndex':2,'values':[1]}", "samples[0]: no link 2, linkTable has 2" },
	{ "{'attributeIndices':[11],'values':[1]}",
		"samples[0]: no attribute 11, attributeTable has 11" },
	{ "{'attributeIndices':[9],'values':[1]}", "samples[0]: attributeTable[9] has no key" },
	{ "{'attributeIndices':[10],'values':[1]}",
		"samples[0]: stringValueStrindex: no string 77, stringTable has 16" },
};

/* The requests have ' for ". */
static struct str quoted(struct arena *a, const char *text)
{
	char *s = arena_strndup(a, text, strlen(text));

	for (char *at = s; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	return str_of(s);
}

TEST(requests_become_profiles)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct otlp_request *r;
		struct buf out = { 0 };
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		REQUIRE_OK(
			otlp_decode_json(&a, quoted(&a, cases[i].request), &show_options, &r, &err), &err);
		check_request(r);
		show_request(&a, r, &out);
		CHECK_STR(buf_str(&out), cases[i].want);
		buf_release(&out);
		arena_release(&a);
	}
}

TEST(a_wrong_profile_leaves_the_others)
{
	for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
		struct otlp_request *r;
		struct buf text = { 0 };
		struct arena a;
		struct err err;
		char want[200];

		arena_init(&a, 0);
		buf_printf(&text,
			"{'resourceProfiles':[{'scopeProfiles':[{},{'profiles':["
			"%s{'values':[5]}]},%s%s]},%s%s]},%s{'values':[6]}]}]}]}]," DICTIONARY "}",
			OFF_CPU, OFF_CPU, rejected[i].samples, OFF_CPU, rejected[i].samples, OFF_CPU);
		buf_add_char(&text, '\0');
		REQUIRE_OK(otlp_decode_json(&a, quoted(&a, text.ptr), &show_options, &r, &err), &err);
		check_request(r);
		snprintf(want, sizeof(want), "resourceProfiles[0].scopeProfiles[1].profiles[1]: %s",
			rejected[i].want);
		CHECK_INT(r->rejected_n, 2);
		CHECK_STR(str_of(r->rejected.msg), want);
		CHECK_INT(r->rejected.code, ERR_INVALID);
		REQUIRE(r->profiles_n == 2);
		CHECK_INT(r->profiles[0].pprof->values[0], 5);
		CHECK_INT(r->profiles[1].pprof->values[0], 6);
		buf_release(&text);
		arena_release(&a);
	}
}

/* What is wrong with a profile as a whole, or with its resource. */
static const struct {
	const char *request, *want;
} wrong[] = {
	{ REQUEST("", "{'samples':[{'values':[1]}]}"), "sampleType is missing" },
	{ REQUEST("", "{'sampleType':{'typeStrindex':40}}"),
		"sampleType: no string 40, stringTable has 16" },
	{ REQUEST("", "{'sampleType':{'typeStrindex':1},'timeUnixNano':'18446744073709551615'}"),
		"timeUnixNano exceeds 63 bits" },
	{ REQUEST("", "{'sampleType':{'typeStrindex':1},'durationNano':'9223372036854775808'}"),
		"durationNano exceeds 63 bits" },
	{ REQUEST("", "{'sampleType':{'typeStrindex':1},'attributeIndices':[11]}"),
		"no attribute 11, attributeTable has 11" },
	{ REQUEST("",
		  "{'sampleType':{'typeStrindex':1,'unitStrindex':2},'periodType':{"
		  "'typeStrindex':3,'unitStrindex':4},'period':'4611686018427387904',"
		  "'samples':[{'values':[2]}]}"),
		"count x period of a sample exceeds 64 bits: 2 x 4611686018427387904" },
	{ REQUEST("{'key':'ok'},{'key':'a','value':{'stringValueStrindex':16}}", OFF_CPU "]}"),
		"resource.attributes[1]: stringValueStrindex: no string 16, stringTable has 16" },
};

TEST(a_profile_that_is_wrong_as_a_whole_is_left_out)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct otlp_request *r;
		struct arena a;
		struct err err;
		char want[200];

		arena_init(&a, 0);
		REQUIRE_OK(
			otlp_decode_json(&a, quoted(&a, wrong[i].request), &show_options, &r, &err), &err);
		snprintf(want, sizeof(want), "resourceProfiles[0].scopeProfiles[0].profiles[0]: %s",
			wrong[i].want);
		CHECK_STR(str_of(r->rejected.msg), want);
		CHECK_INT(r->rejected_n, 1);
		CHECK_INT(r->profiles_n, 0);
		arena_release(&a);
	}
}

/* A mapping has functions if all its locations that are used have names. */
TEST(mappings_say_what_is_known)
{
	static const char request[] = REQUEST("", OFF_CPU "{'stackIndex':1,'values':[1]}]}");
	const struct pprof_mapping *m;
	struct otlp_request *r;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(otlp_decode_json(&a, quoted(&a, request), &show_options, &r, &err), &err);
	REQUIRE(r->profiles_n == 1 && r->profiles[0].pprof->mappings_n == 1);
	m = r->profiles[0].pprof->mappings;
	CHECK(m->has_functions && m->has_filenames && m->has_line_numbers && m->has_inline_frames);
	/* without what other profiles use */
	CHECK_INT(r->profiles[0].pprof->locations_n, 2);
	CHECK_INT(r->profiles[0].pprof->functions_n, 1);
	arena_release(&a);
}

static const struct {
	const char *text, *want;
} bad_json[] = {
	{ "", "request is not OTLP JSON: JSON ends at byte 0: expected an object" },
	{ "[]", "request is not OTLP JSON: byte 0: expected an object" },
	{ "{", "request is not OTLP JSON: JSON ends at byte 1: expected a name" },
	{ "{'a' 1}", "request is not OTLP JSON: byte 5: expected ':'" },
	{ "{'a':1", "request is not OTLP JSON: JSON ends at byte 6: expected ',' or '}'" },
	{ "{'a':x}", "request is not OTLP JSON: byte 5: expected a value" },
	{ "{} x", "request is not OTLP JSON: byte 3: expected the end" },
	{ "{'a", "request is not OTLP JSON: byte 1: expected a string that ends" },
	{ "{'a\n':1}", "request is not OTLP JSON: byte 3: expected no control character" },
	{ "{'a':'\xff'}", "request is not OTLP JSON: not UTF-8" },
	{ "{'dictionary':[]}", "request is not OTLP JSON: byte 14, dictionary: expected an object" },
	{ "{'resourceProfiles':{}}",
		"request is not OTLP JSON: byte 20, resourceProfiles: expected an array" },
	{ "{'dictionary':{'stringTable':['','\\q']}}",
		"request is not OTLP JSON: byte 35, stringTable: expected an escape" },
	{ "{'dictionary':{'stringTable':['x']}}", "dictionary.stringTable[0] must be empty" },
	{ "{'dictionary':{'linkTable':[{'traceId':'0g'}]}}",
		"request is not OTLP JSON: byte 40, traceId: expected hex digits" },
	{ "{'dictionary':{'linkTable':[{},{'spanId':'00'}]}}",
		"dictionary.linkTable[1].spanId has 1 bytes, must have 8" },
	{ "{'dictionary':{'attributeTable':[{'value':{'bytesValue':'a'}}]}}",
		"request is not OTLP JSON: byte 57, bytesValue: expected base64" },
	{ "{'dictionary':{'mappingTable':[{'memoryStart':'1.5'}]}}",
		"request is not OTLP JSON: byte 47, memoryStart: expected an integer of 64 bits" },
	{ "{'dictionary':{'mappingTable':[{'memoryStart':18446744073709551616}]}}",
		"request is not OTLP JSON: byte 46, memoryStart: expected an integer of 64 bits" },
	{ "{'resourceProfiles':[{'scopeProfiles':[{'profiles':[{'locationIndices':[1]}]}]}]}",
		"profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: there is a member "
		"locationIndices; update the sender" },
};

TEST(json_that_is_refused)
{
	for (size_t i = 0; i < sizeof(bad_json) / sizeof(bad_json[0]); i++) {
		bool old = strstr(bad_json[i].want, "before 1.8");
		struct otlp_request *r;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		CHECK_ERR(otlp_decode_json(&a, quoted(&a, bad_json[i].text), &show_options, &r, &err), &err,
			old ? ERR_UNSUPPORTED : ERR_INVALID, bad_json[i].want);
		arena_release(&a);
	}
}
