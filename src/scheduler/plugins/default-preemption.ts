/** DefaultPreemption: where nothing fits, less important pods make room. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'

import { countedReasons } from '../explanation.ts'
import {
  type Candidate,
  definePlugin,
  type Foreseen,
  type Handle,
  type Judge,
  type PluginFactory,
  type PostFilterResult,
  type Refusal,
  type Search,
  unresolvable,
} from '../framework.ts'
import type { NodeInfo } from '../node-info.ts'
import type { PodInfo } from '../pod-info.ts'
import { Preemptions } from '../preemptions.ts'
import { budgetOf, leastHarm, tryNodes, VictimMemory, victimsOn } from '../victims.ts'

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
    const foresee = (search: Search, judge: Judge): Foreseen => {
      const { pod } = search
      const current = of(Pods).get(pod.key)
      if (current === undefined) return broken(`pod ${JSON.stringify(pod.pod.metadata.name)} not found`)
      const reason = whyNot(current, pod, search, cluster.node(current.status.nominatedNodeName ?? ''))
      if (reason !== undefined) return { reasons: [`preemption: not eligible due to ${reason}`] }
      const nodes = cluster.nodes.filter(({ name }) => codeOf(search, name) === 'unschedulable')
      const first = nodes.length === 0 ? 0 : random.int(nodes.length)
      const enough = Math.min(nodes.length, Math.max(Math.floor((nodes.length * percentage) / 100), atLeast))
      const kept = [...budgets.list()].flatMap((one) => budgetOf(one) ?? [])
      const find = (node: NodeInfo): Candidate | Refusal => victimsOn(search, node, kept, judge)
      const isPlain = search.cases.size === 0 && kept.length === 0
      const { candidates, refusals } = tryNodes([...nodes.slice(first), ...nodes.slice(0, first)], enough, (node) =>
        isPlain && nominations.before(pod, node.name).length === 0
          ? memory.recall(pod, node, () => find(node))
          : find(node),
      )
      return candidates.length === 0 ? hopeless(refusals, cluster.nodes.length) : { reasons: [], candidates }
    }
    const preempt = async (pod: PodInfo, candidates: readonly Candidate[]): Promise<PostFilterResult> => {
      const best = leastHarm(candidates)
      if (best === undefined) return { reasons: ['preemption: no candidate node for preemption'] }
      const making = preemptions.make(pod, best)
      const nominated = { reasons: [], nominate: best.node }
      if (!isAsync) return making.then((error) => (error === undefined ? nominated : broken(error.message)))
      handle.alongside(making.then(() => undefined))
      return nominated
    }
    return {
      // It is for those that refused the pod to say whether somebody's end helps; this plugin only holds it back.
      wakes: [{ on: 'AssignedPod', actions: ['delete'], helps: () => false }],
      preEnqueue: ({ uid }) => (preemptions.isUnderway(uid) ? UNDERWAY : undefined),
      foresee,
      postFilter(search, judge) {
        meter.preemptionTried()
        const foreseen = foresee(search, judge)
        if (foreseen.candidates === undefined) return foreseen
        const asked = handle.reconsider?.(search.pod, foreseen.candidates)
        return asked?.then((left) => preempt(search.pod, left), toBroken) ?? preempt(search.pod, foreseen.candidates)
      },
    }
  },
})

function codeOf({ refused, refusals }: Search, node: string): string | undefined {
  return refused === undefined ? refusals.get(node)?.code : refused.code
}

/** Undefined: it may send others away. */
function whyNot(
  current: Pod,
  { priority }: PodInfo,
  search: Search,
  nominated: NodeInfo | undefined,
): string | undefined {
  if (current.spec.preemptionPolicy === 'Never') return 'preemptionPolicy=Never.'
  if (nominated === undefined || (codeOf(search, nominated.name) ?? 'unresolvable') === 'unresolvable') return undefined
  for (const other of nominated.pods.values()) {
    if (other.priority < priority && isMakingRoom(other)) return 'a terminating pod on the nominated node.'
  }
  return undefined
}

function isMakingRoom({ isTerminating, pod }: PodInfo): boolean {
  const told = pod.status.conditions?.find(({ type }) => type === 'DisruptionTarget')
  return isTerminating && told?.status === 'True' && told.reason === 'PreemptionByScheduler'
}

function hopeless(refusals: ReadonlyMap<string, Refusal>, nodes: number): PostFilterResult {
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
