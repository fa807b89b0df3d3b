/** Services of type LoadBalancer on machines that no cloud stands before: the addresses of the nodes are theirs. */
import { createNodeBalancer } from '#cloud/node-balancer.ts'
import { createServiceLoop } from '#cloud/service-loop.ts'
import { type Controller, defineController } from '#controllers/controller.ts'

/** `reserved`: ports on which the nodes themselves are reached. */
export function serviceBalancer(reserved: () => readonly number[]): Controller {
  return defineController(createServiceLoop({ balancer: createNodeBalancer({ reserved }), clusterName: 'kubernetes' }))
}
