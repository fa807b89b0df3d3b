/** ValidatingAdmissionWebhook: calls all webhooks that may refuse an object, concurrently. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { kindKey } from '#meta/kind.ts'

import type { Form } from '../matching/forms.ts'
import { isAdmissionConfiguration } from '../matching/matcher.ts'
import type { AdmissionPlugin } from '../plugin.ts'
import { type Hook, HookList } from './hooks.ts'
import { refusalOf } from './mutating.ts'
import { formWanted, showForm, type WebhookTools } from './relevance.ts'
import { type ReviewInput, reviewInputOf } from './review.ts'
import { askWebhook, isOver, requestTimeout } from './verdict.ts'

interface Invocation {
  readonly hook: Hook
  readonly form: Form
  readonly input: ReviewInput
}

export class ValidatingWebhooks implements AdmissionPlugin {
  readonly name = 'ValidatingAdmissionWebhook'
  readonly on = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const
  readonly hooks: HookList = new HookList()
  readonly #tools: WebhookTools

  constructor(tools: WebhookTools) {
    this.#tools = tools
  }

  validate(attributes: Attributes): void | Promise<void> {
    if (this.hooks.all.length === 0 || isAdmissionConfiguration(attributes.kind)) return undefined
    return this.#ask(this.hooks.all, attributes)
  }

  async #ask(hooks: readonly Hook[], attributes: Attributes): Promise<void> {
    const invocations = await this.#relevant(hooks, attributes)
    if (invocations.length === 0) return
    if (isOver(this.#tools, attributes)) throw requestTimeout()
    /** In order of arrival: the first is the response. */
    const refusals: Error[] = []
    const asking = invocations.map(async (invocation, index) => {
      const refusal = await this.#askOne(invocation, index)
      if (refusal !== undefined) refusals.push(refusal)
    })
    await Promise.all(asking)
    if (refusals[0] !== undefined) throw refusals[0]
  }

  async #relevant(hooks: readonly Hook[], attributes: Attributes): Promise<readonly Invocation[]> {
    const shown = new Map<string, ReviewInput>()
    const invocations: Invocation[] = []
    for (const hook of hooks) {
      const form = await formWanted(this.#tools, hook, attributes)
      if (form === undefined) continue
      const key = kindKey(form.kind)
      const input = shown.get(key) ?? reviewInputOf(attributes, await showForm(this.#tools, attributes, form.kind))
      shown.set(key, input)
      invocations.push({ hook, form, input })
    }
    return invocations
  }

  /** The refusal; undefined if there is none. */
  async #askOne({ hook, form, input }: Invocation, index: number): Promise<Error | undefined> {
    const { meter } = this.#tools
    const { attributes } = input
    const { name, failurePolicy } = hook.spec
    const answered = meter.begin(name, attributes.operation)
    const verdict = await askWebhook(this.#tools, hook, { form, isMutating: false }, input)
    const isIgnored = verdict.outcome === 'unanswered' && failurePolicy === 'Ignore'
    answered(verdict, verdict.outcome !== 'allowed' && !isIgnored)
    if (verdict.outcome === 'allowed') return undefined
    if (!isIgnored) return refusalOf(verdict)
    if (verdict.isLate === true) return requestTimeout()
    if (verdict.isGivenUp === true) return undefined
    meter.failedOpen(name)
    attributes.annotate?.(`failed-open.validating.webhook.admission.k8s.io/round_0_index_${index}`, name)
    return undefined
  }
}
