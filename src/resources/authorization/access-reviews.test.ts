import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { SubjectAccessReview, SubjectAccessReviewSpec } from '#apis/authorization/v1.ts'
import type { RuleContext, WriteContext } from '#apiserver/registry/resource.ts'
import { type Access, type Authorizer, NO_RULES, type Verdict } from '#auth/authorizer.ts'
import type { User } from '#auth/user.ts'
import { StatusError } from '#meta/status.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'

import { defineLocalSubjectAccessReview } from './localsubjectaccessreview.ts'
import { defineSelfSubjectAccessReview } from './selfsubjectaccessreview.ts'
import { defineSelfSubjectRulesReview } from './selfsubjectrulesreview.ts'
import { defineSubjectAccessReview } from './subjectaccessreview.ts'

const me: User = { name: 'me', uid: 'u', groups: ['g'], extra: {} }
const context = { user: me, namespace: 'n1' } as WriteContext & { namespace: string }
const status = { allowed: false }

/** Records its calls. */
function createAuthorizer(verdict: Partial<Verdict> = {}) {
  const calls: [User, Access][] = []
  const authorizer: Authorizer = {
    authorize: (user, access) => (
      calls.push([user, access]),
      { allowed: true, denied: false, reason: 'because', ...verdict }
    ),
    rulesFor: () => NO_RULES,
  }
  return { authorizer, calls }
}

async function review(spec: SubjectAccessReviewSpec, verdict: Partial<Verdict> = {}) {
  const { authorizer, calls } = createAuthorizer(verdict)
  const answer = (await defineSubjectAccessReview(authorizer).answer(
    { metadata: {}, spec, status },
    context,
  )) as SubjectAccessReview
  return { answer, calls, status: answer.status }
}

