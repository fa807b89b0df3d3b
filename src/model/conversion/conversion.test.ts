/** Tests conversion between versions: which versions exist, and that round trips lose nothing. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { groups } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import { arbitraryOf } from '#kits/meta/arbitrary-object.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { apiVersionOf, type GroupVersionKind, kindKey, parseApiVersion } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'

import { ConversionError, convert } from './conversion.ts'
import { rules } from './rules.ts'
import { compareShapes } from './shape.ts'

interface Pair {
  readonly spoke: GroupVersionKind
  readonly hub: GroupVersionKind
}

/** Every served version other than the storage version. */
const pairs: readonly Pair[] = groups
  .flatMap(({ versions }) => versions)
  .flatMap(({ kinds }) => kinds)
  .filter((kind) => kind.storage !== undefined && apiVersionOf(kind.storage) !== apiVersionOf(kind))
  .map(({ group, version, kind, storage }) => ({ spoke: { group, version, kind }, hub: { ...storage!, kind } }))

function gvk(apiVersion: string, kind: string): GroupVersionKind {
  return { ...parseApiVersion(apiVersion), kind }
}

function canonical(to: GroupVersionKind, fields: object): KubeObject {
  const whole = { kind: to.kind, apiVersion: apiVersionOf(to), ...fields }
  return decodeValue(schemaFor(to)!, deepCopy(whole), 'Strict', { offences: [] }) as KubeObject
}

describe('API versions of a kind', () => {
  it('are all reachable from the storage version', () => {
    assert.ok(pairs.length >= 20, `${pairs.length} pairs`)
    for (const { spoke, hub } of pairs) {
      const stored = canonical(hub, { metadata: { name: 'a', namespace: 'b' } })
      const served = convert(stored, spoke)
      assert.equal(served.apiVersion, apiVersionOf(spoke))
      assert.equal(served.kind, spoke.kind)
      assert.equal(convert(served, hub).apiVersion, apiVersionOf(hub))
    }
  })

  it('differ only as a conversion rule declares, and the rule lists every difference', () => {
    const ruleOf = new Map(rules.map((rule) => [kindKey(rule.spoke), rule]))
    for (const { spoke, hub } of pairs) {
      const { differences } = compareShapes(schemaFor(spoke)!, schemaFor(hub)!)
      assert.deepEqual(ruleOf.get(kindKey(spoke))?.differences ?? [], differences, kindKey(spoke))
    }
  })

  it('have a conversion rule only if they are served and convert to the storage version', () => {
    const served = new Map(pairs.map(({ spoke, hub }) => [kindKey(spoke), kindKey(hub)]))
    for (const { spoke, hub } of rules) assert.equal(served.get(kindKey(spoke)), kindKey(hub), kindKey(spoke))
  })

  it('with the same schema lose nothing in either direction', () => {
    for (const { spoke, hub } of pairs.filter(({ spoke }) => !rules.some((rule) => isSame(rule.spoke, spoke)))) {
      for (const [from, to] of [
        [spoke, hub],
        [hub, spoke],
      ] as const) {
        const property = fc.property(arbitraryOf(from), (object) => {
          const before = deepCopy(object)
          const there = convert(object, to)
          assert.deepEqual(there, canonical(to, { ...there }))
          assert.deepEqual(convert(there, from), before)
          assert.deepEqual(object, before)
        })
        fc.assert(property, { numRuns: 20 })
      }
    }
  })

  it('convert to each other through the storage version', () => {
    const claim = canonical(gvk('resource.k8s.io/v1beta2', 'ResourceClaim'), {
      metadata: { name: 'a' },
      spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'gpu' } }] } },
    })
    const converted = convert(claim, gvk('resource.k8s.io/v1beta1', 'ResourceClaim')) as unknown as JsonObject
    assert.deepEqual(converted['spec'], { devices: { requests: [{ name: 'r', deviceClassName: 'gpu' }] } })
  })

  it('convert even if they are no longer served, if they have the stored schema', () => {
    const role = canonical(gvk('rbac.authorization.k8s.io/v1beta1', 'Role'), { metadata: { name: 'a' }, rules: [] })
    assert.equal(convert(role, gvk('rbac.authorization.k8s.io/v1', 'Role')).apiVersion, 'rbac.authorization.k8s.io/v1')
  })

  it('convert directly if the kind is never stored', () => {
    const eviction = canonical(gvk('policy/v1beta1', 'Eviction'), {
      metadata: { name: 'a', namespace: 'b' },
      deleteOptions: { gracePeriodSeconds: 3 },
    })
    assert.deepEqual(convert(eviction, gvk('policy/v1', 'Eviction')), { ...eviction, apiVersion: 'policy/v1' })
  })
})

