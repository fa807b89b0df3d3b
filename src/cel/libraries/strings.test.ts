import { describe } from 'node:test'

import { testRows } from './evaluate.fixture.ts'

describe('CEL functions for strings evaluate', () => {
  testRows([
    ['"a😀b".charAt(1) + "a😀b".charAt(2)', '😀b'],
    ['"abc".charAt(3)', ''],
    ['"abc".charAt(4)', '!index out of range: 4'],
    ['"a😀ba".indexOf("b") + "a😀ba".lastIndexOf("a")', 5],
    ['"aXbX".indexOf("X", 2)', 3],
    ['"aXbX".lastIndexOf("X", 2)', 1],
    ['"abc".indexOf("", 2)', 2],
    ['"abc".indexOf("z", 9)', -1],
    ['"ÀBc".lowerAscii() + "àbc".upperAscii()', 'ÀbcàBC'],
    ['"banana".replace("a", "oo", 2)', 'boonoona'],
    ['"ab".replace("", "-")', '-a-b-'],
    ['"a😀b".split("")', ['a', '😀', 'b']],
    ['"a,b,c".split(",", 2)', ['a', 'b,c']],
    ['"a😀bc".substring(1, 3)', '😀b'],
    ['"abc".substring(2, 1)', '!invalid substring range. start: 2, end: 1'],
    ['" \\u0085\\u3000x\\uFEFF ".trim()', 'x\uFEFF'],
    ['["a", "b"].join("-")', 'a-b', 1],
    ['strings.quote("a\\t\\"b\\\\")', '"a\\t\\"b\\\\"'],
  ])
})

describe('CEL function string.format evaluates', () => {
  testRows([
    ['"%d%%".format([50])', '50%', 1],
    ['"%f|%.1f|%.3f".format([1234567.5, 0.25, -0.0005])', '1,234,567.500000|0.2|-0.001'],
    ['"%e|%e".format([0.00012345678, -1e100])', '1.234568×10⁻⁰⁴|-1.000000×10¹⁰⁰'],
    ['"%f %e".format([1.0/0.0, -1.0/0.0])', '∞     -∞'],
    ['"%x %X %x".format([-255, 3735928559u, "hi"])', '-ff DEADBEEF 6869'],
    ['"%o %b %b".format([8, -5, true])', '10 -101 1'],
    ['"%s".format([{"k": [1.5, "x", null, b"y"]}])', '{"k":[1.500000, "x", null, b"y"]}'],
    ['"%s %s".format([type(1), duration("1m")])', 'int 60s'],
    [
      'dyn("%d").format([d])',
      '!error during formatting: decimal clause can only be used on integers, was given null_type',
    ],
    ['dyn("%").format([1])', '!unexpected end of string'],
    ['dyn("%s%s").format([1])', '!index 1 out of range'],
    [
      'dyn("%.").format([1])',
      '!could not parse formatting clause: error while parsing precision: could not find end of precision specifier',
    ],
    ['dyn("%é").format([1])', '!could not parse formatting clause: unrecognized formatting clause "Ã"'],
  ])
})

describe('CEL functions for regular expressions evaluate', () => {
  testRows([
    ['"abc 123 de 45".find("[0-9]+")', '123', 4],
    ['"abc".find("x")', ''],
    ['"a1b22".findAll("[0-9]+")', ['1', '22']],
    ['"a1b22".findAll("[0-9]", 2)', ['1', '2']],
    ['"abc".findAll("x*")', ['', '', '', '']],
    ['"abc".find("[" + "1")', '!Illegal regex: error parsing regexp: missing closing ]: `[1`'],
  ])
})
