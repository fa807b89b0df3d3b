import { describe } from 'node:test'

import { testRows } from './evaluate.fixture.ts'

describe('CEL functions for URLs evaluate', () => {
  testRows([
    ['url("https://u:p@Example.com:8443/a%20b/?q=1&q=2&r=#f").getHost()', 'Example.com:8443'],
    ['url("https://[::1]:80/").getHostname() + url("https://[::1]:80/").getPort()', '::180'],
    ['url("https://a/x?q=1&q=a+b&r").getQuery()', { q: ['1', 'a b'], r: [''] }],
    ['url("https://a/b c").getEscapedPath()', '/b%20c'],
    ['url("/only/path").getScheme()', ''],
    ['isURL("relative") || isURL("http://a:x/") || isURL("http://a b/")', false],
    [
      'url("http://[::1/")',
      `!URL parse error during conversion from string: parse "http://[::1/": missing ']' in host`,
    ],
    [
      'url("http://a.b/%") ',
      '!URL parse error during conversion from string: parse "http://a.b/%": invalid URL escape "%"',
    ],
    ['url("mailto:a@b") == url("mailto:a@b")', true, 3],
  ])
})

describe('CEL functions for quantities evaluate', () => {
  testRows([
    ['quantity("1.5Gi").asApproximateFloat()', 1610612736],
    ['quantity("1k").compareTo(quantity("1000"))', 0],
    ['quantity("1000m").isInteger() || quantity("1.5Gi").isInteger()', false],
    ['quantity("2k").asInteger()', 2000],
    ['quantity("500m").add(quantity("500m")) == quantity("1")', true],
    ['quantity("1Gi").sub(1).isLessThan(quantity("1Gi"))', true],
    ['sign(quantity("-3"))', -1],
    ['isQuantity("1.2.3") || isQuantity("")', false],
  ])
})

describe('CEL functions for IP addresses and CIDRs evaluate', () => {
  testRows([
    ['ip("2001:DB8::1").family() + ip("10.0.0.1").family()', 10],
    ['ip.isCanonical("2001:DB8::1") || !ip.isCanonical("::1")', false],
    ['ip("169.254.0.1").isLinkLocalUnicast() && ip("224.0.0.1").isLinkLocalMulticast()', true],
    ['ip("ff02::1").isLinkLocalMulticast() && ip("fe80::1").isLinkLocalUnicast()', true],
    ['ip("ff05::1").isLinkLocalMulticast()', false],
    ['ip("10.0.0.1").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast()', true],
    ['isIP("1.2.3.4.5") || isIP("::ffff:1.2.3.4") || isIP("fe80::1%eth0")', false],
    ['string(cidr("10.0.0.9/8")) + string(cidr("10.0.0.9/8").masked())', '10.0.0.9/810.0.0.0/8'],
    ['cidr("10.0.0.0/8").containsIP("10.1.2.3")', true],
    ['cidr("10.0.0.0/8").containsCIDR(cidr("10.0.0.0/7"))', false],
    ['cidr("10.0.0.0/8").containsIP("bad")', '!no such overload'],
    [
      'cidr("10.0.0.0/8").containsCIDR("bad")',
      `!network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("bad"): no '/'`,
    ],
    [
      'ip("1:2:3:4:5:6:7:8:9")',
      '!IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")',
    ],
    [
      'ip("1::2::3")',
      '!IP Address "1::2::3" parse error during conversion from string: ParseAddr("1::2::3"): multiple :: in address (at ":3")',
    ],
    [
      'ip("256.1.1.1")',
      '!IP Address "256.1.1.1" parse error during conversion from string: ParseAddr("256.1.1.1"): IPv4 field has value >255',
    ],
  ])
})

describe('CEL functions for versions evaluate', () => {
  testRows([
    ['semver("1.2.3-rc.1").isLessThan(semver("1.2.3"))', true],
    ['semver("1.0.0-2").compareTo(semver("1.0.0-10"))', -1],
    ['semver("1.0.0+a") == semver("1.0.0+b")', true],
    ['semver("v01.2", true).minor()', 2],
    ['semver("1.2.3-01")', '!Numeric PreRelease version must not contain leading zeroes "01"'],
    ['semver("1.2.3+")', '!Build meta data is empty'],
    ['isSemver("1.2") || !isSemver("1.2", true)', false],
  ])
})

describe('CEL functions for named formats evaluate', () => {
  testRows([
    ['format.dns1123Label().validate("a-b").hasValue()', false],
    ['format.named("dns1123Label").value().validate("-").value().size() > 0', true],
    ['format.named("nope").hasValue()', false],
    ['format.uuid().validate("x").value()', ['does not match the UUID format']],
    ['format.date().validate("2023-02-29").value()', ['invalid date']],
    ['format.datetime().validate("2024-01-01T00:00:00Z").hasValue()', false],
    ['format.byte().validate("aGk=").hasValue()', false],
    ['format.uri().validate("nope").value()', ['parse "nope": invalid URI for request']],
    ['format.dns1035LabelPrefix().validate("abc-").hasValue()', false],
  ])
})
