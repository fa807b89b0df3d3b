/** Creates the two webhook admission plugins, and watches the stored webhook configurations for them. */
import { MutatingWebhookConfigurations, ValidatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type Following, joinFollowings } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { WebhookCaller } from '#apiserver/webhooks/caller.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { createConditionMeter } from '../matching/condition-meter.ts'
import { createForms, type Forms } from '../matching/forms.ts'
import type { AdmissionPlugin } from '../plugin.ts'
import type { HookList } from './hooks.ts'
import { CONDITION_TYPES, createWebhookMeter } from './meter.ts'
import { MutatingWebhooks } from './mutating.ts'
import type { WebhookTools } from './relevance.ts'
import { ValidatingWebhooks } from './validating.ts'

/** `admit`: of MutatingAdmissionWebhook. */
export type WebhookType = 'admit' | 'validating'

export interface AdmissionWebhooksParts {
  readonly registry: Registry
  /** Each with the credentials of its plugin. */
  readonly callers: Readonly<Record<WebhookType, WebhookCaller>>
  readonly clock: Clock
  readonly random: Random
  readonly metrics: ServerMeters
  readonly authorize: Authorizer['authorize']
}

export interface AdmissionWebhooks {
  readonly plugins: readonly AdmissionPlugin[]
  /** Starts following once the kinds are served; no webhook is called before it resolves. */
  follow(): Following
}

export function createAdmissionWebhooks(parts: AdmissionWebhooksParts): AdmissionWebhooks {
  const { registry } = parts
  const forms = createForms(registry)
  const mutating = new MutatingWebhooks(toolsFor(parts, forms, 'admit'))
  const validating = new ValidatingWebhooks(toolsFor(parts, forms, 'validating'))
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

function toolsFor(parts: AdmissionWebhooksParts, forms: Forms, type: WebhookType): WebhookTools {
  const { callers, random, authorize, metrics, clock } = parts
  const meter = createWebhookMeter(metrics, clock, type)
  const conditions = createConditionMeter(metrics, clock, { kind: 'webhook', type: CONDITION_TYPES[type] })
  return { caller: callers[type], random, clock, authorize, forms, meter, conditions, isMutating: type === 'admit' }
}
