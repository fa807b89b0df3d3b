/** The binding cycle of a pod: Permit, PreBind, Bind. It can be canceled until Bind starts. */
import { Pods } from '#apis/core/v1.ts'
import { onAbort } from '#lib/abort.ts'
import { causeOf, withCause } from '#lib/causes.ts'

import type { Extender } from '../decision/extender.ts'
import { statusOf } from '../decision/metering.ts'
import type { Handle, PluginRefusal, Verdict } from '../framework/framework.ts'
import type { Profile } from '../framework/profile.ts'
import type { StatusReporter } from '../framework/status-reporter.ts'
import type { BindingLimiter } from './binding-limiter.ts'
import { type Assignment, bind, hasPreBindWork, preBind } from './run-plugins.ts'

export interface BindingCycleParts {
  readonly handle: Handle
  readonly extenders: readonly Extender[]
  readonly signal: AbortSignal
}

type Permission = Promise<PluginRefusal | undefined>

export class BindingCycle {
  readonly #parts: BindingCycleParts
  readonly #reporter: StatusReporter
  readonly #bindingLimiter: BindingLimiter
  /** Pods in Permit or PreBind, with their cancellation. */
  readonly #cancellations = new Map<string, AbortController>()

  constructor(parts: BindingCycleParts, reporter: StatusReporter, bindingLimiter: BindingLimiter) {
    this.#parts = parts
    this.#reporter = reporter
    this.#bindingLimiter = bindingLimiter
  }

  /** Returns whether the pod was waiting. */
  cancelBinding(uid: string, why: string): boolean {
    const canceled = this.#cancellations.get(uid)
    canceled?.abort(why)
    return canceled !== undefined
  }

  /** Undefined: the pod is bound. */
  async run(assignment: Assignment, permitted: Permission | undefined): Promise<PluginRefusal | undefined> {
    const isReady = permitted === undefined && !hasPreBindWork(assignment)
    const unready = isReady ? undefined : await this.#prepare(assignment, permitted)
    return unready ?? (await this.#bindingLimiter.run(() => this.#bindBecause(assignment)))
  }

  /** Records the duration of all plugins of an extension point, for one pod. */
  ran(point: string, { name }: Profile, verdict: Verdict, sinceMs: number): void {
    const { meter, clock } = this.#parts.handle
    meter.ran(point, statusOf(verdict), name, clock.elapsed() - sinceMs)
  }

  /** Waits for Permit and runs PreBind; the pod is nominated meanwhile. */
  async #prepare(assignment: Assignment, permitted: Permission | undefined): Promise<PluginRefusal | undefined> {
    const { signal, handle } = this.#parts
    const { clock, meter } = handle
    const { pod, node, profile } = assignment
    const cancellation = new AbortController()
    const canceled = new Promise<PluginRefusal>((resolve) => {
      onAbort(cancellation.signal, () =>
        resolve({ code: 'unschedulable', reasons: [String(cancellation.signal.reason)], plugin: '' }),
      )
    })
    this.#cancellations.set(pod.uid, cancellation)
    try {
      if (handle.isEnabled('NominatedNodeNameForExpectation')) await this.#reporter.nominated(pod, node.name)
      const begunMs = clock.elapsed()
      const refusal = await Promise.race([permitted, canceled])
      const permittedMs = clock.elapsed()
      if (permitted !== undefined) meter.permitWaited(statusOf(refusal), permittedMs - begunMs)
      if (refusal !== undefined) return refusal
      const unready = await Promise.race([
        withCause(causeOf(Pods, pod.pod), () => preBind(assignment, AbortSignal.any([signal, cancellation.signal]))),
        canceled,
      ])
      this.ran('PreBind', profile, unready, permittedMs)
      return unready
    } finally {
      this.#cancellations.delete(pod.uid)
    }
  }

  /** The binding names the pod as its first cause. */
  #bindBecause(assignment: Assignment): Promise<PluginRefusal | undefined> {
    return withCause(causeOf(Pods, assignment.pod.pod), () => this.#bind(assignment))
  }

  /** An extender that binds runs before the plugins. */
  async #bind(assignment: Assignment): Promise<PluginRefusal | undefined> {
    const { pod, node } = assignment
    const binder = this.#parts.extenders.find((one) => one.binds && one.isInterestedIn(pod.pod))
    if (binder === undefined) return this.#bindByPlugin(assignment)
    const refusal = await binder.bind(pod.pod, node.name)
    if (refusal === undefined) return undefined
    return binder.isIgnorable ? this.#bindByPlugin(assignment) : { ...refusal, plugin: '' }
  }

  async #bindByPlugin(assignment: Assignment): Promise<PluginRefusal | undefined> {
    const begunMs = this.#parts.handle.clock.elapsed()
    const refusal = await bind(assignment, this.#parts.signal)
    this.ran('Bind', assignment.profile, refusal, begunMs)
    return refusal
  }
}
