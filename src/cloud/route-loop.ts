/** Routes to the pods of each node: upstream's `node-route-controller`. */
import { type Node, type NodeAddress, Nodes } from '#apis/core/v1.ts'
import { type Cidr, overlaps, parseCidr } from '#lib/cidr.ts'
import { sleep } from '#lib/clock.ts'
import { timeOf } from '#meta/time.ts'

import { allow, type CloudLoop, EVENT_RULES, type LoopContext, watching } from './loop.ts'
import type { Route, Routes } from './provider.ts'

export interface RouteLoopOptions {
  readonly routes: Routes
  readonly clusterName: string
  readonly clusterCidrs: readonly string[]
  readonly periodMs: number
}

export interface RoutePlan {
  readonly create: readonly Route[]
  readonly remove: readonly Route[]
}

const podCidrsOf = ({
  spec: { podCIDR, podCIDRs = podCIDR === undefined ? [] : [podCIDR] },
}: Node): readonly string[] => podCIDRs

const addressesOf = ({ status }: Node): readonly NodeAddress[] =>
  (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP')

/** Routes outside the cluster's ranges are somebody else's. Pure. */
export function planRoutes(
  nodes: readonly Node[],
  routes: readonly Route[],
  clusterCidrs: readonly string[],
): RoutePlan {
  const own = clusterCidrs.flatMap((text) => parseCidr(text) ?? [])
  const isOurs = ({ destination }: Route): boolean => {
    const block = parseCidr(destination)
    return block !== undefined && own.some((range: Cidr) => range.family === block.family && overlaps(range, block))
  }
  const wanted = new Map(
    nodes.flatMap((node) =>
      podCidrsOf(node).map((destination): [string, Route] => [
        `${node.metadata.name} ${destination}`,
        { node: node.metadata.name ?? '', destination, addresses: addressesOf(node) },
      ]),
    ),
  )
  const keyOf = ({ node, destination }: Route): string => `${node} ${destination}`
  const there = new Set(routes.filter(({ isBlackhole }) => isBlackhole !== true).map(keyOf))
  return {
    create: [...wanted].filter(([key]) => !there.has(key)).map(([, route]) => route),
    remove: routes.filter((route) => isOurs(route) && (route.isBlackhole === true || !wanted.has(keyOf(route)))),
  }
}

export function createRouteLoop(options: RouteLoopOptions): CloudLoop {
  return {
    name: 'node-route-controller',
    aliases: ['route'],
    account: 'route-controller',
    component: 'route_controller',
    watches: [watching(Nodes, () => [])],
    rules: [allow('', 'nodes', 'list watch'), allow('', 'nodes/status', 'patch'), ...EVENT_RULES],
    reconcile: () => Promise.resolve(),
    async run(context) {
      for (;;) {
        await round(options, context).catch((error: unknown) =>
          context.log.error(error, "Couldn't reconcile node routes"),
        )
        await sleep(context.clock, options.periodMs, context.signal, { background: true })
      }
    },
  }
}

async function round({ routes, clusterName, clusterCidrs }: RouteLoopOptions, context: LoopContext): Promise<void> {
  const { cache, signal, event, log } = context
  const nodes = Array.from(cache.list(Nodes))
  const { create, remove } = planRoutes(nodes, await routes.list(clusterName, signal), clusterCidrs)
  // First: what is made may want the place of what goes.
  for (const route of remove) await routes.remove(clusterName, route, signal)
  const failed = new Set<string>()
  for (const route of create) {
    try {
      await routes.create(clusterName, route, signal)
    } catch (error) {
      failed.add(route.node)
      const node = nodes.find(({ metadata }) => metadata.name === route.node)
      const message = `Could not create route ${route.destination} for node ${route.node}: ${(error as Error).message}`
      log.error(error, 'Could not create a route', { node: route.node, destination: route.destination })
      if (node !== undefined) event(node, { type: 'Warning', reason: 'FailedToCreateRoute', message })
    }
  }
  for (const node of nodes)
    if (podCidrsOf(node).length > 0) await tell(node, !failed.has(node.metadata.name ?? ''), context)
}

/** Pods are let onto a node when they can be reached there. */
async function tell(node: Node, isReached: boolean, { client, clock, signal }: LoopContext): Promise<void> {
  const status = isReached ? 'False' : 'True'
  const reason = isReached ? 'RouteCreated' : 'NoRouteCreated'
  const before = node.status?.conditions?.find(({ type }) => type === 'NetworkUnavailable')
  if (before?.status === status && before.reason === reason) return
  const message = isReached ? 'RouteController created a route' : 'RouteController failed to create a route'
  const now = timeOf(clock.now())
  const condition = {
    type: 'NetworkUnavailable',
    status,
    reason,
    message,
    lastTransitionTime: now,
    lastHeartbeatTime: now,
  }
  const where = { name: node.metadata.name ?? '', subresource: 'status' }
  await client.patch(Nodes, where, { type: 'strategic', value: { status: { conditions: [condition] } } }, { signal })
}
