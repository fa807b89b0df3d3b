import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { pod } from '#kits/meta/example-schema.ts'
import { assertGrowth } from '#lib/growth.fixture.ts'

import { strategicMerge } from './strategic-merge.ts'

const name: fc.Arbitrary<string> = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor')
const labels = fc.dictionary(name, fc.constantFrom('1', '2'), { maxKeys: 3 })
const items = fc.uniqueArray(fc.record({ name, image: fc.constantFrom('1', '2') }, { requiredKeys: ['name'] }), {
  selector: (item) => item.name,
  maxLength: 4,
})
const spec = fc.record(
  { labels, containers: items, finalizers: fc.uniqueArray(name), host: name },
  { requiredKeys: [] },
)
const patchLabels = fc.dictionary(name, fc.constantFrom('1', '3', null), { maxKeys: 3 })
const patchSpec = fc.record(
  { labels: patchLabels, containers: items, finalizers: fc.uniqueArray(name), host: fc.option(name) },
  { requiredKeys: [] },
)

interface Spec {
  labels?: Record<string, string | null>
  containers?: { name: string; image?: string }[]
  finalizers?: string[]
  host?: string | null
}

/** A naive model of strategic merge: maps and keyed lists by key, sets by union, without order. */
function naiveMerge(original: Spec, patch: Spec): unknown {
  const entries = (map: Spec['labels']) => Object.entries(map ?? {})
  const byName = new Map(original.containers?.map((item) => [item.name, item]))
  for (const item of patch.containers ?? []) byName.set(item.name, { ...byName.get(item.name), ...item })
  const isThere = (key: keyof Spec): boolean => original[key] !== undefined || patch[key] !== undefined
  return {
    ...(isThere('labels') && {
      labels: [...new Map([...entries(original.labels), ...entries(patch.labels)])].filter(
        ([, value]) => value !== null,
      ),
    }),
    ...(isThere('containers') && { containers: [...byName.values()] }),
    ...(isThere('finalizers') && {
      finalizers: [...new Set([...(original.finalizers ?? []), ...(patch.finalizers ?? [])])],
    }),
    ...(isThere('host') && patch.host !== null && { host: patch.host ?? original.host }),
  }
}

/** With sorted lists and maps. */
function orderless(value: { labels?: object; containers?: unknown[]; finalizers?: unknown[] }): unknown {
  const sorted = (each: readonly unknown[] | undefined): string[] | undefined =>
    each?.map((item) => JSON.stringify(item, ['name', 'image', '0', '1'])).sort()
  const pairs = Array.isArray(value.labels) ? value.labels : value.labels && Object.entries(value.labels)
  return {
    ...value,
    labels: pairs?.map(String).sort(),
    containers: sorted(value.containers),
    finalizers: sorted(value.finalizers),
  }
}

describe('strategic merge of any values', () => {
  it('equals a simple model', () => {
    fc.assert(
      fc.property(spec, patchSpec, (original, patch) => {
        const merged = strategicMerge(pod, original, patch)
        const expected = naiveMerge(original, patch) as Parameters<typeof orderless>[0]
        assert.deepEqual(orderless(merged), orderless({ labels: undefined, ...expected } as typeof expected))
      }),
    )
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(spec, patchSpec, (original, patch) => {
        const once = strategicMerge(pod, original, patch)
        assert.deepEqual(orderless(strategicMerge(pod, once, patch)), orderless(once))
      }),
    )
  })

  it('keeps every element if the patch only orders them', () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 1 }), fc.uniqueArray(name, { minLength: 1 }), (values, order) => {
        const merged = strategicMerge(pod, { finalizers: values }, { '$setElementOrder/finalizers': order })
        const result = merged['finalizers'] as string[]
        assert.deepEqual(result.toSorted(), values.toSorted())
        const inOrder = (list: readonly string[], by: readonly string[]) =>
          list.toSorted((a, b) => by.indexOf(a) - by.indexOf(b))
        const named = result.filter((each) => order.includes(each))
        assert.deepEqual(named, inOrder(named, order))
        const others = result.filter((each) => !order.includes(each))
        assert.deepEqual(others, inOrder(others, values))
      }),
    )
  })

  it('keeps one of several duplicates, in the order of the patch', () => {
    const values = fc.array(fc.nat(4).map(String))
    fc.assert(
      fc.property(values, values, (finalizers, added) => {
        const merged = strategicMerge(pod, { finalizers }, { finalizers: added }) as Spec
        const [inPatch, others] = [new Set(added), new Set(finalizers).difference(new Set(added))]
        assert.deepEqual(
          merged.finalizers?.filter((value) => inPatch.has(value)),
          [...inPatch],
        )
        assert.deepEqual(
          merged.finalizers?.filter((value) => !inPatch.has(value)),
          [...others],
        )
      }),
    )
  })

  it('merges sets in linear time', () => {
    const values = (size: number, different: number): string[] =>
      Array.from({ length: size }, (_, n) => `example.com/${n % different}`)
    for (const share of [1, 2, 10]) {
      assertGrowth(
        8000,
        (size) => values(size, size / share),
        (finalizers) => strategicMerge(pod, { finalizers: ['a'] }, { finalizers }),
      )
    }
  })
})
