/** Lists the cloud controllers that a provider supports. Pure. */
import type { Controller } from '#reconcile/controller.ts'

import { createNodeLifecycleLoop } from './node-lifecycle-loop.ts'
import { createNodeLoop } from './node-loop.ts'
import type { CloudProvider } from './provider.ts'
import { createRouteLoop } from './route-loop.ts'
import { createServiceLoop } from './service-loop.ts'

export interface LoopSettings {
  readonly clusterName: string
  readonly clusterCidrs: readonly string[]
  /** Whether nodes get pod CIDRs and the cloud needs routes to them. */
  readonly hasRoutes: boolean
  readonly nodeWorkers: number
  readonly serviceWorkers: number
  readonly nodeUpdateMs: number
  readonly nodeMonitorMs: number
  readonly routeMs: number
}

/** With their older names. */
export const LOOP_NAMES: Readonly<Record<string, string>> = {
  'cloud-node-controller': 'cloud-node',
  'cloud-node-lifecycle-controller': 'cloud-node-lifecycle',
  'node-route-controller': 'route',
  'service-lb-controller': 'service',
}

export function loopsFor({ instances, loadBalancer, routes }: CloudProvider, settings: LoopSettings): Controller[] {
  const { clusterName, clusterCidrs } = settings
  return [
    ...(instances === undefined
      ? []
      : [
          createNodeLoop({ instances, updateMs: settings.nodeUpdateMs, workers: settings.nodeWorkers }),
          createNodeLifecycleLoop({ instances, periodMs: settings.nodeMonitorMs }),
        ]),
    ...(routes === undefined || !settings.hasRoutes
      ? []
      : [createRouteLoop({ routes, clusterName, clusterCidrs, periodMs: settings.routeMs })]),
    ...(loadBalancer === undefined
      ? []
      : [createServiceLoop({ balancer: loadBalancer, clusterName, workers: settings.serviceWorkers })]),
  ]
}
