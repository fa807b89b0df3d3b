/** Creates the allocators of Service addresses and ports, and their repair loops. */

import { IPAddresses } from '#apis/networking/v1.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { parseCidr } from '#lib/net/cidr.ts'
import type { PeriodicTask } from '#lib/periodic.ts'
import { createAddressBook, serviceRanges } from '#resources/core/service/address-book.ts'
import type { ServiceAllocator } from '#resources/core/service/allocation.ts'
import { createServiceAllocator } from '#resources/core/service/allocator.ts'
import { planRanges } from '#resources/core/service/ip-pool.ts'
import { createServiceMeter, measureLedger, registerAddresses } from '#resources/core/service/metrics.ts'
import { createStoredLedger, PORT_ALLOCATIONS } from '#resources/core/service/port-ledger.ts'
import { startServiceRepair } from '#resources/core/service/repair-loop.ts'

import type { Environment } from './environment.ts'

export interface ServiceParts {
  readonly allocator: ServiceAllocator
  /** Resolves when Services can be given node ports. */
  startRepair(): Promise<PeriodicTask>
}

export function createServiceParts({ plan, random, host, log }: Environment, registry: Registry): ServiceParts {
  const { backend, atRest, metrics, clock } = registry.services
  const { nodePorts: portRange } = plan
  const parts = {
    book: createAddressBook(registry),
    ports: measureLedger(
      createStoredLedger({ backend, resting: atRest.resting(PORT_ALLOCATIONS), range: portRange }),
      portRange,
      metrics,
    ),
    serviceCidrs: plan.serviceCidr.split(',').flatMap((text) => parseCidr(text) ?? []),
    portRange,
  }
  const names = (): string[] =>
    registry
      .storeOf(IPAddresses)
      ?.collection.entries()
      .map(({ name }) => name) ?? []
  registerAddresses(metrics, () => planRanges(serviceRanges(registry), parts.serviceCidrs), names)
  return {
    allocator: createServiceAllocator({
      ...parts,
      random,
      meter: createServiceMeter(metrics, clock),
      rangeObjects: () => serviceRanges(registry),
      report: (message, error) => log.error(error, message),
    }),
    startRepair: () =>
      startServiceRepair({
        ...parts,
        registry,
        hostname: host,
        onError: (error) => log.error(error, 'Failed to repair addresses and ports of Services'),
      }),
  }
}
