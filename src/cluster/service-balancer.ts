/** The controllers for Services of type LoadBalancer in clusters without a cloud. */
import { createNodeBalancer } from '#cloud/node-balancer.ts'
import { createServiceLoop } from '#cloud/service-loop.ts'
import { type Controller, defineController } from '#controllers/controller.ts'

import { createSimulatedBalancer } from './simulated-balancer.ts'

/** They get the nodes' addresses. `reserved` are ports of node components. */
export function serviceBalancer(reserved: () => readonly number[]): Controller {
  return defineController(createServiceLoop({ balancer: createNodeBalancer({ reserved }), clusterName: 'kubernetes' }))
}

/** On simulated nodes, where nothing can serve, each gets a separate address. */
export function simulatedServiceBalancer(): Controller {
  return defineController(createServiceLoop({ balancer: createSimulatedBalancer(), clusterName: 'kubernetes' }))
}