describe('authorization reviews', () => {
  it('check access of the given user with the given attributes', async () => {
    const resourceAttributes = {
      namespace: 'n1',
      verb: 'get',
      group: 'apps',
      resource: 'deployments',
      subresource: 'scale',
      name: 'x',
    }
    const { calls, answer } = await review({
      resourceAttributes,
      user: 'jane',
      groups: ['dev'],
      uid: '7',
      extra: { a: ['b'] },
    })
    const [[user, access] = []] = calls
    assert.deepEqual(user, { name: 'jane', groups: ['dev'], uid: '7', extra: { a: ['b'] } })
    assert.deepEqual(
      { ...access },
      {
        ...resourceAttributes,
        version: '*',
        isResource: true,
        path: '',
        apiPrefix: '',
        rest: [],
        fieldSelector: '',
        labelSelector: '',
      },
    )
    assert.deepEqual(answer.status, { allowed: true, reason: 'because' })
    assert.equal(answer.spec.user, 'jane')
  })

  it('check access to non-resource paths', async () => {
    const { calls } = await review({ nonResourceAttributes: { verb: 'get', path: '/metrics' }, user: 'jane' })
    assert.deepEqual([calls[0]?.[1].isResource, calls[0]?.[1].path, calls[0]?.[1].verb], [false, '/metrics', 'get'])
  })

  it('report denials and evaluation errors', async () => {
    const { status: found } = await review(
      { resourceAttributes: {}, user: 'x' },
      { allowed: false, denied: true, reason: '', error: 'away' },
    )
    assert.deepEqual(found, { allowed: false, denied: true, evaluationError: 'away' })
  })

  it('report selectors that cannot be parsed', async () => {
    const table: [object, string, string, string | undefined][] = [
      [{ fieldSelector: { rawSelector: 'spec.nodeName=a' } }, 'spec.nodeName=a', '', undefined],
      [{ labelSelector: { rawSelector: 'a in (b, c)' } }, '', 'a in (b,c)', undefined],
      [{ fieldSelector: { requirements: [{ key: 'k', operator: 'In', values: ['v,w'] }] } }, 'k=v\\,w', '', undefined],
      [
        { labelSelector: { rawSelector: `${'a,'.repeat(40_000)}a` } },
        '',
        '',
        'spec.resourceAttributes.labelSelector ignored due to parse error',
      ],
      [
        { fieldSelector: { rawSelector: '&&' } },
        '',
        '',
        'spec.resourceAttributes.fieldSelector ignored due to parse error',
      ],
      [
        {
          fieldSelector: {
            requirements: [
              { key: 'k', operator: 'NotIn', values: ['v'] },
              { key: 'l', operator: 'Exists' },
            ],
          },
        },
        'k!=v',
        '',
        'spec.resourceAttributes.fieldSelector partially ignored due to parse error',
      ],
      [
        {
          labelSelector: {
            requirements: [
              { key: 'k', operator: 'Exists' },
              { key: 'l', operator: 'Near', values: ['x'] },
            ],
          },
        },
        '',
        'k',
        'spec.resourceAttributes.labelSelector partially ignored due to parse error',
      ],
    ]
    for (const [selectors, fields, labels, error] of table) {
      const { calls, status: found } = await review({
        resourceAttributes: { verb: 'list', resource: 'pods', ...selectors },
        user: 'x',
      })
      assert.deepEqual([calls[0]?.[1].fieldSelector, calls[0]?.[1].labelSelector], [fields, labels])
      assert.equal(found.evaluationError, error)
    }
  })

  it('are rejected if they are invalid', () => {
    const kind = defineSubjectAccessReview(createAuthorizer().authorizer)
    const texts = (spec: SubjectAccessReviewSpec, metadata = {}) =>
      kind.validate!({ metadata, spec, status }, {} as RuleContext).map(fieldErrorText)
    const resourceAttributes = { verb: 'get', resource: 'pods' }
    assert.deepEqual(texts({ resourceAttributes, user: 'x' }), [])
    assert.deepEqual(texts({}), [
      'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    ])
    assert.deepEqual(texts({ resourceAttributes, nonResourceAttributes: { path: '/x' }, groups: ['g'] }), [
      'spec.nonResourceAttributes: Invalid value: {"path":"/x"}: cannot be specified in combination with resourceAttributes',
    ])
    assert.match(
      texts({ resourceAttributes, user: 'x' }, { name: 'n' })[0] ?? '',
      /^metadata: Invalid value: .*: must be empty$/,
    )
    const selectors = (fieldSelector: object) =>
      texts({ resourceAttributes: { ...resourceAttributes, fieldSelector }, user: 'x' })
    assert.deepEqual(selectors({}), [
      'spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required',
    ])
    assert.deepEqual(selectors({ rawSelector: 'a', requirements: [{ key: '', operator: 'In' }] }), [
      'spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a": may not specified at the same time as requirements',
      'spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified',
      "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ])
  })

  it('of type LocalSubjectAccessReview are limited to their namespace', () => {
    const kind = defineLocalSubjectAccessReview(createAuthorizer().authorizer)
    const texts = (spec: SubjectAccessReviewSpec) =>
      kind.validate!({ metadata: { namespace: 'n1' }, spec, status }, {} as RuleContext).map(fieldErrorText)
    assert.deepEqual(texts({ resourceAttributes: { namespace: 'n1' }, user: 'x' }), [])
    assert.deepEqual(texts({ resourceAttributes: { namespace: 'n2' }, user: 'x' }), [
      'spec.resourceAttributes.namespace: Invalid value: "n2": must match metadata.namespace',
    ])
    assert.deepEqual(texts({ nonResourceAttributes: {}, user: 'x' }), [
      'spec.nonResourceAttributes: Invalid value: {}: disallowed on this kind of request',
    ])
  })

  it('of type SelfSubjectAccessReview check access of the requesting user', async () => {
    const { authorizer, calls } = createAuthorizer()
    const self = defineSelfSubjectAccessReview(authorizer)
    await self.answer({ metadata: {}, spec: { resourceAttributes: { verb: 'get' } }, status }, context)
    assert.equal(calls[0]?.[0], me)
  })

  it('of type SelfSubjectRulesReview list the rules of the requesting user', async () => {
    const rules = {
      resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: [] }],
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }],
      incomplete: true,
      error: 'some',
    }
    const list = defineSelfSubjectRulesReview({ ...createAuthorizer().authorizer, rulesFor: () => rules })
    const empty = { resourceRules: null, nonResourceRules: null, incomplete: false }
    assert.deepEqual(await list.answer({ metadata: {}, spec: { namespace: 'n1' }, status: empty }, context), {
      kind: 'SelfSubjectRulesReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: {},
      spec: {},
      status: {
        resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
        nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }],
        incomplete: true,
        evaluationError: 'some',
      },
    })
    const bare = { metadata: {}, spec: {}, status: empty }
    assert.throws(
      () => list.answer(bare, context),
      (error: unknown) => error instanceof StatusError && error.message === 'no namespace on request',
    )
  })
})
