/**
 * Horizontal pod autoscaler: periodically computes the desired replicas of each target from its metrics. `proposals.ts`
 * and `limits.ts` decide; this file reads, writes and reports.
 */
import { type HorizontalPodAutoscaler, HorizontalPodAutoscalers, type MetricStatus } from '#apis/autoscaling/v2.ts'
import { Pods } from '#apis/core/v1.ts'
import { type AnyCondition, isConditionTrue } from '#meta/conditions.ts'
import { matchesLabels, parseSelector, type Selector } from '#meta/labels.ts'
import { objectKey, splitKey } from '#meta/object.ts'
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'
import { timeOf } from '#meta/time.ts'
import { EVENTS, itself, rule } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { ServedKinds } from '../../objects/served-kinds.ts'
import { decide, type History, remember } from './limits.ts'
import { Metrics } from './metrics.ts'
import { type Proposal, type ProposalInput, propose } from './proposals.ts'
import type { Tolerance } from './replica-count.ts'
import { Report } from './report.ts'
import { readTarget, type Target, writeScale } from './scale-target.ts'

interface AutoscalerState {
  readonly kinds: ServedKinds
  readonly metrics: Metrics
  readonly histories: Map<string, History>
  /** The pod selector of each autoscaler at its last reconcile. */
  readonly selectors: Map<string, Selector>
}

const memoryOf = perRun(({ client, signal }): AutoscalerState => {
  const kinds = new ServedKinds(client)
  return { kinds, metrics: new Metrics(client, kinds, signal), histories: new Map(), selectors: new Map() }
})

export const horizontalPodAutoscalerController: Controller = defineController({
  name: 'horizontal-pod-autoscaler-controller',
  aliases: ['horizontalpodautoscaling'],
  account: 'horizontal-pod-autoscaler',
  component: 'horizontal-pod-autoscaler',
  watches: [
    { ...itself(HorizontalPodAutoscalers), delayMs: (settings) => settings['horizontal-pod-autoscaler-sync-period'] },
  ],
  reads: [Pods],
  rules: [
    rule('autoscaling', 'horizontalpodautoscalers', 'get list watch'),
    rule('autoscaling', 'horizontalpodautoscalers/status', 'update'),
    rule('*', '*/scale', 'get update'),
    rule('', 'pods', 'list'),
    rule('metrics.k8s.io', 'pods', 'list'),
    rule('custom.metrics.k8s.io', '*', 'get list'),
    rule('external.metrics.k8s.io', '*', 'get list'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, settings, log, meters } = context
    const hpa = cache.get(HorizontalPodAutoscalers, key)
    if (hpa === undefined) {
      const { histories, selectors } = memoryOf(context)
      histories.delete(key)
      selectors.delete(key)
      const { namespace, name } = splitKey(key)
      meters.family('horizontal_pod_autoscaler_controller_desired_replicas').remove(namespace, name)
      return undefined
    }
    try {
      await measured(new AutoscalerSync(hpa, context), context)
    } catch (error) {
      log.error(error, 'Failed to reconcile object', { controller: 'horizontal-pod-autoscaler-controller', key })
    }
    return { requeueAfterMs: settings['horizontal-pod-autoscaler-sync-period'] }
  },

  async run({ cache, meters }) {
    meters.collect('horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers', (emit) =>
      emit([...cache.list(HorizontalPodAutoscalers)].length),
    )
  },
})

async function measured(turn: AutoscalerSync, { clock, meters }: ControllerContext): Promise<void> {
  const startMs = clock.elapsed()
  let error: AutoscalerSync['error'] = 'internal'
  try {
    await turn.run()
    error = 'none'
  } catch (failure) {
    error = turn.error === 'none' ? 'internal' : turn.error
    throw failure
  } finally {
    const seconds = meters.family('horizontal_pod_autoscaler_controller_reconciliation_duration_seconds')
    seconds.labels(turn.action, error).observe((clock.elapsed() - startMs) / 1000)
    meters.family('horizontal_pod_autoscaler_controller_reconciliations_total').labels(turn.action, error).inc()
  }
}

/** One reconcile of one autoscaler. */
class AutoscalerSync {
  /** The label value in metrics. */
  action: 'none' | 'scale_up' | 'scale_down' = 'none'
  error: 'none' | 'spec' | 'internal' = 'none'

