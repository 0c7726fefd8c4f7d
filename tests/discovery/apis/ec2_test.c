/* ec2_sd_configs: what is asked and signed, pages, and the labels of the answers. */
#include "tests/discovery/apis/api_check.h"

#define ZONES \
	"<DescribeAvailabilityZonesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">" \
	"<availabilityZoneInfo><item><zoneName>eu-west-2a</zoneName><zoneId>euw2-az2</zoneId></item>" \
	"</availabilityZoneInfo></DescribeAvailabilityZonesResponse>"
#define INSTANCES(set, more) \
	"<?xml version=\"1.0\"?><DescribeInstancesResponse><reservationSet>" set \
	"</reservationSet>" more "</DescribeInstancesResponse>"
#define RESERVATION(instances) \
	"<item><reservationId>r-1</reservationId><ownerId>123</ownerId><instancesSet>" instances \
	"</instancesSet></item>"
#define SMALL(ip) \
	"<item><instanceId>i-" ip "</instanceId><privateIpAddress>" ip "</privateIpAddress></item>"
#define SMALL_LABELS(ip) \
	"\t{__address__=\"" ip ":80\", __meta_ec2_instance_id=\"i-" ip "\", " \
	"__meta_ec2_owner_id=\"123\", __meta_ec2_private_ip=\"" ip "\", " \
	"__meta_ec2_region=\"eu-west-2\"}\n"
#define REFUSAL \
	"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not " \
	"authorized.</Message></Error></Errors><RequestID>x</RequestID></Response>"
#define CONFIG \
	"[{region: eu-west-2, access_key: AK, secret_key: SK, endpoint: 'http://@', " \
	"refresh_interval: 100ms"
#define ASK_ZONES "POST / Action=DescribeAvailabilityZones&Version=2016-11-15"
#define ASK "POST / Action=DescribeInstances&Version=2016-11-15&MaxResults=1000"

static const char whole[] =
	"<item><instanceId>i-1</instanceId><imageId>ami-1</imageId><instanceState><code>16</code>"
	"<name>running</name></instanceState><privateDnsName>ip-10.internal</privateDnsName>"
	"<dnsName>ec2-1.example</dnsName><instanceType>t3.micro</instanceType>"
	"<placement><availabilityZone>eu-west-2a</availabilityZone></placement>"
	"<platform>windows</platform><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId>"
	"<privateIpAddress>10.0.0.1</privateIpAddress><ipAddress>1.2.3.4</ipAddress>"
	"<architecture>x86_64</architecture><instanceLifecycle>spot</instanceLifecycle>"
	"<tagSet><item><key>Name</key><value>api &amp; web</value></item><item><key>team/x</key>"
	"<value/></item><item><key>a:b</key><value>c</value></item></tagSet>"
	"<networkInterfaceSet><item><subnetId>subnet-1</subnetId><attachment><deviceIndex>0"
	"</deviceIndex></attachment><ipv6AddressesSet><item><ipv6Address>fd00::1</ipv6Address>"
	"</item></ipv6AddressesSet></item><item><subnetId>subnet-2</subnetId><attachment>"
	"<deviceIndex>2</deviceIndex></attachment><ipv6AddressesSet><item><ipv6Address>fd00::2"
	"</ipv6Address><isPrimaryIpv6>true</isPrimaryIpv6></item></ipv6AddressesSet></item>"
	"<item><subnetId>subnet-1</subnetId></item><item><status>in-use</status></item>"
	"</networkInterfaceSet></item>";

#define WHOLE_LABELS(zone) \
	"ec2 {}\n\t{__address__=\"10.0.0.1:6060\", __meta_ec2_ami=\"ami-1\", " \
	"__meta_ec2_architecture=\"x86_64\", __meta_ec2_availability_zone=\"eu-west-2a\", " zone \
	"__meta_ec2_default_ipv6_address=\"fd00::2\", __meta_ec2_instance_id=\"i-1\", " \
	"__meta_ec2_instance_lifecycle=\"spot\", __meta_ec2_instance_state=\"running\", " \
	"__meta_ec2_instance_type=\"t3.micro\", __meta_ec2_ipv6_addresses=\",fd00::1,fd00::2,\", " \
	"__meta_ec2_owner_id=\"123\", __meta_ec2_platform=\"windows\", " \
	"__meta_ec2_primary_ipv6_addresses=\",,,fd00::2,\", " \
	"__meta_ec2_primary_subnet_id=\"subnet-1\", __meta_ec2_private_dns_name=\"ip-10.internal\", " \
	"__meta_ec2_private_ip=\"10.0.0.1\", __meta_ec2_public_dns_name=\"ec2-1.example\", " \
	"__meta_ec2_public_ip=\"1.2.3.4\", __meta_ec2_region=\"eu-west-2\", " \
	"__meta_ec2_subnet_id=\",subnet-1,subnet-2,\", __meta_ec2_tag_Name=\"api & web\", " \
	"__meta_ec2_tag_a_b=\"c\", __meta_ec2_vpc_id=\"vpc-1\"}\n"

