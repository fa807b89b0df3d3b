import { describe } from 'node:test'

import { testRows } from './evaluate.fixture.ts'

describe('CEL arithmetic evaluates', () => {
  testRows([
    ['7 / 2', 3, 1],
    ['-7 / 2', -3],
    ['-7 % 3', -1],
    ['9223372036854775806 + 1', 9223372036854775807n],
    ['9223372036854775807 + 1', '!integer overflow'],
    ['-9223372036854775808 - 1', '!integer overflow'],
    ['-9223372036854775808 / -1', '!integer overflow'],
    ['4611686018427387904 * 2', '!integer overflow'],
    ['3037000500 * 3037000499', 9223372033963249500n],
    ['94906267 * 94906267', 9007199515875289n],
    ['1u - 2u', '!unsigned integer overflow'],
    ['5u % 0u', '!modulus by zero'],
    ['1.0 / 0.0 > 1e308', true],
    ['0 * -1', 0],
    ['d + d', '!no such overload: _+_', 3],
    ['"a" + "é"', 'aé', 1],
    ['b"a" + b"b" == b"ab"', true],
    ['[1] + [2]', [1, 2], 1],
    ['timestamp("2024-02-28T23:00:00Z") + duration("2h") == timestamp("2024-02-29T01:00:00Z")', true],
    ['timestamp("2024-01-01T00:00:00.5Z") - timestamp("2024-01-01T00:00:01Z")', '-0.5s'],
    ['timestamp("9999-12-31T23:59:59Z") + duration("1s")', '!timestamp overflow'],
  ])
})

describe('CEL comparisons evaluate', () => {
  testRows([
    ['1 < 2u && 2u < 2.5 && -1 < 0u', true],
    ['9223372036854775807 < 18446744073709551615u', true],
    ['"\\U0001F600" > "\\uFFFD"', true],
    ['b"a" < b"ab"', true],
    ['false < true', true],
    ['dyn(1) < "a"', '!no such overload'],
    ['dyn({}) < 1', '!no such overload: _<_'],
    ['d < 1', '!no such overload: _<_'],
    ['0.0/0.0 < 1.0', '!NaN values cannot be ordered'],
    ['duration("1s") >= duration("1000ms")', true],
  ])
})

describe('CEL equality evaluates', () => {
  testRows([
    ['[1, 2] == [1, 2]', true, 1],
    ['{"a": [1]} == {"a": [1]}', true],
    ['dyn([1]) == [1.0]', true],
    ['dyn(1) == "1"', false],
    ['{1: "a"} == {dyn(1u): "a"}', true],
    ['type(1) == int && type(type(1)) == type', true],
    ['optional.of(1) == optional.of(1) && optional.none() != optional.of(1)', true],
    ['dyn(quantity("1")) == 1', '!no such overload'],
    ['dyn(quantity("1")) != 1', true],
  ])
})

describe('CEL conversions evaluate', () => {
  testRows([
    ['int("-9223372036854775808")', -9223372036854775808n, 0],
    ['int("9223372036854775808")', "!type conversion error from 'string' to 'int'"],
    ['int(dyn("12"))', 12],
    ['int(1.9) + int(-1.9)', 0],
    ['uint(dyn(-1))', '!unsigned integer overflow'],
    ['double("0x1p-2")', 0.25],
    ['double("1e999")', "!type conversion error from 'string' to 'double'"],
    ['string(1e6) + string(123456.0) + string(0.00001)', '1e+061234561e-05'],
    ['string(b"\\xc3\\xa9")', 'é'],
    ['string(duration("1h1ms"))', '3600.001s'],
    ['string(timestamp("2024-01-01T00:00:00.120Z"))', '2024-01-01T00:00:00.12Z'],
    ['timestamp(253402300799 + 1)', '!timestamp overflow'],
    ['bool("TRUE") && !bool("f")', true],
    ['duration(dyn(5))', "!type conversion error from 'int' to 'google.protobuf.Duration'"],
    ['string(dyn({}))', '!no such overload: string(map)'],
    ['bytes("é").size()', 2],
  ])
})

describe('CEL functions for strings and collections evaluate', () => {
  testRows([
    ['"héllo".contains("él")', true, 1],
    ['"a😀b".size()', 3],
    ['size({"a": 1}) + size([1, 2]) + size(b"abc")', 6],
    ['dyn(1).size()', '!no such overload: size'],
    ['dyn(timestamp(0)).size()', '!no such overload'],
    ['"abc".matches("^a.c$")', true, 2],
    ['matches("abc", "b")', true, 1],
    ['dyn("abc").matches(dyn("("))', '!error parsing regexp: missing closing ): `(`'],
    ['2 in [1, 2] && !(3 in [1, 2])', true, 1],
    ['dyn(2.0) in [1, 2]', true],
    ['"a" in {"a": 1}', true],
    ['1 in d', '!no such overload'],
  ])
})

describe('CEL functions for timestamps and durations evaluate', () => {
  testRows([
    ['timestamp("2024-03-31T00:59:59Z").getHours("Europe/Paris")', 1],
    ['timestamp("2024-03-31T01:00:00Z").getHours("Europe/Paris")', 3],
    ['timestamp("2024-12-31T12:00:00Z").getDayOfYear()', 365],
    ['timestamp("2024-12-31T23:30:00Z").getFullYear("+01:00")', 2025],
    ['timestamp("2024-01-01T00:15:00Z").getMinutes("-00:30")', 45],
    ['timestamp("2024-01-01T00:00:00Z").getDayOfWeek()', 1],
    ['timestamp("2024-01-01T00:00:00.987654Z").getMilliseconds()', 987],
    ['timestamp(0).getHours("x:0")', '!strconv.Atoi: parsing "x": invalid syntax'],
    ['duration("-90m").getHours()', -1],
    ['duration("1.5s").getMilliseconds()', 1500],
  ])
})
