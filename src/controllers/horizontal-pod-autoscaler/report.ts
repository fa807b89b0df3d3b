/** What people see of an autoscaler: its conditions and the rest of its status, and events. */
import {
  type HorizontalPodAutoscaler,
  HorizontalPodAutoscalers,
  type HorizontalPodAutoscalerStatus,
} from '#apis/autoscaling/v2.ts'
import type { EventNote } from '#client/event-recorder.ts'
import { type AnyCondition, removeCondition, setCondition } from '#meta/conditions.ts'
import { objectKey, semanticEqual } from '#meta/object.ts'

import type { ControllerContext } from '../controller.ts'

type Says = 'AbleToScale' | 'ScalingActive' | 'ScalingLimited' | 'ScaledToZero'

/** For one look at one autoscaler: what is said is written with the rest of the status. */
export class Report {
  readonly #hpa: HorizontalPodAutoscaler
  readonly #context: ControllerContext
  readonly #conditions: AnyCondition[]

  constructor(hpa: HorizontalPodAutoscaler, context: ControllerContext) {
    this.#hpa = hpa
    this.#context = context
    this.#conditions = (hpa.status.conditions ?? []).map((condition) => ({ ...condition }) as AnyCondition)
  }

  tell(type: EventNote['type'], reason: string, message: string): void {
    this.#context.event(this.#hpa, { type, reason, message })
  }

  say(type: Says, status: 'True' | 'False', reason: string, message: string): void {
    setCondition(this.#conditions, { type, status, reason, message }, this.#context.clock)
  }

  unsay(type: Says): void {
    removeCondition(this.#conditions, type)
  }

  /** For when something else went wrong already, which counts more. */
  async writeIfPossible(news: Partial<HorizontalPodAutoscalerStatus>): Promise<void> {
    await this.write(news).catch((error: unknown) =>
      this.#context.log.error(error, 'Failed to update status', { hpa: objectKey(this.#hpa) }),
    )
  }

  /** Nothing is written when nothing is new. */
  async write(news: Partial<HorizontalPodAutoscalerStatus>): Promise<void> {
    const { client, signal } = this.#context
    const { observedGeneration, ...before } = this.#hpa.status
    // Whoever counts anew says nothing of generations.
    const isRecounted = 'desiredReplicas' in news || observedGeneration === undefined
    const kept = isRecounted ? before : { ...before, observedGeneration }
    const status = { ...kept, ...news, conditions: this.#conditions } as HorizontalPodAutoscalerStatus
    if (status.currentReplicas === 0) delete status.currentReplicas
    if (semanticEqual(this.#hpa.status, status)) return
    try {
      await client.updateStatus(HorizontalPodAutoscalers, { ...this.#hpa, status }, { signal })
    } catch (error) {
      this.tell('Warning', 'FailedUpdateStatus', (error as Error).message)
      throw error
    }
  }
}
