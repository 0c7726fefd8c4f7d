#include "web/openapi/examples.h"

#include <string.h>

/* clang-format off */
static const struct operation_example examples[] = {
	{ "query",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"top\",\"result\":[{\"metric\":{\""
		"__name__\":\"process_cpu\",\"instance\":\"10.0.0.2:8080\",\"job\":\"demo\",\"version"
		"\":\"v2\"},\"type\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta\",\"unit\":"
		"\"nanoseconds\",\"total\":90000000,\"profiles\":1,\"functions\":34,\"rows\":[{\"func"
		"tion\":\"runtime.asyncPreempt\",\"flat\":30000000,\"flat_percent\":33.333333,\"sum_p"
		"ercent\":33.333333,\"cum\":30000000,\"cum_percent\":33.333333},{\"function\":\"main."
		"parsePrices\",\"flat\":20000000,\"flat_percent\":22.222222,\"sum_percent\":55.555556"
		",\"cum\":30000000,\"cum_percent\":33.333333},{\"function\":\"compress/flate.token.of"
		"fset\",\"flat\":10000000,\"flat_percent\":11.111111,\"sum_percent\":66.666667,\"cum"
		"\":10000000,\"cum_percent\":11.111111}]}]}}" },
	{ "queryRange",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"unit\":\"nanoseconds\""
		",\"result\":[{\"metric\":{\"job\":\"demo\"},\"values\":[[1795953303.331,\"150000000"
		"\"],[1795953318.331,\"140000000\"]]}]}}" },
	{ "formatQuery",
		"{\"status\":\"success\",\"data\":\"sum(total(cpu))\"}" },
	{ "parseQuery",
		"{\"status\":\"success\",\"data\":{\"type\":\"aggregation\",\"op\":\"sum\",\"expr\":{"
		"\"type\":\"call\",\"func\":{\"name\":\"total\",\"argTypes\":[\"profiles\"],\"variadi"
		"c\":0,\"returnType\":\"vector\"},\"args\":[{\"type\":\"vectorSelector\",\"name\":\"c"
		"pu\",\"offset\":0,\"matchers\":[{\"name\":\"job\",\"value\":\"demo\",\"type\":\"=\"}"
		",{\"name\":\"__name__\",\"value\":\"cpu\",\"type\":\"=\"}],\"timestamp\":null,\"star"
		"tOrEnd\":null,\"valueTypes\":\"vector|profiles\",\"position\":{\"start\":19,\"end\":"
		"34}}],\"valueTypes\":\"vector\",\"position\":{\"start\":13,\"end\":35}},\"param\":nu"
		"ll,\"grouping\":[\"job\"],\"without\":false,\"valueTypes\":\"vector\",\"position\":{"
		"\"start\":0,\"end\":36}}}" },
	{ "explainQuery",
		"{\"status\":\"success\",\"data\":{\"tree\":{\"expression\":\"sum(total(cpu))\",\"kin"
		"d\":\"call\",\"type\":\"costs\",\"children\":[{\"expression\":\"total(cpu)\",\"kind"
		"\":\"call\",\"type\":\"costs\",\"children\":[{\"expression\":\"cpu\",\"kind\":\"sele"
		"ctor\",\"type\":\"profiles or costs\",\"reads\":[{\"name\":\"cpu\",\"matchers\":[],"
		"\"values\":\"totals\",\"grouping\":\"each series\",\"labels\":[],\"places\":1,\"step"
		"s\":1,\"first\":[1795953033.953,1795953333.953],\"last\":[1795953033.953,1795953333."
		"953],\"latest\":true,\"series\":3,\"elements\":3,\"columns\":[\"process_cpu:cpu:nano"
		"seconds:cpu:nanoseconds:delta\"],\"sampleLabels\":false,\"estimate\":{\"profiles\":3"
		",\"samples\":0,\"bytes\":444,\"sources\":{\"headRows\":3}}}]}]}]},\"estimate\":{\"pr"
		"ofiles\":3,\"samples\":0,\"bytes\":444,\"sources\":{\"headRows\":3}},\"seriesSteps\""
		":3,\"memoryBytes\":1272,\"limits\":{\"samples\":2000000000,\"memoryBytes\":107374182"
		"4}}}" },
	{ "language",
		"{\"status\":\"success\",\"data\":{\"functions\":[{\"name\":\"merge\",\"usage\":\"mer"
		"ge [by|without (label, ...)] (profiles)\",\"arguments\":\"profiles\",\"returns\":\"p"
		"rofiles\",\"help\":\"the sum of profiles, per set of labels; sample labels can be gr"
		"ouped by as well\",\"argumentTypes\":[[\"profiles\"]],\"variadic\":0,\"modifiers\":["
		"\"by\"],\"byFrames\":false}],\"aggregations\":[{\"name\":\"topk\",\"usage\":\"topk ["
		"by|without (label, ...)] (k, costs)\",\"arguments\":\"k, costs\",\"returns\":\"costs"
		"\",\"help\":\"the k greatest costs\",\"argumentTypes\":[[\"scalar\"]],\"variadic\":0"
		",\"modifiers\":[\"by\"],\"byFrames\":false}],\"frameFields\":[\"function\"],\"keywor"
		"ds\":[\"and\"],\"labelLists\":[\"by\"],\"numbers\":[\"inf\"],\"operators\":[{\"name"
		"\":\"+\",\"kind\":\"arithmetic\",\"binds\":4,\"right\":false}]}}" },
	{ "queryExemplars",
		"{\"status\":\"success\",\"data\":[]}" },
	{ "links",
		"{\"status\":\"success\",\"data\":[{\"time\":1700000000,\"metric\":{\"__name__\":\"pr"
		"ocess_cpu\",\"job\":\"shop\"},\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\"sp"
		"an_id\":\"b7ad6b7169203331\",\"function\":\"main.work\",\"labels\":{},\"values\":{\""
		"samples:count\":3,\"cpu:nanoseconds\":30000000}}]}" },
	{ "source",
		"{\"status\":\"success\",\"data\":{\"server\":\"https://debuginfod.example.org\",\"te"
		"xt\":\"int main(void)\\n{\\n\\treturn 0;\\n}\\n\"}}" },
	{ "sourceLinks",
		"{\"status\":\"success\",\"data\":{\"debuginfod\":false,\"links\":1,\"labels\":[\"ver"
		"sion\"],\"url\":\"https://git.example.org/shop/blob/main/src/main.go#L10\"}}" },
	{ "series",
		"{\"status\":\"success\",\"data\":[{\"__name__\":\"process_cpu\",\"instance\":\"10.0."
		"0.2:8080\",\"job\":\"demo\",\"version\":\"v2\"},{\"__name__\":\"process_cpu\",\"inst"
		"ance\":\"10.0.0.1:8080\",\"job\":\"demo\",\"version\":\"v1\"}]}" },
	{ "labels",
		"{\"status\":\"success\",\"data\":[\"__name__\",\"alertname\",\"alertstate\",\"bytes"
		"\"]}" },
	{ "labelValues",
		"{\"status\":\"success\",\"data\":[\"batch\",\"demo\"]}" },
	{ "labelCounts",
		"{\"status\":\"success\",\"data\":[{\"name\":\"__name__\",\"values\":12,\"series\":55"
		"},{\"name\":\"version\",\"values\":2,\"series\":52},{\"name\":\"job\",\"values\":2,"
		"\"series\":51}]}" },
	{ "profileTypes",
		"{\"status\":\"success\",\"data\":[{\"type\":\"block:contentions:count:contentions:co"
		"unt:delta\",\"name\":\"block\",\"sample_type\":\"contentions\",\"sample_unit\":\"cou"
		"nt\",\"period_type\":\"contentions\",\"period_unit\":\"count\",\"delta\":true},{\"ty"
		"pe\":\"block:delay:nanoseconds:contentions:count:delta\",\"name\":\"block\",\"sample"
		"_type\":\"delay\",\"sample_unit\":\"nanoseconds\",\"period_type\":\"contentions\",\""
		"period_unit\":\"count\",\"delta\":true}]}" },
	{ "functions",
		"{\"status\":\"success\",\"data\":[\"main.(*load).get\",\"main.(*load).get.func1\",\""
		"main.(*load).holdWatchers\"],\"warnings\":[\"results truncated due to limit\"]}" },
	{ "metadata",
		"{\"status\":\"success\",\"data\":{\"cpu\":[{\"type\":\"counter\",\"unit\":\"nanoseco"
		"nds\",\"help\":\"cpu of process_cpu profiles, counted over each scrape\",\"profile_t"
		"ype\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta\"}]}}" },
	{ "targets",
		"{\"status\":\"success\",\"data\":{\"activeTargets\":[{\"discoveredLabels\":{\"__addr"
		"ess__\":\"10.0.0.2:8080\",\"__name__\":\"block\",\"__profile_path__\":\"/debug/pprof"
		"/block\",\"__scheme__\":\"http\",\"__scrape_interval__\":\"2s\",\"__scrape_timeout__"
		"\":\"2s\",\"job\":\"demo\",\"version\":\"v2\"},\"labels\":{\"instance\":\"10.0.0.2:8"
		"080\",\"job\":\"demo\",\"version\":\"v2\"},\"profile\":\"block\",\"scrapePool\":\"de"
		"mo\",\"scrapeUrl\":\"http://10.0.0.2:8080/debug/pprof/block\",\"globalUrl\":\"http:/"
		"/10.0.0.2:8080/debug/pprof/block\",\"lastError\":\"\",\"lastScrape\":\"2026-11-29T11"
		":55:34.115413700Z\",\"lastScrapeDuration\":0.228002,\"nextProfile\":\"2026-11-29T11:"
		"55:36.114431667Z\",\"health\":\"up\",\"scrapeInterval\":\"2s\",\"scrapeTimeout\":\"2"
		"s\",\"scrapes\":6,\"failures\":0,\"skipped\":0,\"lastSamples\":27,\"lastBytes\":4217"
		"}],\"droppedTargets\":[],\"droppedTargetCounts\":{\"demo\":0}}}" },
	{ "scrapePools",
		"{\"status\":\"success\",\"data\":{\"scrapePools\":[\"demo\"]}}" },
	{ "relabelSteps",
		"{\"status\":\"success\",\"data\":{\"steps\":[],\"profiles\":[{\"profile\":\"block\","
		"\"keep\":true,\"labels\":{\"__name__\":\"block\",\"instance\":\"a:1\",\"job\":\"demo"
		"\"},\"scrapeUrl\":\"http://a:1/debug/pprof/block\"}]}}" },
	{ "targetsMetadata",
		"{\"status\":\"success\",\"data\":[{\"target\":{\"instance\":\"10.0.0.2:8080\",\"job"
		"\":\"demo\",\"version\":\"v2\"},\"metric\":\"block\",\"type\":\"counter\",\"unit\":"
		"\"count\",\"help\":\"contentions of block profiles, counted over each scrape\",\"pro"
		"file_type\":\"block:contentions:count:contentions:count:delta\"}]}" },
	{ "profileTarget",
		"{\"status\":\"success\",\"data\":{\"labels\":{\"__name__\":\"goroutine\",\"instance"
		"\":\"10.0.0.2:8080\",\"job\":\"demo\",\"version\":\"v2\"},\"scrapeUrl\":\"http://10."
		"0.0.2:8080/debug/pprof/goroutine\",\"time\":1795953335.021,\"samples\":31,\"bytes\":"
		"2140,\"query\":\"{__name__=\\\"goroutine\\\",instance=\\\"10.0.0.2:8080\\\",job=\\\""
		"demo\\\",version=\\\"v2\\\"} @ 1795953335.021\"}}" },
	{ "senders",
		"{\"status\":\"success\",\"data\":{\"since\":\"2026-11-29T11:55:22.313198289Z\",\"max"
		"\":10000,\"forgotten\":0,\"senders\":[{\"address\":\"127.0.0.1\",\"path\":\"/api/v1/"
		"ingest\",\"job\":\"batch\",\"types\":[\"process_cpu\"],\"state\":\"sending\",\"first"
		"Seen\":\"2026-11-29T11:55:24.939552096Z\",\"lastSeen\":\"2026-11-29T11:55:24.9395520"
		"96Z\",\"firstStored\":\"2026-11-29T11:55:24.939552096Z\",\"lastStored\":\"2026-11-29"
		"T11:55:24.939552096Z\",\"requests\":1,\"profiles\":1,\"dropped\":0,\"samples\":144,"
		"\"bytes\":13603,\"refusedProfiles\":0}]}}" },
	{ "rules",
		"{\"status\":\"success\",\"data\":{\"groups\":[{\"name\":\"shop\",\"file\":\"/etc/epi"
		"metheus/rules.yml\",\"rules\":[{\"name\":\"job:cpu:rate\",\"query\":\"sum by (versio"
		"n) (total(cpu{job=\\\"demo\\\"}))\",\"records\":\"costs\",\"health\":\"ok\",\"evalua"
		"tionTime\":0.004722,\"lastEvaluation\":\"2026-11-29T11:55:33.904Z\",\"type\":\"recor"
		"ding\"},{\"state\":\"pending\",\"name\":\"CpuIsUsed\",\"query\":\"sum(total(cpu{job="
		"\\\"demo\\\"})) > 0\",\"duration\":3600,\"keepFiringFor\":0,\"labels\":{\"severity\""
		":\"page\"},\"annotations\":{\"summary\":\"the demo uses {{ $value }}\"},\"alerts\":["
		"{\"labels\":{\"alertname\":\"CpuIsUsed\",\"severity\":\"page\"},\"annotations\":{\"s"
		"ummary\":\"the demo uses 1.4e+08\"},\"state\":\"pending\",\"activeAt\":\"2026-11-29T"
		"11:55:24.904Z\",\"value\":\"1.4e+08\"}],\"health\":\"ok\",\"evaluationTime\":0.00456"
		"2,\"lastEvaluation\":\"2026-11-29T11:55:33.904Z\",\"type\":\"alerting\"}],\"interval"
		"\":1,\"queryOffset\":0,\"limit\":0,\"evaluationTime\":0.009286,\"lastEvaluation\":\""
		"2026-11-29T11:55:33.904Z\",\"iterations\":12,\"missedIterations\":0}]}}" },
	{ "alerts",
		"{\"status\":\"success\",\"data\":{\"alerts\":[{\"labels\":{\"alertname\":\"CpuIsUsed"
		"\",\"severity\":\"page\"},\"annotations\":{\"summary\":\"the demo uses 1.4e+08\"},\""
		"state\":\"pending\",\"activeAt\":\"2026-11-29T11:55:24.904Z\",\"value\":\"1.4e+08\"}"
		"]}}" },
	{ "alertmanagers",
		"{\"status\":\"success\",\"data\":{\"activeAlertmanagers\":[{\"url\":\"http://alertma"
		"nager:9093/api/v2/alerts\",\"lastError\":\"\",\"sent\":0,\"failed\":0}],\"droppedAle"
		"rtmanagers\":[]}}" },
	{ "buildInfo",
		"{\"status\":\"success\",\"data\":{\"version\":\"0.1.0\",\"revision\":\"cd5cdc556c46"
		"\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"2026-11-28T2"
		"1:04:10Z\",\"goVersion\":\"\",\"libraries\":[{\"name\":\"c-ares\",\"package\":"
		"\"libc-ares-dev\",\"version\":\"1.18.1-3\"},{\"name\":\"Expat\",\"package\":\"libex"
		"pat1-dev\",\"version\":\"2.5.0-1+deb12u1\"}]}}" },
	{ "runtimeInfo",
		"{\"status\":\"success\",\"data\":{\"startTime\":\"2026-11-29T11:55:22.313089210Z\","
		"\"CWD\":\"/etc/epimetheus\",\"hostname\":\"profiles\",\"serverTime\":\"2026-11-29T11"
		":55:34.892651720Z\",\"oldestProfile\":\"2026-11-29T11:55:22.463Z\",\"reloadConfigSuc"
		"cess\":true,\"lastConfigTime\":\"2026-11-29T11:55:22.315964653Z\",\"externalURL\":\""
		"http://profiles:7272\",\"cores\":2,\"storageRetention\":\"15d\",\"queryMemoryBytes\""
		":0,\"queryMemoryLimitBytes\":1073741824}}" },
	{ "config",
		"{\"status\":\"success\",\"data\":{\"yaml\":\"global:\\n  scrape_interval: 2s\\nscrap"
		"e_configs:\\n- job_name: demo\\n\"}}" },
	{ "flags",
		"{\"status\":\"success\",\"data\":{\"config.file\":\"/etc/epimetheus/epimetheus.yml\""
		",\"mode\":\"server\",\"web.listen-address\":\"127.0.0.1:0\"}}" },
	{ "tsdbStatus",
		"{\"status\":\"success\",\"data\":{\"state\":\"ready\",\"headStats\":{\"numSeries\":5"
		"5,\"maxSeries\":1000000,\"largestJob\":\"demo\",\"largestJobSeries\":50,\"maxSeriesP"
		"erJob\":500000,\"minTime\":1795953322463,\"maxTime\":1795953334904},\"windows\":1,\""
		"numBlocks\":0,\"diskBytes\":114688,\"partitions\":2,\"stackNodes\":2168,\"strings\":"
		"1093,\"symbolBytes\":215713,\"deltaBytes\":3788,\"indexBytes\":28296,\"rowsAppended"
		"\":61,\"samplesAppended\":1861,\"openLosses\":0,\"blocks\":[{\"ulid\":\"\",\"level\""
		":0,\"minTime\":1795946400000,\"maxTime\":1795953600000,\"numSeries\":55,\"numRows\":"
		"61,\"numSamples\":1861,\"bytes\":114688,\"raw\":true,\"damaged\":false}],\"losses\":"
		"[]}}" },
	{ "walReplay",
		"{\"status\":\"success\",\"data\":{\"min\":0,\"max\":0,\"current\":0}}" },
	{ "tsdbBlocks",
		"{\"status\":\"success\",\"data\":{\"blocks\":[{\"ulid\":\"01KB6Y3X9V5D0M3Z1Q8W7R2T4N"
		"\",\"minTime\":1795939200000,\"maxTime\":1795946400000,\"stats\":{\"numSamples\":918"
		"22,\"numSeries\":55},\"compaction\":{\"level\":1},\"version\":1}]}}" },
	{ "clusterStatus",
		"{\"status\":\"success\",\"data\":{\"mode\":\"server\"}}" },
	{ "notifications",
		"{\"status\":\"success\",\"data\":[{\"text\":\"Configuration reload has failed.\",\"d"
		"ate\":\"2026-11-29T11:55:34.892Z\",\"active\":true}]}" },
	{ "features",
		"{\"status\":\"success\",\"data\":{\"api\":{\"admin\":true,\"lifecycle\":true},\"epim"
		"etheus\":{\"files\":true,\"ingest\":true,\"otlp_grpc\":false,\"totals\":true},\"user"
		"\":{\"admin\":true,\"ingest\":true,\"read_all\":true}}}" },
	{ "snapshot",
		"{\"status\":\"success\",\"data\":{\"name\":\"20261129T115535Z-853dd84d\"}}" },
	{ "acceptLosses",
		"{\"status\":\"success\",\"data\":{\"accepted\":0}}" },
	{ "ingest",
		"{\"status\":\"success\",\"data\":{\"samples\":144,\"time\":\"2026-11-29T11:55:35.021"
		"Z\",\"profiles\":[{\"name\":\"process_cpu\",\"samples\":144,\"time\":\"2026-11-29T11"
		":55:35.021Z\"}]}}" },
	{ "symbols",
		"{\"status\":\"success\",\"data\":{\"enabled\":true,\"uploadEnabled\":true,\"bytes\":"
		"0,\"bytesMax\":5368709120,\"debuginfod\":[],\"directories\":[],\"binaries\":[]}}" },
	{ "lookAtFile",
		"{\"status\":\"success\",\"data\":{\"name\":\"x\",\"format\":\"pprof\",\"bytes\":1360"
		"3,\"keepMax\":2592000,\"profiles\":[{\"name\":\"process_cpu\",\"time\":1795228025.08"
		"5073,\"duration\":1.001278,\"samples\":144,\"types\":[{\"type\":\"samples\",\"unit\""
		":\"count\",\"default\":false},{\"type\":\"cpu\",\"unit\":\"nanoseconds\",\"default\""
		":true}]}]}}" },
	{ "listFiles",
		"{\"status\":\"success\",\"data\":{\"files\":[{\"id\":\"3203f5f26aedb1b27527a4a531230"
		"00b\",\"damaged\":false,\"created\":1795953324,\"expires\":1795956924,\"name\":\"cpu"
		".pb.gz\",\"bytes\":13603}],\"bytes\":13603,\"bytesMax\":1073741824,\"keepMax\":25920"
		"00}}" },
	{ "getFile",
		"{\"status\":\"success\",\"data\":{\"name\":\"cpu.pb.gz\",\"format\":\"pprof\",\"byte"
		"s\":13603,\"keepMax\":2592000,\"id\":\"3203f5f26aedb1b27527a4a53123000b\",\"damaged"
		"\":false,\"created\":1795953324,\"expires\":1795956924,\"profiles\":[{\"name\":\"pro"
		"cess_cpu\",\"time\":1795228025.085073,\"duration\":1.001278,\"samples\":144,\"types"
		"\":[{\"type\":\"samples\",\"unit\":\"count\",\"default\":false},{\"type\":\"cpu\",\""
		"unit\":\"nanoseconds\",\"default\":true}]}]}}" },
	{ "uploadSymbols",
		"{\"status\":\"success\",\"data\":{\"id\":\"8a3f0c6d5b2e4f71a90c13d27be6f58412cd90ab"
		"\",\"kind\":\"gnu\",\"state\":\"queued\"}}" },
	{ "deleteFile",
		"{\"status\":\"success\",\"data\":null}" },
	{ "profefeFind",
		"{\"code\":200,\"body\":[{\"id\":\"GOyCCu_kqF8YR1dJNEGoU2RlbW8\",\"type\":\"cpu\",\"s"
		"ervice\":\"demo\",\"labels\":[{\"key\":\"instance\",\"value\":\"10.0.0.2:8080\"},{\""
		"key\":\"version\",\"value\":\"v2\"}],\"created_at\":\"2026-11-29T11:55:34Z\"},{\"id"
		"\":\"GOyCCrG420-8VVbkaUBLjGRlbW8\",\"type\":\"cpu\",\"service\":\"demo\",\"labels\":"
		"[{\"key\":\"instance\",\"value\":\"10.0.0.1:8080\"},{\"key\":\"version\",\"value\":"
		"\"v1\"}],\"created_at\":\"2026-11-29T11:55:33Z\"}]}" },
	{ "profefeServices",
		"{\"code\":200,\"body\":[\"batch\",\"demo\",\"x\"]}" },
	{ "profefeVersion",
		"{\"code\":200,\"body\":{\"version\":\"0.1.0\",\"commit\":\"cd5cdc556c46\",\"build_ti"
		"me\":\"2026-11-28T21:04:10Z\"}}" },
	{ "profefeCollect",
		"{\"code\":200,\"body\":{\"id\":\"GOyCCu_kqF8YR1dJNEGoU2RlbW8\",\"type\":\"cpu\",\"se"
		"rvice\":\"demo\",\"created_at\":\"2026-11-29T11:55:34Z\"}}" },
};
/* clang-format on */

const struct operation_example *example_find(const char *id)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		if (!strcmp(examples[i].id, id))
			return &examples[i];
	return NULL;
}
