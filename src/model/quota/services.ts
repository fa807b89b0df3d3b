/** Computes the quota usage of Services: their number, load balancers and node ports. */
import type { Service } from '#apis/core/v1.ts'
import { quantityOf } from '#meta/quantity.ts'

import type { Amounts } from '../pod-resources.ts'
import { allocatesNodePorts, nodePortsOf, usesNodePorts } from '../services.ts'
import type { Evaluator } from './evaluator.ts'

const NAMES = new Set(['count/services', 'services', 'services.nodeports', 'services.loadbalancers'])

export const serviceEvaluator: Evaluator = {
  handles: ({ operation, subresource }) => subresource === '' && (operation === 'CREATE' || operation === 'UPDATE'),
  matching: (names) => [...names].filter((name) => NAMES.has(name)),
  usage: (service) => serviceUsage(service as Service),
}

/** By the spec, because ports are not allocated yet. */
function serviceUsage({ spec }: Service): Amounts {
  const ports = allocatesNodePorts(spec) ? (spec.ports ?? []).length : nodePortsOf(spec).length
  return new Map([
    ['count/services', quantityOf(1)],
    ['services', quantityOf(1)],
    ['services.loadbalancers', quantityOf(spec.type === 'LoadBalancer' ? 1 : 0)],
    ['services.nodeports', quantityOf(usesNodePorts(spec) ? ports : 0)],
  ])
}
