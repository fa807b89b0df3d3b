/** The two plugins that ask webhooks, and what keeps them in step with the configurations. */
import { MutatingWebhookConfigurations, ValidatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type Following, joinFollowings } from '#apiserver/authorizers/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { WebhookCaller } from '#apiserver/webhooks/caller.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { createForms } from '../matching/forms.ts'
import type { AdmissionPlugin } from '../plugin.ts'
import type { HookList } from './hooks.ts'
import { createWebhookMeter } from './meter.ts'
import { MutatingWebhooks } from './mutating.ts'
import { ValidatingWebhooks } from './validating.ts'

export interface AdmissionWebhooksParts {
  readonly registry: Registry
  readonly caller: WebhookCaller
  readonly clock: Clock
  readonly random: Random
  readonly metrics: ServerMeters
}

export interface AdmissionWebhooks {
  readonly plugins: readonly AdmissionPlugin[]
  /** Once the kinds are served. Until its end nobody is asked. */
  follow(): Following
}

export function createAdmissionWebhooks(parts: AdmissionWebhooksParts): AdmissionWebhooks {
  const { registry, caller, clock, random, metrics } = parts
  const tools = { caller, random, forms: createForms(registry) }
  const mutating = new MutatingWebhooks({ ...tools, meter: createWebhookMeter(metrics, clock, 'admit') })
  const validating = new ValidatingWebhooks({ ...tools, meter: createWebhookMeter(metrics, clock, 'validating') })
  const following = (hooks: HookList, kind: Kind): Following[] => {
    const store = registry.storeOf(kind)
    return store === undefined ? [] : [hooks.follow(store)]
  }
  return {
    plugins: [mutating, validating],
    follow: () =>
      joinFollowings([
        ...following(mutating.hooks, MutatingWebhookConfigurations),
        ...following(validating.hooks, ValidatingWebhookConfigurations),
      ]),
  }
}
