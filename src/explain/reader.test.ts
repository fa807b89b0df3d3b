import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Pod, Pods } from '#apis/core/v1.ts'
import { ApiClient, type Transport } from '#client/api-client.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { whyObject } from './explain.ts'
import { HIDDEN, Reader, UNKEPT } from './reader.ts'

/** Answers each request with the next status code and body; repeats the last. */
function readerOf(...answers: readonly (readonly [code: number, body: object])[]): Reader {
  let at = 0
  const transport = {
    request: async () => {
      const [status, body] = answers[Math.min(at++, answers.length - 1)] ?? [500, {}]
      const bytes = Buffer.from(JSON.stringify(body))
      return {
        status,
        headers: {},
        bytes: async () => bytes,
        text: async () => bytes.toString(),
        discard: () => undefined,
      }
    },
  } as unknown as Transport
  return new Reader({ client: new ApiClient({ transport, clock: createVirtualClock(0), userAgent: 'test' }) })
}

const failure = (code: number, reason: string): [number, object] => [
  code,
  { kind: 'Status', code, reason, message: reason },
]
const podWith = (phase: string, uid = 'u'): [number, Pod] => [
  200,
  {
    metadata: { namespace: 'ns', name: 'p', uid, resourceVersion: '1' },
    spec: { containers: [] },
    status: { phase },
  },
]
const where = { namespace: 'ns', name: 'p' }

describe('Reader', () => {
  it('returns a refusal as a value, and throws other errors', async () => {
    assert.equal(await readerOf(failure(403, 'Forbidden')).get(Pods, where), HIDDEN)
    assert.equal(await readerOf(failure(403, 'Forbidden')).list(Pods), HIDDEN)
    assert.equal(await readerOf(failure(404, 'NotFound')).get(Pods, where), undefined)
    assert.equal(await readerOf(failure(404, 'NotFound')).changes(Pods, where), UNKEPT)
    assert.equal(await readerOf(failure(410, 'Expired')).changes(Pods, where), UNKEPT)
    await assert.rejects(readerOf(failure(400, 'BadRequest')).get(Pods, where))
  })

  it('confirms evidence only while the cited fields have their values', async () => {
    const rows: readonly (readonly [answer: readonly [number, object], isTrue: boolean])[] = [
      [podWith('Running'), true],
      [podWith('Failed'), false],
      [podWith('Running', 'other'), false],
      [failure(404, 'NotFound'), false],
      [failure(403, 'Forbidden'), false],
    ]
    for (const [answer, isTrue] of rows) {
      const reader = readerOf(podWith('Running'), answer)
      const pod = (await reader.get(Pods, where)) as Pod
      assert.equal(await reader.confirms(reader.cite(Pods, pod, 'status.phase')), isTrue)
    }
  })
})

describe('whyObject()', () => {
  it('does not guess about objects that change all the time', async () => {
    const gated = (name: string): [number, object] => {
      const [code, pod] = podWith('Pending')
      return [code, { ...pod, spec: { ...pod.spec, schedulingGates: [{ name }] } }]
    }
    const answers = ['a', 'b', 'c', 'd', 'e', 'f'].map(gated)
    const found = await whyObject(Pods, where, readerOf(...answers))
    assert.equal(found.verdict, 'NotKnown: the objects change faster than they can be explained')
    const [settled] = answers.slice(5)
    const later = await whyObject(Pods, where, readerOf(gated('a'), settled as [number, object]))
    assert.match(later.verdict, /scheduling gate f$/)
  })
})
