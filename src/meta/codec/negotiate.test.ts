import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { assertGrowth } from '#lib/growth.fixture.ts'

import { parseAccept } from './accept.ts'
import {
  contentTypeOf,
  CUSTOM_RESOURCE_MEDIA_TYPES,
  isRefusal,
  MEDIA_TYPES,
  negotiateAccept,
  negotiateContentType,
  type Negotiation,
  negotiateDiscovery,
  negotiatePatch,
  negotiateWatch,
  notAList,
  notAnObject,
  type Offer,
  prefersPretty,
  type Refusal,
} from './negotiate.ts'

const object: Offer = { endpoint: 'object', mediaTypes: MEDIA_TYPES, tables: true }
const list: Offer = { ...object, endpoint: 'list' }
const custom: Offer = { endpoint: 'custom', mediaTypes: CUSTOM_RESOURCE_MEDIA_TYPES, tables: true }
const review: Offer = { ...object, tables: false }

const json = 'application/json'
const yaml = 'application/yaml'
const protobuf = 'application/vnd.kubernetes.protobuf'
const table = 'as=Table;v=v1;g=meta.k8s.io'
const partial = 'as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const three = `${json}, ${yaml}, ${protobuf}`
const notAcceptable = `only the following media types are accepted: ${three}`
const notAcceptableInWatch = `only the following media types are accepted: ${json};stream=watch, ${protobuf};stream=watch`
const notRoutable = `406: Not Acceptable\n\nAvailable representations: ${three}`

function summary(outcome: Negotiation | Refusal): string {
  if (isRefusal(outcome)) return outcome.message
  const { mediaType, as, stream, pretty } = outcome
  return [mediaType, as?.kind, stream && 'stream', pretty && 'pretty'].filter(Boolean).join(' ')
}

describe('negotiateAccept()', () => {
  for (const [accept, offer, expected] of [
    ['', object, json],
    ['*/*', object, json],
    ['*', object, notRoutable],
    [json, object, json],
    [yaml, object, yaml],
    [protobuf, object, protobuf],
    [`${protobuf},${json}`, object, protobuf],
    [`${protobuf}, */*`, object, protobuf],
    [`${json};q=0.5,${protobuf}`, object, protobuf],
    ['text/html,application/xhtml+xml,*/*;q=0.8', object, json],
    [`${json};pretty=1`, object, `${json} pretty`],
    [`${json};charset=utf-8`, object, json],
    [`${json};stream=watch`, object, `${json} stream`],
    [`${json};stream=other`, object, notAcceptable],
    [`${json};sv=v1`, object, json],
    [`${json};sv=v2`, object, notAcceptable],
    [`${json};${table},${json}`, object, `${json} Table`],
    [`${json};as=Table;v=v2;g=meta.k8s.io,${json}`, object, json],
    [`${json};as=Table;v=v2;g=meta.k8s.io`, object, notAcceptable],
    [`${json};as=Nothing;v=v1;g=meta.k8s.io`, object, notAcceptable],
    [`${json};v=v1;g=meta.k8s.io`, object, notAcceptable],
    [`${yaml};${table}`, object, `${yaml} Table`],
    [`${protobuf};${table}`, object, notAcceptable],
    [`${protobuf};${partial}`, object, `${protobuf} PartialObjectMetadata`],
    [`${json};${table}`, review, notAcceptable],
    ['application/cbor', object, notRoutable],
    ['text/html', object, notRoutable],
    ['text/html', list, `${notRoutable}, ${json};stream=watch, ${protobuf};stream=watch`],
    ['application/*', object, notRoutable],
    [`application/*,${yaml}`, object, yaml],
    ['text/html', custom, notAcceptable],
    [protobuf, custom, notAcceptable],
    [`${protobuf},${json}`, custom, json],
    [`${protobuf};${partial}`, custom, `${protobuf} PartialObjectMetadata`],
    ['application/*', custom, json],
    [',;=/,//', custom, notAcceptable],
  ] as const) {
    it(`returns ${JSON.stringify(expected)} for header Accept ${JSON.stringify(accept)} at an endpoint of kind ${offer.endpoint}`, () => {
      assert.equal(summary(negotiateAccept(accept, offer)), expected)
    })
  }

  it('rejects unacceptable formats with the code and reason of a Status', () => {
    assert.deepEqual(negotiateAccept('text/html', custom), {
      code: 406,
      reason: 'NotAcceptable',
      message: notAcceptable,
    })
    assert.match(notAnObject('*core.PodList').message, /^you requested PartialObjectMetadata, .* is a list \(\*core/)
    assert.match(notAList('*core.Pod').message, /^you requested PartialObjectMetadataList, .* is not a list \(\*core/)
  })
})

describe('negotiateWatch()', () => {
  for (const [accept, offer, expected] of [
    ['', list, json],
    [protobuf, list, protobuf],
    [`${protobuf};stream=watch`, list, `${protobuf} stream`],
    [yaml, list, notAcceptableInWatch],
    [`${yaml},${json}`, list, notAcceptableInWatch],
    [`${yaml};stream=watch,${json}`, list, json],
    [protobuf, custom, notAcceptable],
    [yaml, custom, notAcceptableInWatch],
    ['text/html', list, `${notRoutable}, ${json};stream=watch, ${protobuf};stream=watch`],
  ] as const) {
    it(`returns ${JSON.stringify(expected)} for header Accept ${JSON.stringify(accept)} at an endpoint of kind ${offer.endpoint}`, () => {
      assert.equal(summary(negotiateWatch(accept, offer)), expected)
    })
  }

  it('adds a stream parameter to the Content-Type except for JSON', () => {
    const watch = (accept: string): string =>
      contentTypeOf(negotiateWatch(accept, list) as Negotiation, { watch: true })
    assert.equal(watch(''), json)
    assert.equal(watch(protobuf), `${protobuf};stream=watch`)
  })
})

describe('negotiateDiscovery()', () => {
  const aggregated = 'g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  for (const [accept, expected] of [
    ['', json],
    [`${json};${aggregated},${json}`, `${json} APIGroupDiscoveryList`],
    [`${json},${json};${aggregated}`, `${json} APIGroupDiscoveryList`],
    [`${protobuf};${aggregated}`, `${protobuf} APIGroupDiscoveryList`],
    [`${json};${aggregated.replace('v2', 'v2beta1')},${json}`, json],
    [`${json};${aggregated.replace('v2', 'v2beta1')}`, notAcceptable],
    [protobuf, protobuf],
  ] as const) {
    it(`returns ${JSON.stringify(expected)} for Accept ${JSON.stringify(accept)}`, () => {
      assert.equal(summary(negotiateDiscovery(accept)), expected)
    })
  }

  it('repeats the requested parameters in the Content-Type', () => {
    const outcome = negotiateDiscovery(`${json};v=v2;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io`)
    assert.equal(contentTypeOf(outcome as Negotiation), `${json};${aggregated}`)
    assert.equal(contentTypeOf(negotiateAccept(`${json};${table}`, object) as Negotiation), json)
  })
})

