/**
 * Watches the stored webhook configurations and lists their webhooks: by name of the configuration, then in the order
 * of the configuration.
 */
import type { MutatingWebhook, ValidatingWebhook } from '#apis/admissionregistration/v1.ts'
import { follow, type Following } from '#apiserver/registry/follow.ts'
import type { Store } from '#apiserver/registry/store.ts'
import { compareText } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'
import { createAdmissionCompiler } from '#model/expressions/admission.ts'

import type { CompiledCondition } from '../matching/conditions.ts'
import { createCriteria, type Criteria, once } from '../matching/matcher.ts'

export type WebhookSpec = ValidatingWebhook & Pick<MutatingWebhook, 'reinvocationPolicy'>

export interface Hook {
  /** The name of its configuration. */
  readonly configuration: string
  /** Unique, also among webhooks of the same name. */
  readonly id: string
  readonly spec: WebhookSpec
  readonly criteria: Criteria
  /** Compiled on demand. */
  readonly conditions: () => readonly CompiledCondition[]
}

interface Configuration extends KubeObject {
  webhooks?: WebhookSpec[]
}

export class HookList {
  readonly #byConfiguration = new Map<string, readonly Hook[]>()
  #hooks: readonly Hook[] = []

  get all(): readonly Hook[] {
    return this.#hooks
  }

  /** Follows the stored configurations: a webhook takes effect once it is readable. */
  follow({ collection }: Store): Following {
    return follow(collection, {
      set: ({ name, object }) => this.#put(name, hooksOf(name, object as Configuration)),
      remove: ({ name }) => this.#put(name, []),
    })
  }

  #put(name: string, hooks: readonly Hook[]): void {
    if (hooks.length > 0) this.#byConfiguration.set(name, hooks)
    else this.#byConfiguration.delete(name)
    this.#hooks = [...this.#byConfiguration].sort(([a], [b]) => compareText(a, b)).flatMap(([, own]) => own)
  }
}

function hooksOf(configuration: string, { webhooks = [] }: Configuration): Hook[] {
  return webhooks.map((spec, at) => ({
    configuration,
    id: `${configuration}/${spec.name}/${at}`,
    spec,
    criteria: createCriteria({
      rules: spec.rules ?? [],
      matchPolicy: spec.matchPolicy,
      namespaceSelector: spec.namespaceSelector,
      objectSelector: spec.objectSelector,
    }),
    conditions: once(() => conditionsOf(spec)),
  }))
}

function conditionsOf({ matchConditions = [] }: WebhookSpec): CompiledCondition[] {
  const compiler = createAdmissionCompiler({ hasParams: false, hasVariables: false })
  return matchConditions.map(({ name, expression }) => ({
    name,
    expression: compiler.compile(expression, 'match-condition'),
  }))
}