describe('convert() to another API version', () => {
  it('returns the same object for the same version', () => {
    const pod = canonical(gvk('v1', 'Pod'), { metadata: { name: 'a' } })
    assert.equal(convert(pod, gvk('v1', 'Pod')), pod)
  })

  it('converts the items of a list, which have no kind', () => {
    const list = canonical(gvk('v1', 'EventList'), {
      metadata: { resourceVersion: '7' },
      items: [{ metadata: { name: 'a' }, message: 'hello' }],
    })
    const converted = convert(list, gvk('events.k8s.io/v1', 'EventList')) as unknown as JsonObject
    assert.equal(converted['apiVersion'], 'events.k8s.io/v1')
    assert.deepEqual(converted['metadata'], { resourceVersion: '7' })
    const [item] = converted['items'] as JsonObject[]
    assert.equal(item?.['note'], 'hello')
    assert.equal(item?.['apiVersion'], undefined)
  })

  it('copies the parts that a conversion rule changes', () => {
    const event = canonical(gvk('v1', 'Event'), {
      metadata: { name: 'a' },
      series: { count: 0 },
      source: { host: 'h' },
    })
    const before = deepCopy(event)
    convert(event, gvk('events.k8s.io/v1', 'Event'))
    assert.deepEqual(event, before)
  })

  const scheme = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
  const refusals = [
    [
      'v1',
      'Pod',
      'apps/v1',
      'Deployment',
      'unsuitable',
      `v1.Pod is not suitable for converting to "apps/v1" ${scheme}`,
    ],
    ['v1', 'Pod', 'v1', 'Node', 'unsuitable', `v1.Pod is not suitable for converting to "v1" ${scheme}`],
    ['v1', 'Pod', 'v2', 'Pod', 'unknown-kind', `no kind "Pod" is registered for version "v2" ${scheme}`],
    ['a/v1', 'A', 'v1', 'Pod', 'unknown-kind', `no kind "A" is registered for version "a/v1" ${scheme}`],
    [
      'flowcontrol.apiserver.k8s.io/v1beta1',
      'PriorityLevelConfiguration',
      'flowcontrol.apiserver.k8s.io/v1',
      'PriorityLevelConfiguration',
      'unknown-conversion',
      'converting (v1beta1.PriorityLevelConfiguration) to (v1.PriorityLevelConfiguration): unknown conversion',
    ],
  ] as const
  for (const [fromVersion, fromKind, toVersion, toKind, code, message] of refusals) {
    it(`rejects ${fromVersion} ${fromKind} as ${toVersion} ${toKind}`, () => {
      const object = { kind: fromKind, apiVersion: fromVersion, metadata: {} }
      assert.throws(
        () => convert(object, gvk(toVersion, toKind)),
        (error) => {
          assert.ok(error instanceof ConversionError)
          assert.deepEqual([error.code, error.message], [code, message])
          return true
        },
      )
    })
  }
})

function isSame(a: GroupVersionKind, b: GroupVersionKind): boolean {
  return kindKey(a) === kindKey(b)
}