describe('negotiateContentType()', () => {
  const unknown = 'the body of the request was in an unknown format - accepted media types include:'
  for (const [header, expected] of [
    ['', json],
    [json, json],
    [`${json}; charset=utf-8`, json],
    [`${json};charset="utf-8"`, json],
    ['Application/JSON', json],
    [`${json};`, json],
    [`${json}; charset`, undefined],
    ['text/plain', undefined],
    ['application/cbor', undefined],
    [`${json},${yaml}`, undefined],
    [protobuf, protobuf],
  ] as const) {
    it(`maps Content-Type ${JSON.stringify(header)} to ${expected ?? 'no format'}`, () => {
      const outcome = negotiateContentType(header, MEDIA_TYPES)
      assert.equal(isRefusal(outcome) ? outcome.message : outcome, expected ?? `${unknown} ${three}`)
    })
  }

  it('rejects protobuf for custom resources', () => {
    const outcome = negotiateContentType(protobuf, CUSTOM_RESOURCE_MEDIA_TYPES)
    assert.deepEqual(outcome, { code: 415, reason: 'UnsupportedMediaType', message: `${unknown} ${json}, ${yaml}` })
  })
})

describe('negotiatePatch()', () => {
  const strategic = 'application/strategic-merge-patch+json'
  const merge = 'application/merge-patch+json'
  const customTypes = 'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml'
  for (const [header, endpoint, expected] of [
    [strategic, 'builtin', strategic],
    [`${merge}; charset=utf-8`, 'builtin', merge],
    ['application/apply-patch+yaml', 'builtin', 'application/apply-patch+yaml'],
    [json, 'builtin', '415: Unsupported Media Type'],
    ['', 'builtin', '415: Unsupported Media Type'],
    [`${merge};charset=utf-8`, 'custom', merge],
    [
      strategic,
      'custom',
      `the body of the request was in an unknown format - accepted media types include: ${customTypes}`,
    ],
  ] as const) {
    it(`returns ${expected} for Content-Type ${JSON.stringify(header)} and a ${endpoint} kind`, () => {
      const outcome = negotiatePatch(header, endpoint)
      assert.equal(isRefusal(outcome) ? outcome.message : outcome, expected)
    })
  }
})

describe('prefersPretty() for indented output', () => {
  for (const [pretty, userAgent, expected] of [
    ['', 'kubectl/v1.36.4', false],
    ['true', 'kubectl/v1.36.4', true],
    ['1', '', true],
    ['yes', 'curl/8', false],
    ['false', 'curl/8', false],
    ['', 'curl/8', true],
    ['', 'Wget/1', true],
    ['', 'Mozilla/5.0 (X11)', true],
    ['', 'Mozilla/4.0', false],
  ] as const) {
    it(`returns ${expected} for pretty=${pretty} and user agent "${userAgent}"`, () => {
      assert.equal(prefersPretty(pretty, userAgent), expected)
    })
  }
})

describe('parseAccept()', () => {
  it('parses hostile headers in linear time', () => {
    assertGrowth(200_000, (size) => `a${' '.repeat(size)}!`, parseAccept)
    // Each clause is better than all before it.
    const rising = (size: number): string => Array.from({ length: size }, (_, n) => `a/b;q=0.${n + 100_000}`).join(',')
    assertGrowth(4000, rising, parseAccept)
  })

  it('puts names before wildcards and otherwise keeps the order', () => {
    const types = (header: string): string[] => parseAccept(header).map(({ type, subtype }) => `${type}/${subtype}`)
    assert.deepEqual(types('*/*, a/*, a/b, c/d'), ['a/b', 'c/d', 'a/*', '*/*'])
    assert.deepEqual(types('a/b;q=0.1, c/d;q=0.9, e/f'), ['e/f', 'c/d', 'a/b'])
    assert.deepEqual(types('a, /, a/, a/b/c, *'), ['/', '*/*'].slice(1))
  })

  it('returns valid parameters', () => {
    const [clause] = parseAccept('a/b; x = 1 ;y=;z=a=b; q=0.5')
    assert.deepEqual([clause?.quality, [...(clause?.params ?? [])]], [0.5, [['x', '1']]])
  })
})
