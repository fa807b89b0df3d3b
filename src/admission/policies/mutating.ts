/**
 * MutatingAdmissionPolicy: changes objects before webhooks receive them. Each policy receives the result of the
 * previous one; policies with reinvocation may run a second time.
 */
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding } from '#apis/admissionregistration/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { serviceUnavailableError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import { refuse } from '../kit/refusal.ts'
import { Reinvocations } from '../matching/reinvocations.ts'
import type { AdmissionPlugin, Round } from '../plugin.ts'
import { type CompiledMutatingPolicy, type CompiledMutation, compileMutatingPolicy } from './compiled-policy.ts'
import { type Invocation, isExempt, type PolicyTools, visitPolicies } from './invocation.ts'
import { createMutationMeter, type MutationMeter } from './metrics.ts'
import { MutationError, mutationOf } from './mutation.ts'
import { PolicyContext } from './policy-context.ts'
import { PolicySet } from './policy-set.ts'

type MutatingInvocation = Invocation<MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, CompiledMutatingPolicy>

/** The error of a policy that does not ignore it. */
interface Fault {
  readonly text: string
  readonly reason: 'Forbidden' | 'Invalid'
}

/** One round of one write. */
interface Run {
  readonly attributes: Attributes
  readonly round: Round
  readonly memory: Reinvocations
  readonly context: PolicyContext
  readonly faults: Fault[]
}

export class MutatingPolicies implements AdmissionPlugin {
  readonly name = 'MutatingAdmissionPolicy'
  readonly on = ['CREATE', 'UPDATE', 'CONNECT'] as const
  readonly policies: PolicySet<MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, CompiledMutatingPolicy>
  readonly #tools: PolicyTools
  readonly #meter: MutationMeter

  constructor(tools: PolicyTools) {
    this.#tools = tools
    this.policies = new PolicySet(({ spec }) => tools.expressions.compiled(() => compileMutatingPolicy(spec)))
    this.#meter = createMutationMeter(tools.metrics)
  }

  mutate(attributes: Attributes, round: Round): void | Promise<void> {
    if (this.policies.bound.length === 0 || isExempt(attributes)) return undefined
    return this.#mutate(attributes, round)
  }

  /** The matching policies are determined before the first of them changes anything. */
  async #mutate(attributes: Attributes, round: Round): Promise<void> {
    const invocations: MutatingInvocation[] = []
    const faults: Fault[] = []
    await visitPolicies(this.#tools, this.policies, attributes, {
      misconfigured({ policy, binding, why }) {
        const what = binding === undefined ? 'policy' : 'binding'
        faults.push({ text: `${headOf(policy, binding)} failed to configure ${what}: ${why}`, reason: 'Forbidden' })
      },
      invoke: (invocation) => void invocations.push(invocation),
    })
    if (invocations.length > 0) {
      const memory = round.memory(this, () => new Reinvocations())
      const context = new PolicyContext(this.#tools, attributes)
      await this.#runAll(invocations, { attributes, round, memory, context, faults })
    }
    if (faults.length > 0) throw refusalOf(attributes, faults)
  }

  async #runAll(invocations: readonly MutatingInvocation[], run: Run): Promise<void> {
    const { attributes, round, memory } = run
    if (round.isSecond && memory.isOther(attributes)) memory.wakeAll()
    let hasMutated = false
    for (const invocation of invocations) {
      if (await this.#runOne(invocation, run)) hasMutated = true
    }
    // Like upstream, also the one that mutated last, even if nothing has changed since.
    if (hasMutated) {
      memory.wakeAll()
      round.askAgain()
    }
    memory.keep(attributes)
  }

  /** True if a mutation was applied, even without a difference. */
  async #runOne(invocation: MutatingInvocation, run: Run): Promise<boolean> {
    const { bound, form } = invocation
    const { round, memory, context } = run
    const compiled = bound.compiled()
    const { matches, error } = await context.matches(invocation, compiled)
    if (error !== undefined) report(invocation, error, run)
    if (!matches) return false
    const id = idOf(invocation)
    if (round.isSecond && !memory.isAwake(id)) return false
    const { object: before } = await context.shown(form)
    let hasMutated = false
    for (const at of compiled.mutations.keys()) {
      if (await this.#mutateOnce(invocation, at, run)) hasMutated = true
    }
    const { object: after } = await context.shown(form)
    if (!semanticEqual(before, after)) {
      memory.wakeAll()
      round.askAgain()
    }
    if (bound.policy.spec.reinvocationPolicy === 'IfNeeded') memory.add(id)
    return hasMutated
  }

  async #mutateOnce(invocation: MutatingInvocation, at: number, run: Run): Promise<boolean> {
    const { attributes, context } = run
    const { bound, binding, form } = invocation
    const { object } = await context.shown(form)
    if (object === undefined) return false
    const startMs = this.#tools.clock.elapsed()
    const observe = (error?: string): void =>
      this.#meter.observe(bound.name, nameOf(binding), this.#tools.clock.elapsed() - startMs, error)
    try {
      const next = await this.#patched(invocation, at, object, run)
      await this.#tools.forms.take(attributes, form.kind, next)
      context.changed()
    } catch (error) {
      observe((error as Error).message)
      if (!(error instanceof MutationError)) throw error
      report(invocation, error.message, run)
      return false
    }
    observe()
    return true
  }

  /** Throws MutationError, or StatusError for errors that end the request whatever the failure policy. */
  async #patched(
    invocation: MutatingInvocation,
    at: number,
    object: KubeObject,
    { attributes, context }: Run,
  ): Promise<KubeObject> {
    const { form, bound } = invocation
    const { forms } = this.#tools
    const { composition, mutations } = bound.compiled()
    const mutation = mutations[at] as CompiledMutation
    const inputs = await context.inputs(invocation)
    const schemas = forms.schemasOf(attributes, form.kind)
    if (schemas === undefined) throw serviceUnavailableError(unknownKind(form.kind))
    const made = await context.evaluate((asking) =>
      mutationOf(mutation, { inputs, composition, asking }, { ...schemas, object }),
    )
    return forms.read(attributes, form.kind, made)
  }
}

function unknownKind({ group, version, kind }: GroupVersionKind): string {
  const why = 'There can be a delay between when CustomResourceDefinitions are created and when they are available.'
  return `Resource kind ${group}/${version}, Kind=${kind} not found. ${why}`
}

function report({ bound, binding }: MutatingInvocation, why: string, { faults }: Run): void {
  if (bound.policy.spec.failurePolicy === 'Ignore') return
  faults.push({ text: `${headOf(bound.policy, binding)} ${why}`, reason: 'Invalid' })
}

function headOf(policy: KubeObject, binding: KubeObject | undefined): string {
  if (binding === undefined) return `policy ${goQuote(nameOf(policy))} denied request:`
  return `policy '${nameOf(policy)}' with binding '${nameOf(binding)}' denied request:`
}

function nameOf({ metadata }: KubeObject): string {
  return metadata.name ?? ''
}

function idOf({ bound, binding, param }: MutatingInvocation): string {
  const { namespace = '', name = '' } = param?.metadata ?? {}
  return [bound.name, nameOf(binding), namespace, name].join('/')
}

/** The first error is the message, all are causes. The code stays 403 for every reason. */
function refusalOf(attributes: Attributes, faults: readonly Fault[]): StatusError {
  const { status } = refuse(attributes, '')
  const [first] = faults as readonly [Fault]
  const details = { ...status.details, causes: faults.map(({ text }) => ({ message: text })) }
  return new StatusError({ ...status, message: first.text, reason: first.reason, details })
}
