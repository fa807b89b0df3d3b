import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Attributes } from '#apiserver/registry/admission.ts'
import { type WebhookCaller, WebhookError } from '#apiserver/webhooks/caller.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { createSeededRandom } from '#lib/random.ts'

import { sampleWrite } from '../kit/sample-write.ts'
import type { Hook } from './hooks.ts'
import { askedOf } from './review.ts'
import { askWebhook, isOver, type Verdict } from './verdict.ts'

/** What becomes of a dry run. Rejects when the webhook is asked. */
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
  const asked = askedOf(attributes, { kind, object: attributes.object, oldObject: undefined })
  return askWebhook(tools, { spec } as unknown as Hook, { form, isMutating: false }, asked)
}

describe('a webhook of old, which does something each time it is asked', () => {
  for (const sideEffects of ['Some', 'Unknown']) {
    it(`refuses dry runs, as it says ${sideEffects}`, async () => {
      const verdict = await dryRun(sideEffects)
      assert.ok(verdict.outcome === 'unusable')
      const { code, reason, message } = verdict.error.status
      assert.deepEqual([code, reason, message], [400, 'BadRequest', 'admission webhook "x" does not support dry run'])
    })
  }

  it('is unlike those of today', async () => {
    for (const one of ['None', 'NoneOnDryRun']) await assert.rejects(dryRun(one), new Error('asked'))
  })
})

describe('a webhook that does not answer', () => {
  const { attributes } = sampleWrite({ resource: 'configmaps', object: { metadata: { name: 'a' } } })
  const clock = createVirtualClock()
  const until = (deadlineMs: number): Attributes =>
    Object.assign(Object.create(attributes), { deadlineMs }) as Attributes
  // No time passes: as if the timer had rung a moment early.
  const silent = async (code: 'timeout' | 'broken'): Promise<never> => {
    throw new WebhookError('call', 'Post', new HttpError(code, 'nothing'))
  }

  for (const [what, code, timeoutSeconds, expected] of [
    ['has taken the time of its request, whatever the clock says', 'timeout', 30, true],
    ['has taken its own time, and there is more', 'timeout', 1, false],
    ['is not there, and there is time', 'broken', 30, false],
  ] as const)
    it(what, async () => {
      const limited = until(clock.elapsed() + 2000)
      const verdict = await ask({ sideEffects: 'None', timeoutSeconds }, limited, () => silent(code))
      assert.equal(isOver({ clock }, limited, verdict), expected)
    })
})