  readonly #hpa: HorizontalPodAutoscaler
  readonly #key: string
  readonly #context: ControllerContext
  readonly #memory: AutoscalerState
  readonly #report: Report

  constructor(hpa: HorizontalPodAutoscaler, context: ControllerContext) {
    this.#hpa = hpa
    this.#key = objectKey(hpa)
    this.#context = context
    this.#memory = memoryOf(context)
    this.#report = new Report(hpa, context)
  }

  async run(): Promise<void> {
    const target = await this.#read()
    const current = target.scale.spec.replicas ?? 0
    if (!this.#memory.histories.has(this.#key)) {
      const recommended = [{ replicas: current, atMs: this.#context.clock.now() }]
      this.#memory.histories.set(this.#key, { recommended, added: [], removed: [] })
    }
    const plan = await this.#plan(target, current)
    if (plan.replicas !== current) await this.#rescale(target, current, plan)
    const { namespace = '', name = '' } = this.#hpa.metadata
    const desired = this.#context.meters.family('horizontal_pod_autoscaler_controller_desired_replicas')
    desired.labels(namespace, name).set(plan.replicas)
    await this.#report.write({
      currentReplicas: current,
      desiredReplicas: plan.replicas,
      currentMetrics: plan.statuses,
      ...(plan.replicas !== current && { lastScaleTime: timeOf(this.#context.clock.now()) }),
    })
    if (plan.failure !== undefined) throw new Error(plan.failure)
  }

  /** Reads the target; reports failures in conditions and events. */
  async #read(): Promise<Target> {
    const { spec, metadata } = this.#hpa
    const { client, signal } = this.#context
    try {
      const target = await readTarget(metadata.namespace ?? '', spec.scaleTargetRef, {
        ...this.#memory,
        client,
        signal,
      })
      this.#report.setCondition(
        'AbleToScale',
        'True',
        'SucceededGetScale',
        "the HPA controller was able to get the target's current scale",
      )
      return target
    } catch (error) {
      const { message } = error as Error
      this.#report.recordEvent('Warning', 'FailedGetScale', message)
      this.#report.setCondition(
        'AbleToScale',
        'False',
        'FailedGetScale',
        `the HPA controller was unable to get the target's current scale: ${message}`,
      )
      await this.#report.writeIfPossible({})
      throw error
    }
  }

