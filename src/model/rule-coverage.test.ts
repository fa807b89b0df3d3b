import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import type { PolicyRule } from '#apis/rbac/v1.ts'
import { assertGrowth } from '#lib/growth.fixture.ts'

import { uncoveredRights } from './rule-coverage.ts'

const list = (...values: string[]): fc.Arbitrary<string[]> =>
  fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 })
const rule: fc.Arbitrary<PolicyRule> = fc.record(
  {
    verbs: list('get', 'list', '*'),
    apiGroups: list('', 'apps', '*'),
    resources: list('pods', 'pods/log', '*/log', '*'),
    resourceNames: list('a', 'b'),
    nonResourceURLs: list('/a', '/a/*', '/a/b', '*'),
  },
  { requiredKeys: ['verbs'] },
)

/** Every right separately, as upstream expands rules. */
function singleRights({ verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule) {
  const names = resourceNames.length === 0 ? [undefined] : resourceNames
  const product = apiGroups.flatMap((group) =>
    resources.flatMap((resource) => verbs.flatMap((verb) => names.map((name) => ({ group, resource, verb, name })))),
  )
  return [
    ...product.map(({ group, resource, verb, name }) => ({
      verbs: [verb],
      apiGroups: [group],
      resources: [resource],
      ...(name === undefined ? {} : { resourceNames: [name] }),
    })),
    ...nonResourceURLs.flatMap((path) => verbs.map((verb) => ({ verbs: [verb], nonResourceURLs: [path] }))),
  ]
}

function includes(all: readonly string[] = [], [wanted]: readonly string[] = []): boolean {
  return all.includes('*') || wanted === undefined || all.includes(wanted)
}

function coversResource(owned: PolicyRule, { resources = [], resourceNames = [] }: PolicyRule): boolean {
  const [resource = ''] = resources
  const slash = resource.indexOf('/')
  const isSubresource = slash >= 0 && owned.resources?.includes(`*${resource.slice(slash)}`) === true
  const { resourceNames: names = [] } = owned
  const isNamed = names.length === 0 || resourceNames.some((name) => names.includes(name))
  return (includes(owned.resources, resources) || isSubresource) && isNamed
}

function coversPath({ nonResourceURLs = [] }: PolicyRule, path: string): boolean {
  return nonResourceURLs.some((url) => url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1))))
}

function covers(owned: PolicyRule, right: PolicyRule): boolean {
  if (!includes(owned.verbs, right.verbs)) return false
  const [path] = right.nonResourceURLs ?? []
  if (path !== undefined) return coversPath(owned, path)
  return includes(owned.apiGroups, right.apiGroups) && coversResource(owned, right)
}

describe('uncoveredRights() of RBAC rules', () => {
  it('returns the same as a comparison of every single permission with every rule', () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 4 }), fc.array(rule, { maxLength: 3 }), (owned, wanted) => {
        const expected = wanted.flatMap((one) =>
          singleRights(one).filter((right) => !owned.some((each) => covers(each, right))),
        )
        assert.deepEqual(uncoveredRights(owned, wanted), expected)
      }),
      { numRuns: 500 },
    )
  })

  const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}${n}`)
  const wide = (count: number): PolicyRule => ({
    verbs: names('v', count),
    apiGroups: names('g', count),
    resources: names('r', count),
    resourceNames: names('n', count),
  })

  it('does not expand a rule of 4,000 words into its 1,000,000,000,000 permissions', () => {
    assert.equal(uncoveredRights([], [wide(1000)]).length, 1000)
    assert.deepEqual(uncoveredRights([{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], [wide(1000)]), [])
    const single = names('v', 1000).map((verb) => ({ verbs: [verb], apiGroups: ['*'], resources: ['*'] }))
    assert.deepEqual(uncoveredRights(single, [wide(1000)]), [])
    assert.equal(uncoveredRights(single.slice(1), [wide(1000)])[0]?.verbs[0], 'v0')
  })

  it('treats a rule with too many combinations as not covered', () => {
    const owned = [0, 1, 2, 3].flatMap((at) =>
      names('', 100).map((n) => ({
        verbs: at === 0 ? [`v${n}`] : names('v', 100),
        apiGroups: at === 1 ? [`g${n}`] : names('g', 100),
        resources: at === 2 ? [`r${n}`] : names('r', 100),
        resourceNames: at === 3 ? [`n${n}`] : names('n', 100),
      })),
    )
    assert.notEqual(uncoveredRights(owned, [wide(100)]).length, 0)
  })

  it('takes time in proportion to the words of a rule', () => {
    const owned = [{ verbs: ['get'], apiGroups: ['g1'], resources: ['r1'] }]
    assertGrowth(4000, wide, (one) => uncoveredRights(owned, [one]))
  })
})
