import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type SubjectAccessReview, SubjectAccessReviews } from '#apis/authorization/v1.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { badRequestError } from '#meta/status-errors.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { admitAll, type Admission, type Attributes } from '../registry/admission.ts'
import { defineReview, type Review } from '../registry/resource.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { answerReview } from './review.ts'

const PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews'

function callOf(body: object): Call {
  const headers: Readonly<Record<string, string>> = { 'content-type': 'application/json', 'user-agent': 'kubectl/1' }
  return {
    method: 'POST',
    info: requestInfoOf('POST', PATH, undefined),
    query: new URLSearchParams(),
    header: (name: string) => headers[name] ?? '',
    body: () => Promise.resolve(Buffer.from(JSON.stringify(body))),
    user: { name: 'jane', uid: '', groups: [], extra: {} },
    signal: new AbortController().signal,
    warn: () => undefined,
  } as unknown as Call
}

const review = defineReview<SubjectAccessReview>({
  kind: SubjectAccessReviews,
  validate: ({ spec }) => (spec.user === undefined ? [fieldPath('spec.user').required()] : []),
  answer: (sent) => Promise.resolve({ ...sent, status: { allowed: true } }),
}) as unknown as Review

async function answered(body: object, admission: Admission): Promise<SubjectAccessReview> {
  await using servers = createServers()
  const { services } = await servers.open([], { admission: () => admission })
  const answer = (await answerReview(callOf(body), review, services)) as WholeAnswer
  return JSON.parse(answer.body as string) as SubjectAccessReview
}

describe('a review request', () => {
  it('passes admission as a create, and plugins may change it', async () => {
    const seen: Attributes[] = []
    const admission: Admission = {
      mutate(attributes) {
        seen.push(attributes)
        ;(attributes.object as SubjectAccessReview).spec.user = 'ann'
        return Promise.resolve()
      },
      validate: (attributes) => Promise.resolve(void seen.push(attributes)),
    }
    const { spec, status, metadata } = await answered({ spec: { groups: ['a'] } }, admission)
    assert.deepEqual([spec.user, status?.allowed], ['ann', true])
    assert.equal(seen.length, 2)
    const [{ operation, kind, objectKind, user, namespace } = {} as Attributes] = seen
    assert.deepEqual([operation, kind, namespace, user.name], ['CREATE', SubjectAccessReviews, '', 'jane'])
    assert.equal(objectKind.kind, 'SubjectAccessReview')
    // Fields that plugins add have no owner.
    const [entry] = metadata.managedFields ?? []
    assert.deepEqual([entry?.manager, entry?.fieldsV1], ['kubectl', { 'f:spec': { 'f:groups': {} } }])
  })

  it('is validated before admission plugins can reject it', async () => {
    const validate = (): Promise<never> => Promise.reject(badRequestError('not today'))
    const admission: Admission = { ...admitAll, validate }
    await assert.rejects(answered({ spec: { user: 'ann' } }, admission), /not today/)
    await assert.rejects(answered({ spec: {} }, admission), /spec.user: Required value/)
  })
})
