import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type SampleWrite, sampleWrite, type World } from '#kits/admission/sample-write.ts'

import type { Form, Forms } from './forms.ts'
import { createCriteria, isAdmissionConfiguration, matchRequest, type MatchTerms } from './matcher.ts'
import { matchesRule, type ResourceRule, type RuleSubject } from './rule.ts'

const POD: RuleSubject = {
  operation: 'CREATE',
  group: '',
  version: 'v1',
  resource: 'pods',
  subresource: '',
  namespace: 'ns',
  name: 'p',
}
const EVERYTHING: ResourceRule = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }

describe('matchesRule() for the creation of pod p', () => {
  const table: readonly (readonly [change: ResourceRule, subject: Partial<RuleSubject>, isMatch: boolean])[] = [
    [{}, {}, true],
    [{ operations: ['UPDATE', 'DELETE'] }, {}, false],
    [{ operations: ['CREATE'] }, {}, true],
    [{ apiGroups: ['apps'] }, {}, false],
    [{ apiGroups: [''] }, {}, true],
    [{ apiVersions: ['v2'] }, {}, false],
    [{ resources: ['pods'] }, {}, true],
    [{ resources: ['pods'] }, { subresource: 'log' }, false],
    [{ resources: ['*'] }, {}, true],
    [{ resources: ['*'] }, { subresource: 'log' }, false],
    [{ resources: ['pods/*'] }, {}, true],
    [{ resources: ['pods/*'] }, { subresource: 'log' }, true],
    [{ resources: ['pods/*'] }, { resource: 'nodes' }, false],
    [{ resources: ['*/scale'] }, { subresource: 'scale' }, true],
    [{ resources: ['*/scale'] }, {}, false],
    [{ resources: ['pods/log'] }, { subresource: 'exec' }, false],
    [{ resources: [] }, {}, false],
    [{ scope: '*' }, {}, true],
    [{ scope: 'Namespaced' }, {}, true],
    [{ scope: 'Cluster' }, {}, false],
    [{ scope: 'Cluster' }, { resource: 'nodes', namespace: '' }, true],
    [{ scope: 'Namespaced' }, { resource: 'nodes', namespace: '' }, false],
    [{ scope: 'Cluster' }, { resource: 'namespaces', namespace: 'ns' }, true],
    [{ scope: 'Namespaced' }, { resource: 'namespaces', namespace: 'ns' }, false],
    [{ resourceNames: [] }, {}, true],
    [{ resourceNames: ['p', 'q'] }, {}, true],
    [{ resourceNames: ['q'] }, {}, false],
  ]
  for (const [change, subject, isMatch] of table) {
    it(`${isMatch ? 'matches' : 'does not match'} rule ${JSON.stringify(change)} with request ${JSON.stringify(subject)}`, () => {
      assert.equal(matchesRule({ ...EVERYTHING, ...change }, { ...POD, ...subject }), isMatch)
    })
  }

  it('matches no request if operations, groups and resources are absent', () =>
    assert.equal(matchesRule({}, POD), false))
})

