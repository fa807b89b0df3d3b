/** DefaultPreemption: evicts pods of lower priority if no node fits. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { countedReasons } from '../framework/explanation.ts'
import {
  type Candidate,
  definePlugin,
  type FilterRunner,
  type Handle,
  type PluginFactory,
  type PostFilterPreview,
  type PostFilterResult,
  type Refusal,
  type Search,
  unresolvable,
} from '../framework/framework.ts'
import { Preemptions } from '../preemption/preemptions.ts'
import { budgetOf, leastHarm, tryNodes, VictimMemory, victimsOn } from '../preemption/victims.ts'

const UNDERWAY = unresolvable('waiting for the preemption for this pod to be finished')

export interface DefaultPreemptionArgs {
  readonly minCandidateNodesPercentage?: number
  readonly minCandidateNodesAbsolute?: number
}

export const defaultPreemption: PluginFactory = definePlugin({
  name: 'DefaultPreemption',
  create(
    handle: Handle,
    { minCandidateNodesPercentage: percentage = 10, minCandidateNodesAbsolute: atLeast = 100 }: DefaultPreemptionArgs,
  ) {
    const { cluster, of, random, meter, nominations } = handle
    const memory = new VictimMemory()
    const preemptions = new Preemptions(handle)
    const budgets = of(PodDisruptionBudgets)
    const isAsync = handle.isEnabled('SchedulerAsyncPreemption')
    const previewPostFilter = (search: Search, filterRunner: FilterRunner): PostFilterPreview => {
      const { pod } = search
      const current = of(Pods).get(pod.key)
      if (current === undefined) return broken(`pod ${JSON.stringify(pod.pod.metadata.name)} not found`)
      const reason = whyNot(current, pod, search, cluster.node(current.status.nominatedNodeName ?? ''))
      if (reason !== undefined) return { reasons: [`preemption: not eligible due to ${reason}`] }
      const nodes = cluster.nodes.filter(({ name }) => codeOf(search, name) === 'unschedulable')
      const first = nodes.length === 0 ? 0 : random.int(nodes.length)
      const enough = Math.min(nodes.length, Math.max(Math.floor((nodes.length * percentage) / 100), atLeast))
      const kept = [...budgets.list()].flatMap((one) => budgetOf(one) ?? [])
      const find = (node: NodeInfo): Candidate | Refusal => victimsOn(search, node, kept, filterRunner)
      const isPlain = search.cycleState.size === 0 && kept.length === 0
      const { candidates, refusals } = tryNodes([...nodes.slice(first), ...nodes.slice(0, first)], enough, (node) =>
        isPlain && nominations.before(pod, node.name).length === 0
          ? memory.recall(pod, node, () => find(node))
          : find(node),
      )
      return candidates.length === 0 ? noCandidates(refusals, cluster.nodes.length) : { reasons: [], candidates }
    }
    const preempt = async (pod: PodInfo, candidates: readonly Candidate[]): Promise<PostFilterResult> => {
      const best = leastHarm(candidates)
      if (best === undefined) return { reasons: ['preemption: no candidate node for preemption'] }
      const making = preemptions.preempt(pod, best)
      const nominated = { reasons: [], nominate: best.node }
      if (!isAsync) return making.then((error) => (error === undefined ? nominated : broken(error.message)))
      handle.runInBackground(making.then(() => undefined))
      return nominated
    }
    return {
      // Hints of the rejecting plugins decide whether a deletion helps; this plugin only gates the pod during preemption.
      eventsToRegister: [{ resource: 'AssignedPod', actions: ['delete'], queueingHint: () => false }],
      preEnqueue: ({ uid }) => (preemptions.isUnderway(uid) ? UNDERWAY : undefined),
      previewPostFilter,
      postFilter(search, filterRunner) {
        meter.preemptionTried()
        const preview = previewPostFilter(search, filterRunner)
        if (preview.candidates === undefined) return preview
        const processed = handle.processPreemption?.(search.pod, preview.candidates)
        return processed?.then((left) => preempt(search.pod, left), toBroken) ?? preempt(search.pod, preview.candidates)
      },
    }
  },
})

function codeOf({ refused, refusals }: Search, node: string): string | undefined {
  return refused === undefined ? refusals.get(node)?.code : refused.code
}

/** Undefined: the pod may preempt others. */
function whyNot(
  current: Pod,
  { priority }: PodInfo,
  search: Search,
  nominated: NodeInfo | undefined,
): string | undefined {
  if (current.spec.preemptionPolicy === 'Never') return 'preemptionPolicy=Never.'
  if (nominated === undefined || (codeOf(search, nominated.name) ?? 'unresolvable') === 'unresolvable') return undefined
  for (const other of nominated.pods.values()) {
    if (other.priority < priority && isPreempted(other)) return 'a terminating pod on the nominated node.'
  }
  return undefined
}

function isPreempted({ isTerminating, pod }: PodInfo): boolean {
  const condition = pod.status.conditions?.find(({ type }) => type === 'DisruptionTarget')
  return isTerminating && condition?.status === 'True' && condition.reason === 'PreemptionByScheduler'
}

function noCandidates(refusals: ReadonlyMap<string, Refusal>, nodes: number): PostFilterResult {
  const errors = [...refusals.values()].flatMap(({ code, reasons }) => (code === 'error' ? reasons : []))
  if (errors.length > 0) return broken(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
  const why = countedReasons(refusals, nodes, 'Preemption is not helpful for scheduling')
  return { reasons: [`preemption: 0/${nodes} nodes are available: ${why}.`], nominate: '' }
}

function toBroken(error: Error): PostFilterResult {
  return broken(error.message)
}

function broken(reason: string): PostFilterResult {
  return { reasons: [`preemption: ${reason}`], isBroken: true }
}
