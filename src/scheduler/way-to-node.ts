/**
 * The way of a pod from the decision to its node: those who permit it are waited for, the ground is prepared, it is bound. As
 * long as it is not bound somebody may hold it up.
 */
import { onAbort } from '#lib/abort.ts'

import { bind, type Choice, preBind, willWait } from './binding.ts'
import type { Extender } from './extender.ts'
import type { Handle, PluginRefusal, Verdict } from './framework.ts'
import { statusOf } from './metering.ts'
import type { Profile } from './profile.ts'
import type { Teller } from './telling.ts'
import type { Traffic } from './traffic.ts'

export interface WayParts {
  readonly handle: Handle
  readonly extenders: readonly Extender[]
  readonly signal: AbortSignal
}

type Permission = Promise<PluginRefusal | undefined>

export class WayToNode {
  readonly #parts: WayParts
  readonly #teller: Teller
  readonly #traffic: Traffic
  /** Pods that have a node and are not bound yet, by what could still hold them up. */
  readonly #travelling = new Map<string, AbortController>()

  constructor(parts: WayParts, teller: Teller, traffic: Traffic) {
    this.#parts = parts
    this.#teller = teller
    this.#traffic = traffic
  }

  /** Whether the pod could still be held up. */
  holdUp(uid: string, why: string): boolean {
    const held = this.#travelling.get(uid)
    held?.abort(why)
    return held !== undefined
  }

  /** Undefined: it is bound. */
  async take(choice: Choice, permitted: Permission | undefined): Promise<PluginRefusal | undefined> {
    const isReady = permitted === undefined && !willWait(choice)
    const unready = isReady ? undefined : await this.#prepare(choice, permitted)
    return unready ?? (await this.#traffic.binding(() => this.#bind(choice)))
  }

  /** Counts all plugins of a point, for one pod. */
  ran(point: string, { name }: Profile, verdict: Verdict, sinceMs: number): void {
    const { meter, clock } = this.#parts.handle
    meter.ran(point, statusOf(verdict), name, clock.elapsed() - sinceMs)
  }

  /** Until everybody agrees and the ground is prepared; so long the pod is nominated. */
  async #prepare(choice: Choice, permitted: Permission | undefined): Promise<PluginRefusal | undefined> {
    const { signal, handle } = this.#parts
    const { clock, meter } = handle
    const { pod, node, profile } = choice
    const hold = new AbortController()
    const held = new Promise<PluginRefusal>((resolve) => {
      onAbort(hold.signal, () => resolve({ code: 'unschedulable', reasons: [String(hold.signal.reason)], plugin: '' }))
    })
    this.#travelling.set(pod.uid, hold)
    try {
      if (handle.isEnabled('NominatedNodeNameForExpectation')) await this.#teller.nominated(pod, node.name)
      const begunMs = clock.elapsed()
      const refusal = await Promise.race([permitted, held])
      const permittedMs = clock.elapsed()
      if (permitted !== undefined) meter.permitWaited(statusOf(refusal), permittedMs - begunMs)
      if (refusal !== undefined) return refusal
      const unready = await Promise.race([preBind(choice, AbortSignal.any([signal, hold.signal])), held])
      this.ran('PreBind', profile, unready, permittedMs)
      return unready
    } finally {
      this.#travelling.delete(pod.uid)
    }
  }

  /** An extender that binds comes before the plugins. */
  async #bind(choice: Choice): Promise<PluginRefusal | undefined> {
    const { pod, node } = choice
    const binder = this.#parts.extenders.find((one) => one.binds && one.isInterestedIn(pod.pod))
    if (binder === undefined) return this.#bindByPlugin(choice)
    const refusal = await binder.bind(pod.pod, node.name)
    if (refusal === undefined) return undefined
    return binder.isIgnorable ? this.#bindByPlugin(choice) : { ...refusal, plugin: '' }
  }

  async #bindByPlugin(choice: Choice): Promise<PluginRefusal | undefined> {
    const begunMs = this.#parts.handle.clock.elapsed()
    const refusal = await bind(choice, this.#parts.signal)
    this.ran('Bind', choice.profile, refusal, begunMs)
    return refusal
  }
}
