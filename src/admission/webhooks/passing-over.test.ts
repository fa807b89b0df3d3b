/**
 * Tests failurePolicy Ignore: a webhook that does not answer is skipped, unless the deadline of the request itself has
 * passed.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Store } from '#apiserver/registry/store.ts'
import { WebhookError } from '#apiserver/webhooks/caller.ts'
import { sampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { Rounds } from '../plugin.ts'
import { createWebhookMeter } from './meter.ts'
import { MutatingWebhooks } from './mutating.ts'
import type { WebhookTools } from './relevance.ts'
import { ValidatingWebhooks } from './validating.ts'

const LEFT_MS = 2000

/** No time passes during the call, as if the timer fired early. */
function silentTools(calls: () => void): WebhookTools {
  const clock = createVirtualClock()
  const silent = async (): Promise<never> => {
    calls()
    throw new WebhookError('call', 'Post', new HttpError('timeout', 'nothing'))
  }
  return {
    caller: { call: silent, close: () => undefined },
    random: createSeededRandom(1),
    clock,
    forms: { equivalents: () => [], show: async (attributes: Attributes, kind: unknown) => ({ ...attributes, kind }) },
    meter: createWebhookMeter(createServerMeters(), clock, 'admit'),
  } as unknown as WebhookTools
}

function storeOf(timeoutSeconds: number): Store {
  const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], scope: '*' }]
  const clientConfig = { url: 'https://a' }
  const hook = { name: 'x', admissionReviewVersions: ['v1'], sideEffects: 'None', failurePolicy: 'Ignore' }
  const everything = { namespaceSelector: {}, objectSelector: {} }
  const object = { metadata: {}, webhooks: [{ ...hook, ...everything, rules, clientConfig, timeoutSeconds }] }
  const collection = { isLoaded: true, entries: () => [{ key: 'k', name: 'n', object }], watch: () => undefined }
  return { collection } as unknown as Store
}

const PLUGINS = {
  mutating: (tools: WebhookTools, store: Store) => {
    const plugin = new MutatingWebhooks(tools)
    plugin.hooks.follow(store)
    return async (attributes: Attributes) => plugin.mutate(attributes, new Rounds())
  },
  validating: (tools: WebhookTools, store: Store) => {
    const plugin = new ValidatingWebhooks(tools)
    plugin.hooks.follow(store)
    return async (attributes: Attributes) => plugin.validate(attributes)
  },
}

for (const [name, make] of Object.entries(PLUGINS)) {
  describe(`a ${name} webhook that never responds`, () => {
    /** The number of calls. */
    const ask = async (timeoutSeconds: number): Promise<number> => {
      let calls = 0
      const tools = silentTools(() => calls++)
      const { attributes } = sampleWrite({
        resource: 'configmaps',
        object: { metadata: { name: 'a' } },
        deadlineMs: tools.clock.elapsed() + LEFT_MS,
      })
      await make(tools, storeOf(timeoutSeconds))(attributes)
      return calls
    }

    it('is skipped if its timeout ends before the deadline of the request', async () => {
      assert.equal(await ask(LEFT_MS / 1000 - 1), 1)
    })

    it('fails the request if the deadline of the request comes first', async () => {
      const message = 'Timeout: request did not complete within requested timeout'
      await assert.rejects(ask(LEFT_MS / 1000 + 1), { message })
    })
  })
}