describe('matchRequest() for webhooks and policies', () => {
  const other: Form = {
    resource: { group: 'apps', version: 'v1beta1', resource: 'deployments' },
    kind: { group: 'apps', version: 'v1beta1', kind: 'Deployment' },
  }
  const forms = { equivalents: () => [other] } as unknown as Forms
  const match = async (terms: Partial<MatchTerms>, write: SampleWrite): Promise<string | undefined> => {
    const criteria = createCriteria({ rules: [EVERYTHING], namespaceSelector: {}, objectSelector: {}, ...terms })
    return (await matchRequest(criteria, sampleWrite(write).attributes, forms))?.resource.version
  }
  const deployment: SampleWrite = { resource: 'deployments.apps', object: { metadata: { name: 'd' } } }
  const beta: ResourceRule = { ...EVERYTHING, apiVersions: ['v1beta1'] }
  const web = { matchLabels: { app: 'web' } }

  it('returns the request in its version if a rule matches that, or else in an equivalent version', async () => {
    assert.equal(await match({}, deployment), 'v1')
    assert.equal(await match({ rules: [beta, EVERYTHING], matchPolicy: 'Equivalent' }, deployment), 'v1')
    assert.equal(await match({ rules: [beta], matchPolicy: 'Equivalent' }, deployment), 'v1beta1')
    assert.equal(await match({ rules: [beta], matchPolicy: 'Exact' }, deployment), undefined)
    assert.equal(await match({ rules: [] }, deployment), undefined)
    assert.equal(await match({ rules: undefined }, deployment), 'v1')
  })

  it('excludes a request if an exclude rule matches any equivalent version', async () => {
    assert.equal(await match({ excludeRules: [EVERYTHING] }, deployment), undefined)
    assert.equal(await match({ excludeRules: [beta], matchPolicy: 'Exact' }, deployment), 'v1')
    assert.equal(await match({ excludeRules: [beta], matchPolicy: 'Equivalent' }, deployment), undefined)
  })

  it('returns undefined instead of a promise if no rule matches', () => {
    const criteria = createCriteria({ rules: [], namespaceSelector: {}, objectSelector: {} })
    assert.equal(matchRequest(criteria, sampleWrite(deployment).attributes, forms), undefined)
  })

  it('matches objectSelector with the labels of the new or the old object', async () => {
    const labelled = { metadata: { name: 'd', labels: { app: 'web' } } }
    const terms = { objectSelector: web }
    assert.equal(await match(terms, deployment), undefined)
    assert.equal(await match(terms, { ...deployment, object: labelled }), 'v1')
    assert.equal(await match(terms, { ...deployment, oldObject: labelled }), 'v1')
    assert.equal(await match(terms, { resource: 'deployments.apps', oldObject: labelled }), 'v1')
    assert.equal(await match({ objectSelector: undefined }, deployment), undefined)
  })

  it('matches namespaceSelector with the labels of the namespace, or of a Namespace itself', async () => {
    const terms = { namespaceSelector: web }
    const namespace = (labels: object): object => ({ metadata: { name: 'ns', labels } })
    const world = (labels: object): World => ({ namespaces: [{ metadata: { name: 'ns', labels } }] })
    assert.equal(await match(terms, { ...deployment, world: world({ app: 'web' }) }), 'v1')
    assert.equal(await match(terms, { ...deployment, world: world({}) }), undefined)
    await assert.rejects(match(terms, deployment), { message: 'namespaces "ns" not found' })
    assert.equal(await match(terms, { resource: 'nodes', object: { metadata: { name: 'n' } } }), 'v1')
    assert.equal(await match(terms, { resource: 'namespaces', object: namespace({ app: 'web' }) }), 'v1')
    assert.equal(await match(terms, { resource: 'namespaces', object: namespace({}) }), undefined)
    const going = { resource: 'namespaces', oldObject: namespace({}) }
    assert.equal(await match(terms, { ...going, world: world({ app: 'web' }) }), 'v1')
  })

  it('responds with 500 to an invalid selector', async () => {
    const objectSelector = { matchExpressions: [{ key: 'k', operator: 'Foo' as 'In' }] }
    await assert.rejects(match({ objectSelector }, deployment), { message: /^Internal error occurred: "Foo" is not/ })
  })

  it('exempts webhook configurations and admission policies', () => {
    const group = 'admissionregistration.k8s.io'
    assert.ok(isAdmissionConfiguration({ group, kind: 'ValidatingWebhookConfiguration' }))
    assert.ok(isAdmissionConfiguration({ group, kind: 'MutatingAdmissionPolicyBinding' }))
    assert.ok(!isAdmissionConfiguration({ group: 'example.com', kind: 'ValidatingWebhookConfiguration' }))
  })
})
