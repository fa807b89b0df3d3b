/** Groups nodes by their problems, with the amounts that count and the pods that use the most. */
import { Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { amountOf } from '#scheduler/cluster/amounts.ts'
import type { NodeInfo } from '#scheduler/cluster/node-info.ts'
import { PodInfo } from '#scheduler/cluster/pod-info.ts'
import type { NodeVerdict } from '#scheduler/reconsideration.ts'

import { amountText, countText, someOf } from '../amount-text.ts'
import type { Evidence, Step } from '../explanation.ts'
import type { Reader } from '../reader.ts'
import { type Problem, problemsOf } from './problems.ts'

export interface NodeGroup {
  readonly problems: readonly Problem[]
  readonly nodes: readonly NodeInfo[]
}

/** More groups than these say less to people. */
const MAX_GROUPS = 5

/** The largest group first: by all problems of a node, or by the first one if there are many combinations. */
export function groupNodes(pod: Pod, verdicts: readonly NodeVerdict[]): NodeGroup[] {
  const whole = groupsBy(pod, verdicts, (problems) => problems)
  return whole.length <= MAX_GROUPS ? whole : groupsBy(pod, verdicts, (problems) => problems.slice(0, 1))
}

/** `2 nodes: not enough cpu; 1 node: cordoned`. */
export function groupsText(groups: readonly NodeGroup[]): string {
  const shown = groups.slice(0, MAX_GROUPS).map(groupText)
  const rest = groups.slice(MAX_GROUPS).reduce((count, { nodes }) => count + nodes.length, 0)
  return [...shown, ...(rest > 0 ? [`${countText(rest, 'node')}: other reasons`] : [])].join('; ')
}

export function groupSteps(pod: Pod, groups: readonly NodeGroup[], reader: Reader): Step[] {
  return groups.slice(0, MAX_GROUPS).map((group) => groupStep(pod, group, reader))
}

function groupsBy(
  pod: Pod,
  verdicts: readonly NodeVerdict[],
  choose: (problems: readonly Problem[]) => readonly Problem[],
): NodeGroup[] {
  const groups = new Map<string, { readonly problems: readonly Problem[]; readonly nodes: NodeInfo[] }>()
  for (const verdict of verdicts) {
    const problems = choose(problemsOf(pod, verdict))
    const key = problems.map(({ text }) => text).join('\n')
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { problems, nodes: [verdict.node] })
    else group.nodes.push(verdict.node)
  }
  return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length)
}

function groupText({ problems, nodes }: NodeGroup): string {
  return `${countText(nodes.length, 'node')}: ${problems.map(({ text }) => text).join(', ')}`
}

/** Nodes of a group that a step cites. */
const CITED_NODES = 2
const LARGEST_PODS = 2

function groupStep(pod: Pod, group: NodeGroup, reader: Reader): Step {
  const { problems, nodes } = group
  const info = new PodInfo(pod)
  const resources = problems.flatMap(({ resource }) => resource ?? [])
  const [first = ''] = resources
  const roomiest = first === '' ? nodes : nodes.toSorted((a, b) => freeOf(b, first) - freeOf(a, first))
  const texts = resources.map((resource) => resourceText(info, roomiest[0] as NodeInfo, resource))
  const large = first === '' ? [] : largestPods(roomiest[0] as NodeInfo, first)
  const users = large.map((one) => `${one.key} (${amountText(first, amountOf(one.requests, first))})`)
  const names = someOf(roomiest.map(({ name }) => name))
  const reason = [problems.map(({ text }) => text).join(', '), ...texts].join('; ')
  return {
    actor: 'kube-scheduler',
    did: `refuses ${names}: ${reason}${users.length > 0 ? `; most is requested by ${users.join(', ')}` : ''}`,
    object: `nodes/${roomiest[0]?.name ?? ''}`,
    because: [],
    evidence: [
      ...roomiest.slice(0, CITED_NODES).flatMap((node) => nodeEvidence(node, problems, reader)),
      ...large.flatMap((one) => requestEvidence(one.pod, first, reader)),
    ],
    certainty: 'recomputed',
  }
}

function freeOf({ allocatable, requested }: NodeInfo, resource: string): number {
  return amountOf(allocatable, resource) - amountOf(requested, resource)
}

/** `the pod requests 2 cpu, node-1 has 1.5 of 4 free`. */
function resourceText({ requests }: PodInfo, node: NodeInfo, resource: string): string {
  const [asks, free, all] = [amountOf(requests, resource), freeOf(node, resource), amountOf(node.allocatable, resource)]
  const [askText, freeText, allText] = [asks, Math.max(0, free), all].map((amount) => amountText(resource, amount))
  return `the pod requests ${askText} ${resource}, ${node.name} has ${freeText} of ${allText} free`
}

function largestPods({ pods }: NodeInfo, resource: string): PodInfo[] {
  return [...pods.values()]
    .filter(({ requests }) => amountOf(requests, resource) > 0)
    .sort((a, b) => amountOf(b.requests, resource) - amountOf(a.requests, resource))
    .slice(0, LARGEST_PODS)
}

function nodeEvidence({ node }: NodeInfo, problems: readonly Problem[], reader: Reader): Evidence[] {
  const fieldPaths = problems.flatMap((problem) => problem.fieldPaths)
  return node === undefined ? [] : reader.cite(Nodes, node, ...new Set(fieldPaths))
}

/** The requests of the containers, and the node that they count for. */
export function requestEvidence(pod: Pod, resource: string, reader: Reader): Evidence[] {
  const asking = pod.spec.containers.filter(({ resources }) => resources?.requests?.[resource] !== undefined)
  const fields = asking.map(({ name }) => `spec.containers[${name}].resources.requests[${resource}]`)
  return reader.cite(Pods, pod, ...(pod.spec.nodeName === undefined ? [] : ['spec.nodeName']), ...fields)
}
