/** Writes conditions, status and events of an autoscaler. */
import {
  type HorizontalPodAutoscaler,
  HorizontalPodAutoscalers,
  type HorizontalPodAutoscalerStatus,
} from '#apis/autoscaling/v2.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import { type AnyCondition, removeCondition, setCondition } from '#meta/conditions.ts'
import { objectKey, semanticEqual } from '#meta/object.ts'

import type { ControllerContext } from '../../controller.ts'

type ConditionType = 'AbleToScale' | 'ScalingActive' | 'ScalingLimited' | 'ScaledToZero'

/** For one reconcile: conditions are written with the rest of the status. */
export class Report {
  readonly #hpa: HorizontalPodAutoscaler
  readonly #context: ControllerContext
  readonly #conditions: AnyCondition[]

  constructor(hpa: HorizontalPodAutoscaler, context: ControllerContext) {
    this.#hpa = hpa
    this.#context = context
    this.#conditions = (hpa.status.conditions ?? []).map((condition) => ({ ...condition }) as AnyCondition)
  }

  recordEvent(type: EventNote['type'], reason: string, message: string): void {
    this.#context.event(this.#hpa, { type, reason, message })
  }

  setCondition(type: ConditionType, status: 'True' | 'False', reason: string, message: string): void {
    setCondition(this.#conditions, { type, status, reason, message }, this.#context.clock)
  }

  removeCondition(type: ConditionType): void {
    removeCondition(this.#conditions, type)
  }

  /** Ignores errors, because another one is already reported. */
  async writeIfPossible(changes: Partial<HorizontalPodAutoscalerStatus>): Promise<void> {
    await this.write(changes).catch((error: unknown) =>
      this.#context.log.error(error, 'Failed to update the status of a HorizontalPodAutoscaler', {
        hpa: objectKey(this.#hpa),
      }),
    )
  }

  /** Writes only changes. */
  async write(changes: Partial<HorizontalPodAutoscalerStatus>): Promise<void> {
    const { client, signal } = this.#context
    const { observedGeneration, ...before } = this.#hpa.status
    // A recomputed status has no observedGeneration, as upstream.
    const isRecounted = 'desiredReplicas' in changes || observedGeneration === undefined
    const kept = isRecounted ? before : { ...before, observedGeneration }
    const status = { ...kept, ...changes, conditions: this.#conditions } as HorizontalPodAutoscalerStatus
    if (status.currentReplicas === 0) delete status.currentReplicas
    if (semanticEqual(this.#hpa.status, status)) return
    try {
      await client.updateStatus(HorizontalPodAutoscalers, { ...this.#hpa, status }, { signal })
    } catch (error) {
      this.recordEvent('Warning', 'FailedUpdateStatus', (error as Error).message)
      throw error
    }
  }
}
