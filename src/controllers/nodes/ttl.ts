/**
 * TTL controller: annotates nodes with the cache TTL for ConfigMaps and Secrets, which grows with the cluster. Steps
 * overlap, so that a single node does not toggle between two.
 */
import { Nodes } from '#apis/core/v1.ts'
import { itself, rule, EVENTS } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, defineController } from '../controller.ts'

const ANNOTATION = 'node.alpha.kubernetes.io/ttl'

interface TtlStep {
  /** With fewer nodes the previous step applies, with more the next. */
  readonly least: number
  readonly most: number
  readonly seconds: number
}

const STEPS: readonly TtlStep[] = [
  { least: 0, most: 100, seconds: 0 },
  { least: 90, most: 500, seconds: 15 },
  { least: 450, most: 1000, seconds: 30 },
  { least: 900, most: 2000, seconds: 60 },
  { least: 1800, most: Infinity, seconds: 300 },
]

const stepOf = perRun(() => ({ at: 0 }))

export const ttlController: Controller = defineController({
  name: 'ttl-controller',
  aliases: ['ttl'],
  watches: [itself(Nodes)],
  rules: [rule('', 'nodes', 'list patch update watch'), EVENTS],

  async reconcile(name, context) {
    const { cache, client, signal } = context
    const node = cache.get(Nodes, name)
    if (node === undefined) return
    const step = stepOf(context)
    step.at = nextStep(step.at, [...cache.list(Nodes)].length)
    const wanted = String(STEPS[step.at]?.seconds)
    if (node.metadata.annotations?.[ANNOTATION] === wanted) return
    const value = { metadata: { annotations: { [ANNOTATION]: wanted } } }
    await client.patch(Nodes, { name }, { type: 'strategic', value }, { signal })
  },
})

export function nextStep(at: number, nodes: number): number {
  let next = at
  while (nodes > (STEPS[next]?.most ?? Infinity)) next++
  while (nodes < (STEPS[next]?.least ?? 0)) next--
  return next
}