static struct world w;

static void open_world(const char *zones, int zones_status, const char *instances, const char *yaml)
{
	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "DescribeAvailabilityZones", zones, zones_status });
	world_rule(&w, (struct world_rule){ "DescribeInstances", instances });
	world_source(&w, ec2_sd_decode, yaml);
}

TEST(labels)
{
	/* clang-format off */
	static const struct {
		const char *instances, *want;
	} rows[] = {
		{ INSTANCES("", ""), "ec2 {}\n" },
		{ "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>", "ec2 {}\n" },
		{ INSTANCES(RESERVATION(SMALL("10.0.0.1") SMALL("10.0.0.2"))
			RESERVATION(SMALL("10.0.0.3")), ""),
			"ec2 {}\n" SMALL_LABELS("10.0.0.1") SMALL_LABELS("10.0.0.2")
			SMALL_LABELS("10.0.0.3") },
		/* no address: no target; an address of IPv6 alone; in a VPC without interfaces */
		{ INSTANCES(RESERVATION("<item><instanceId>i</instanceId></item>"), ""), "ec2 {}\n" },
		{ INSTANCES(RESERVATION("<item><vpcId>v</vpcId><networkInterfaceSet><item>"
			"<subnetId>s</subnetId><ipv6AddressesSet>"
			"<item><ipv6Address>fd00::7</ipv6Address></item></ipv6AddressesSet>"
			"</item></networkInterfaceSet></item>"), ""),
			"ec2 {}\n\t{__address__=\"[fd00::7]:80\", __meta_ec2_default_ipv6_address=\"fd00::7\", "
			"__meta_ec2_ipv6_addresses=\",fd00::7,\", __meta_ec2_owner_id=\"123\", "
			"__meta_ec2_region=\"eu-west-2\", __meta_ec2_subnet_id=\",s,\", "
			"__meta_ec2_vpc_id=\"v\"}\n" },
		{ INSTANCES(RESERVATION("<item><vpcId>v</vpcId>"
			"<privateIpAddress>10.0.0.1</privateIpAddress>"
			"<dnsName>no.address</dnsName></item>"), ""),
			"ec2 {}\n\t{__address__=\"10.0.0.1:80\", __meta_ec2_owner_id=\"123\", "
			"__meta_ec2_private_ip=\"10.0.0.1\", __meta_ec2_region=\"eu-west-2\", "
			"__meta_ec2_subnet_id=\",,\", __meta_ec2_vpc_id=\"v\"}\n" },
	};
	/* clang-format on */
	char body[4096];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_world(ZONES, 200, rows[i].instances, CONFIG "}]");
		WORLD_EXPECT(&w, rows[i].want);
		CHECK_INT(w.unexpected + w.host.failures, 0);
		world_close(&w);
	}
	snprintf(body, sizeof(body), INSTANCES(RESERVATION("%s"), ""), whole);
	open_world(ZONES, 200, body, CONFIG ", port: 6060}]");
	WORLD_EXPECT(&w, WHOLE_LABELS("__meta_ec2_availability_zone_id=\"euw2-az2\", "));
	world_close(&w);
	/* no right to list zones, until there is */
	open_world(REFUSAL, 403, body, CONFIG ", port: 6060}]");
	WORLD_EXPECT(&w, WHOLE_LABELS(""));
	world_change(&w, "DescribeAvailabilityZones", ZONES, 200);
	WORLD_EXPECT(&w, WHOLE_LABELS("__meta_ec2_availability_zone_id=\"euw2-az2\", "));
	CHECK_INT(w.host.failures, 0);
	world_close(&w);
}

#define ASK_FILTERED \
	ASK "&Filter.1.Name=tag%3Ax%20y&Filter.1.Value.1=a&Filter.1.Value.2=b%26c" \
		"&Filter.2.Name=z&Filter.2.Value.1="

