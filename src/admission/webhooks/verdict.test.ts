import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { WebhookCaller } from '#apiserver/webhooks/caller.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { sampleWrite } from '../kit/sample-write.ts'
import type { Hook } from './hooks.ts'
import { askedOf } from './review.ts'
import { askWebhook, type Verdict } from './verdict.ts'

/** What becomes of a dry run. Rejects when the webhook is asked. */
function dryRun(sideEffects: string): Promise<Verdict> {
  const call = (): never => {
    throw new Error('asked')
  }
  const tools = {
    caller: { call } as unknown as WebhookCaller,
    random: createSeededRandom(1),
    clock: createVirtualClock(),
  }
  const spec = { name: 'x', sideEffects, admissionReviewVersions: ['v1'], clientConfig: { url: 'https://a' } }
  const { attributes } = sampleWrite({ resource: 'configmaps', object: { metadata: { name: 'a' } }, dryRun: true })
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
