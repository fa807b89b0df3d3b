import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Attributes } from '#apiserver/registry/admission.ts'
import { type WebhookCaller, WebhookError } from '#apiserver/webhooks/caller.ts'
import { sampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { Hook } from './hooks.ts'
import { reviewInputOf } from './review.ts'
import { askWebhook, isOver, type Verdict } from './verdict.ts'

/** The result of a dry run. Rejects if the webhook is called. */
function dryRun(sideEffects: string): Promise<Verdict> {
  const { attributes } = sampleWrite({ resource: 'configmaps', object: { metadata: { name: 'a' } }, dryRun: true })
  const call = (): never => {
    throw new Error('asked')
  }
  return ask({ sideEffects }, attributes, call)
}

function ask(more: object, attributes: Attributes, call: WebhookCaller['call']): Promise<Verdict> {
  const tools = { caller: { call } as WebhookCaller, random: createSeededRandom(1), clock: createVirtualClock() }
  const spec = { name: 'x', admissionReviewVersions: ['v1'], clientConfig: { url: 'https://a' }, ...more }
  const kind = { group: '', version: 'v1', kind: 'ConfigMap' }
  const form = { kind, resource: { group: '', version: 'v1', resource: 'configmaps' } }
  const input = reviewInputOf(attributes, { kind, object: attributes.object, oldObject: undefined })
  return askWebhook(tools, { spec } as unknown as Hook, { form, isMutating: false }, input)
}

describe('a webhook of admission v1beta1', () => {
  for (const sideEffects of ['Some', 'Unknown']) {
    it(`refuses dry runs if sideEffects is ${sideEffects}`, async () => {
      const verdict = await dryRun(sideEffects)
      assert.ok(verdict.outcome === 'unusable')
      const { code, reason, message } = verdict.error.status
      assert.deepEqual([code, reason, message], [400, 'BadRequest', 'admission webhook "x" does not support dry run'])
    })
  }

  it('is called on a dry run if it declares no side effects', async () => {
    for (const one of ['None', 'NoneOnDryRun']) await assert.rejects(dryRun(one), new Error('asked'))
  })
})

describe('a webhook that does not respond', () => {
  const { attributes } = sampleWrite({ resource: 'configmaps', object: { metadata: { name: 'a' } } })
  const clock = createVirtualClock()
  const until = (deadlineMs: number): Attributes =>
    Object.assign(Object.create(attributes), { deadlineMs }) as Attributes
  // No time passes, as if the timer fired early.
  const silent = async (code: 'timeout' | 'broken'): Promise<never> => {
    throw new WebhookError('call', 'Post', new HttpError(code, 'nothing'))
  }

  for (const [what, code, timeoutSeconds, expected] of [
    ['fails the request when the timeout of the request ends', 'timeout', 30, true],
    ['is skipped when only the timeout of the webhook ends', 'timeout', 1, false],
    ['is skipped if it is unreachable', 'broken', 30, false],
  ] as const)
    it(what, async () => {
      const limited = until(clock.elapsed() + 2000)
      const verdict = await ask({ sideEffects: 'None', timeoutSeconds }, limited, () => silent(code))
      assert.equal(isOver({ clock }, limited, verdict), expected)
    })
})