TEST(requests_are_signed)
{
	open_world(ZONES, 200, INSTANCES("", ""),
		CONFIG ", filters: [{name: 'tag:x y', values: [a, 'b&c']}, {name: z, values: ['']}]}]");
	WORLD_EXPECT(&w, "ec2 {}\n");
	CHECK(world_saw(&w, ASK_ZONES));
	CHECK(world_saw(&w, ASK_FILTERED));
	CHECK(
		str_find(buf_str(&w.headers), STR("authorization: AWS4-HMAC-SHA256 Credential=AK/")) >= 0);
	CHECK(str_find(buf_str(&w.headers),
		STR("/eu-west-2/ec2/aws4_request, SignedHeaders=content-type;host;x-amz-date, "
				  "Signature=")) >= 0);
	CHECK(str_find(buf_str(&w.headers),
		STR("content-type: application/x-www-form-urlencoded; charset=utf-8\n")) >= 0);
	CHECK(str_find(buf_str(&w.headers), STR("SK")) < 0);
	/* zones are asked for until they are there, and not again */
	CHECK(
		WORLD_UNTIL(&w, str_find(buf_str(&w.log), STR(ASK_FILTERED "\n" ASK_FILTERED "\n")) >= 0));
	buf_clear(&w.log);
	CHECK(WORLD_UNTIL(&w, w.log.len));
	CHECK(!world_saw(&w, ASK_ZONES));
	world_close(&w);
}

TEST(pages)
{
	world_open(&w, NULL);
	world_rule(&w, (struct world_rule){ "DescribeAvailabilityZones", ZONES });
	world_rule(&w,
		(struct world_rule){
			"NextToken=b%2F2", INSTANCES(RESERVATION(SMALL("10.0.0.3")), "<nextToken/>") });
	world_rule(&w,
		(struct world_rule){ "NextToken=a1",
			INSTANCES(RESERVATION(SMALL("10.0.0.2")), "<nextToken>b/2</nextToken>") });
	world_rule(&w,
		(struct world_rule){ "DescribeInstances",
			INSTANCES(RESERVATION(SMALL("10.0.0.1")), "<nextToken>a1</nextToken>") });
	world_source(&w, ec2_sd_decode, CONFIG "}]");
	WORLD_EXPECT(&w,
		"ec2 {}\n" SMALL_LABELS("10.0.0.1") "ec2 {}\n" SMALL_LABELS(
			"10.0.0.2") "ec2 {}\n" SMALL_LABELS("10.0.0.3"));
	/* a page that fails, and one that names itself: all targets stay */
	world_change(&w, "NextToken=b%2F2", REFUSAL, 503);
	WORLD_EXPECT_FAILURE(&w,
		arena_printf(&w.arena,
			"http://127.0.0.1:%u: describe instances: server returned HTTP status 503 Refused: "
			"UnauthorizedOperation: You are not authorized.",
			w.port));
	world_change(&w, "NextToken=b%2F2", INSTANCES("", "<nextToken>b/2</nextToken>"), 200);
	CHECK(WORLD_UNTIL(&w, strstr(w.host.why.msg, "two pages in a row name the same next one")));
	CHECK(strstr(world_text(&w), "10.0.0.3"));
	world_close(&w);
}

TEST(answers_that_are_none)
{
	/* clang-format off */
	static const struct {
		const char *body, *want;
		int status;
	} rows[] = {
		{ "<a>", "XML: 1:4: the document ends within an element", 200 },
		{ "{}", "XML: 1:1: not well-formed (invalid token)", 200 },
		{ "<html/>", "the answer has no reservationSet", 200 },
		{ REFUSAL, "server returned HTTP status 401 Refused: UnauthorizedOperation: You are not "
			"authorized.", 401 },
		{ "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>",
			"server returned HTTP status 503 Refused: Throttling", 503 },
	};
	/* clang-format on */
	char want[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_open(&w, NULL);
		world_rule(&w, (struct world_rule){ "DescribeAvailabilityZones", ZONES });
		world_rule(&w, (struct world_rule){ "DescribeInstances", rows[i].body, rows[i].status });
		world_source(&w, ec2_sd_decode, CONFIG "}]");
		snprintf(want, sizeof(want), "http://127.0.0.1:%u: describe instances: %s", w.port,
			rows[i].want);
		WORLD_EXPECT_FAILURE(&w, want);
		CHECK(!w.host.set);
		world_close(&w);
	}
}

TEST(configuration)
{
	/* clang-format off */
	static const struct config_row rows[] = {
		{ "[{}]", NULL },
		{ "[{region: x, filters: [{name: a, values: []}]}]",
			"c.yml:1:23: EC2 SD configuration filter values cannot be empty" },
		{ "[{region: x, filters: [{name: a}]}]",
			"c.yml:1:23: EC2 SD configuration filter values cannot be empty" },
		{ "[{endpoint: 'ftp://x'}]", "c.yml:1:2: URL scheme must be 'http' or 'https'" },
		{ "[{endpoint: 'ec2.example'}]", NULL },
		{ "[{role: x}]", "c.yml:1:3: field role not found in type ec2_sd_config" },
	};
	/* clang-format on */

	check_configs(ec2_sd_decode, rows, sizeof(rows) / sizeof(rows[0]));
}
