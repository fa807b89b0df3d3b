/**
 * MutatingAdmissionWebhook: calls webhooks that may change objects, one after the other. A webhook with reinvocation
 * runs again if a later webhook has changed the object.
 */
import { dropRepeatedOwners } from '#apiserver/handlers/owner-references.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { applyJsonPatch } from '#lib/json/patch.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { decodeManaged } from '#meta/apply/managed-fields.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { deepCopy, type ManagedFieldsEntry, semanticEqual } from '#meta/object.ts'
import { internalError } from '#meta/status-errors.ts'

import type { Form } from '../matching/forms.ts'
import { isAdmissionConfiguration } from '../matching/matcher.ts'
import { Reinvocations } from '../matching/reinvocations.ts'
import type { AdmissionPlugin, Round } from '../plugin.ts'
import { type Hook, HookList } from './hooks.ts'
import { formWanted, showForm, type WebhookTools } from './relevance.ts'
import { type ReviewInput, reviewInputOf } from './review.ts'
import { askWebhook, isOver, requestTimeout, type Verdict } from './verdict.ts'

export class MutatingWebhooks implements AdmissionPlugin {
  readonly name = 'MutatingAdmissionWebhook'
  readonly on = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const
  readonly hooks: HookList = new HookList()
  readonly #tools: WebhookTools

  constructor(tools: WebhookTools) {
    this.#tools = tools
  }

  mutate(attributes: Attributes, round: Round): void | Promise<void> {
    if (this.hooks.all.length === 0 || isAdmissionConfiguration(attributes.kind)) return undefined
    return this.#ask(this.hooks.all, attributes, round)
  }

  async #ask(hooks: readonly Hook[], attributes: Attributes, round: Round): Promise<void> {
    const memory = round.memory(this, () => new Reinvocations())
    if (round.isSecond && memory.isOther(attributes)) memory.wakeAll()
    const managedFields = attributes.object?.metadata?.managedFields
    for (const [index, hook] of hooks.entries()) {
      const form = await formWanted(this.#tools, hook, attributes)
      if (form === undefined || (round.isSecond && !memory.isAwake(hook.id))) continue
      const isChanged = await this.#askOne(hook, form, attributes, `round_${round.isSecond ? 1 : 0}_index_${index}`)
      if (isChanged) {
        memory.wakeAll()
        round.askAgain()
      }
      if (hook.spec.reinvocationPolicy === 'IfNeeded') memory.add(hook.id)
    }
    checkManagedFields(attributes, managedFields)
    memory.keep(attributes)
  }

  /** True if the object was changed. `place` is the suffix of audit annotation names. */
  async #askOne(hook: Hook, form: Form, attributes: Attributes, place: string): Promise<boolean> {
    const { meter } = this.#tools
    const { name, failurePolicy } = hook.spec
    const answered = meter.begin(name, attributes.operation)
    const input = reviewInputOf(attributes, await showForm(this.#tools, attributes, form.kind))
    const verdict = await askWebhook(this.#tools, hook, { form, isMutating: true }, input)
    const { outcome, isChanged } = await this.#apply(hook, input, verdict, place)
    annotateMutation(hook, attributes, isChanged, place)
    const isIgnored = outcome.outcome === 'unanswered' && failurePolicy === 'Ignore'
    answered(outcome, outcome.outcome !== 'allowed' && !isIgnored)
    if (isIgnored) {
      if (isOver(this.#tools, attributes, outcome)) throw requestTimeout()
      meter.failedOpen(name)
      attributes.annotate?.(`failed-open.mutating.webhook.admission.k8s.io/${place}`, name)
    } else if (outcome.outcome !== 'allowed') throw refusalOf(outcome)
    return isChanged
  }

  /** Applies an answer to the object. */
  async #apply(
    hook: Hook,
    { attributes, shown }: ReviewInput,
    verdict: Verdict,
    place: string,
  ): Promise<{ readonly outcome: Verdict; readonly isChanged: boolean }> {
    if (verdict.outcome !== 'allowed' || verdict.patch === undefined) return { outcome: verdict, isChanged: false }
    const { kind, object } = shown
    const { forms } = this.#tools
    try {
      if (object === undefined) {
        const why = 'attempted to modify the object, which is not supported for this operation'
        throw new Error(`admission webhook ${goQuote(hook.spec.name)} ${why}`)
      }
      const patched = applyJsonPatch(object as unknown as JsonValue, verdict.patch as JsonValue)
      const next = forms.read(attributes, kind, patched)
      const isChanged = !semanticEqual(object, next)
      annotatePatch(hook, attributes, verdict.patch, place)
      if (next.metadata !== undefined) {
        dropRepeatedOwners(next.metadata, (text) => attributes.warn(text), 'after mutating admission happens')
      }
      await forms.take(attributes, kind, next)
      return { outcome: verdict, isChanged }
    } catch (error) {
      return { outcome: { outcome: 'unusable', error: internalError(error as Error) }, isChanged: false }
    }
  }
}

/** Reverts managed fields that are unreadable. */
function checkManagedFields(attributes: Attributes, before: ManagedFieldsEntry[] | undefined): void {
  const { metadata } = attributes.object ?? {}
  if (metadata?.managedFields === undefined || metadata.managedFields === before) return
  try {
    decodeManaged(metadata.managedFields)
  } catch (error) {
    attributes.warn(
      '.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating ' +
        `admission controller; please fix your requests: ${(error as Error).message}`,
    )
    if (before === undefined) delete metadata.managedFields
    else metadata.managedFields = deepCopy(before)
  }
}

function annotateMutation(
  { configuration, spec }: Hook,
  attributes: Attributes,
  mutated: boolean,
  place: string,
): void {
  const value = encodeJson({ configuration, webhook: spec.name, mutated })
  attributes.annotate?.(`mutation.webhook.admission.k8s.io/${place}`, value)
}

function annotatePatch({ configuration, spec }: Hook, { annotate }: Attributes, patch: unknown, place: string): void {
  const value = (): string => encodeJson({ configuration, webhook: spec.name, patch, patchType: 'JSONPatch' })
  annotate?.(`patch.webhook.admission.k8s.io/${place}`, value(), 'Request')
}

/** The error for the client. */
export function refusalOf(verdict: Exclude<Verdict, { outcome: 'allowed' }>): Error {
  return verdict.outcome === 'unanswered' ? internalError(verdict.error) : verdict.error
}