  async #plan(target: Target, current: number): Promise<ReplicaPlanOfMetrics> {
    const { minReplicas: min = 1, maxReplicas: max } = this.#hpa.spec
    if (current === 0 && !this.#mayLeaveZero(min)) {
      this.#report.setCondition(
        'ScalingActive',
        'False',
        'ScalingDisabled',
        'scaling is disabled since the replica count of the target is zero',
      )
      if (!this.#context.isEnabled('HPAScaleToZero')) this.#report.removeCondition('ScaledToZero')
      return { replicas: 0, reason: '', statuses: null }
    }
    if (current > max)
      return { replicas: max, reason: 'Current number of replicas above Spec.MaxReplicas', statuses: null }
    if (current > 0 && current < min) return { replicas: min, reason: BELOW_MIN, statuses: null }
    const found = await this.#compute(target, current)
    const { desired, metric } = found
    const nowMs = this.#context.clock.now()
    const request = {
      current,
      desired,
      min,
      max,
      nowMs,
      behavior: this.#hpa.spec.behavior,
      downWindowMs: this.#context.settings['horizontal-pod-autoscaler-downscale-stabilization'],
    }
    const history = this.#memory.histories.get(this.#key) ?? { recommended: [], added: [], removed: [] }
    const decision = decide(history, request)
    this.#memory.histories.set(this.#key, decision.history)
    for (const [type, condition] of [
      ['AbleToScale', decision.ableToScale],
      ['ScalingLimited', decision.scalingLimited],
    ] as const)
      this.#report.setCondition(type, condition.status, condition.reason, condition.message)
    const why = desired > current ? `${metric} above target` : desired < current ? 'All metrics below target' : ''
    // From zero, scale up to at least `minReplicas` if that is no longer zero.
    const replicas = current === 0 ? Math.max(decision.replicas, min) : decision.replicas
    return { ...found, replicas, reason: why === '' ? BELOW_MIN : why }
  }

  /** An autoscaler leaves zero only if it scaled to zero itself; otherwise a user disabled the target. */
  #mayLeaveZero(min: number): boolean {
    const isScaledToZero =
      this.#context.isEnabled('HPAScaleToZero') &&
      isConditionTrue(this.#hpa.status.conditions as AnyCondition[] | undefined, 'ScaledToZero')
    return isScaledToZero && (min !== 0 || this.#countsOutside())
  }

  #countsOutside(): boolean {
    return (this.#hpa.spec.metrics ?? []).some(({ type }) => type === 'Object' || type === 'External')
  }

  /** The maximum over all metrics. If one metric fails, no scale-down. */
  async #compute(target: Target, current: number): Promise<ComputedPlan> {
    const specs = this.#hpa.spec.metrics ?? []
    const round = await this.#round(target)
    const results = []
    for (const spec of specs) {
      const result = await propose(spec, round)
      if ('error' in result) this.#report.recordEvent('Warning', result.reason, result.message)
      results.push(result)
    }
    const statuses = results.map((result): MetricStatus => ('error' in result ? { type: '' } : result.status))
    const proposals = results.filter((result): result is Proposal => !('error' in result))
    const best = proposals.reduce<Proposal | undefined>(
      (most, one) => (most === undefined || most.replicas === 0 || one.replicas > most.replicas ? one : most),
      undefined,
    )
    const first = results.find((result) => 'error' in result)
    const failure =
      first === undefined
        ? undefined
        : `invalid metrics (${specs.length - proposals.length} invalid out of ${specs.length}), first error is: ${first.error}`
    if (best === undefined || (first !== undefined && best.replicas < current)) {
      if (first !== undefined)
        this.#report.setCondition(
          'ScalingActive',
          'False',
          first.reason,
          `the HPA was unable to compute the replica count: ${first.message}`,
        )
      return this.#giveUp(failure ?? '', current, statuses)
    }
    this.#report.setCondition(
      'ScalingActive',
      'True',
      'ValidMetricFound',
      `the HPA was able to successfully calculate a replica count from ${best.metric}`,
    )
    const desired = Math.max(0, best.replicas)
    return { desired, metric: desired > 0 ? best.metric : '', statuses, failure }
  }

  /** The shared input of all metrics; fails if the selector is ambiguous. */
  async #round({ scale }: Target): Promise<ProposalInput> {
    const { settings, cache, clock, isEnabled } = this.#context
    const { namespace = '' } = this.#hpa.metadata
    const selector = await this.#selector(scale.status.selector ?? '', scale.spec.replicas ?? 0)
    const pods = cache.inNamespace(Pods, namespace).filter(({ metadata }) => matchesLabels(selector, metadata.labels))
    return {
      hpa: this.#hpa,
      metrics: this.#memory.metrics,
      selector,
      population: {
        pods,
        nowMs: clock.now(),
        cpuInitializationMs: settings['horizontal-pod-autoscaler-cpu-initialization-period'],
        initialReadinessMs: settings['horizontal-pod-autoscaler-initial-readiness-delay'],
      },
      tolerance: toleranceOf(this.#hpa, settings['horizontal-pod-autoscaler-tolerance'], isEnabled),
      wanted: scale.spec.replicas ?? 0,
      present: scale.status.replicas,
      podLevel: isEnabled('PodLevelResources'),
    }
  }

  async #selector(text: string, current: number): Promise<Selector> {
    const refuse = async (event: string, condition: string, error: string, message = error): Promise<never> => {
      this.error = 'spec'
      this.#report.recordEvent('Warning', event, error)
      this.#report.setCondition('ScalingActive', 'False', condition, message)
      return this.#giveUp(error, current, null)
    }
    if (text === '') {
      return refuse(
        'SelectorRequired',
        'InvalidSelector',
        'selector is required',
        "the HPA target's scale is missing a selector",
      )
    }
    let selector: Selector
    try {
      selector = parseSelector(text)
    } catch (error) {
      const message = `couldn't convert selector into a corresponding internal selector object: ${(error as Error).message}`
      return refuse('InvalidSelector', 'InvalidSelector', message)
    }
    this.#memory.selectors.set(this.#key, selector)
    const rivals = this.#rivals(selector)
    if (rivals.length <= 1) return selector
    const message = `pods by selector ${text} are controlled by multiple HPAs: [${rivals.join(' ')}]`
    return refuse('AmbiguousSelector', 'AmbiguousSelector', message)
  }

  /** All autoscalers, including this one, that select one of its pods. */
  #rivals(selector: Selector): string[] {
    const { namespace = '' } = this.#hpa.metadata
    const { cache } = this.#context
    const pods = cache.inNamespace(Pods, namespace).filter(({ metadata }) => matchesLabels(selector, metadata.labels))
    const all = cache.inNamespace(HorizontalPodAutoscalers, namespace).map(objectKey).sort()
    return all.filter((key) => {
      const theirs = this.#memory.selectors.get(key)
      return theirs !== undefined && pods.some(({ metadata }) => matchesLabels(theirs, metadata.labels))
    })
  }

  /** Reports an error without a decision. */
  async #giveUp(error: string, current: number, statuses: MetricStatus[] | null): Promise<never> {
    const { desiredReplicas } = this.#hpa.status
    await this.#report.writeIfPossible({ currentReplicas: current, desiredReplicas, currentMetrics: statuses })
    this.#report.recordEvent('Warning', 'FailedComputeMetricsReplicas', error)
    throw new Error(
      `failed to compute desired number of replicas based on listed metrics for ${this.#reference()}: ${error}`,
    )
  }

  async #rescale(target: Target, current: number, { replicas, reason, statuses }: ReplicaPlanOfMetrics): Promise<void> {
    const { client, signal, clock } = this.#context
    const { behavior } = this.#hpa.spec
    try {
      await writeScale(client, target, replicas, signal)
    } catch (error) {
      const { message } = error as Error
      this.#report.recordEvent(
        'Warning',
        'FailedRescale',
        `New size: ${replicas}; reason: ${reason}; error: ${message}`,
      )
      this.#report.setCondition(
        'AbleToScale',
        'False',
        'FailedUpdateScale',
        `the HPA controller was unable to update the target scale: ${message}`,
      )
      const { desiredReplicas } = this.#hpa.status
      await this.#report.writeIfPossible({ currentReplicas: current, desiredReplicas, currentMetrics: statuses })
      throw new Error(`failed to rescale ${this.#reference()}: ${message}`, { cause: error })
    }
    this.#report.setCondition(
      'AbleToScale',
      'True',
      'SucceededRescale',
      `the HPA controller was able to update the target scale to ${replicas}`,
    )
    this.#report.recordEvent('Normal', 'SuccessfulRescale', `New size: ${replicas}; reason: ${reason}`)
    this.action = replicas > current ? 'scale_up' : 'scale_down'
    const history = this.#memory.histories.get(this.#key)
    if (history !== undefined) {
      const change = { current, desired: replicas, nowMs: clock.now(), behavior }
      this.#memory.histories.set(this.#key, remember(history, change))
    }
    this.#setZeroCondition(current, replicas)
  }

  #setZeroCondition(current: number, replicas: number): void {
    if (!this.#context.isEnabled('HPAScaleToZero')) {
      this.#report.removeCondition('ScaledToZero')
    } else if (current > 0 && replicas === 0 && this.#hpa.spec.minReplicas === 0 && this.#countsOutside()) {
      this.#report.setCondition(
        'ScaledToZero',
        'True',
        'ScaledToZero',
        'the HPA controller scaled the workload to zero',
      )
    } else {
      this.#report.setCondition(
        'ScaledToZero',
        'False',
        'NotScaledToZero',
        'the HPA controller did not scale the workload to zero',
      )
    }
  }

  #reference(): string {
    const { kind, name } = this.#hpa.spec.scaleTargetRef
    return `${kind}/${this.#hpa.metadata.namespace}/${name}`
  }
}

const BELOW_MIN = 'Current number of replicas below Spec.MinReplicas'

interface ReplicaPlanOfMetrics {
  readonly replicas: number
  /** Why the limited value differs. */
  readonly reason: string
  readonly statuses: MetricStatus[] | null
  /** The error of failed metrics, if the others sufficed. */
  readonly failure?: string | undefined
}

interface ComputedPlan extends Omit<ReplicaPlanOfMetrics, 'replicas' | 'reason'> {
  readonly desired: number
  readonly metric: string
}

function toleranceOf(
  { spec: { behavior } }: HorizontalPodAutoscaler,
  usual: number,
  isEnabled: (gate: string) => boolean,
): Tolerance {
  const own = isEnabled('HPAConfigurableTolerance') ? behavior : undefined
  const of = (text: string | undefined): number => (text === undefined ? usual : quantityNumber(parseQuantity(text)))
  return { down: of(own?.scaleDown?.tolerance), up: of(own?.scaleUp?.tolerance) }
}
