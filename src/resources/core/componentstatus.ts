/** The ComponentStatus resource: the health of scheduler, controllers and store. Deprecated, but still used. */
import { type ComponentStatus, ComponentStatuses } from '#apis/core/v1.ts'
import { defineObserved } from '#apiserver/handlers/observed.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import type { VirtualResource } from '#apiserver/registry/virtual.ts'

/** The health of a component: `message` is its answer or the failure, `error` the reason why it could not be probed. */
export interface ComponentHealth {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly message?: string
  readonly error?: string
}

/** In print order. None of them throws. */
export type ComponentProbes = ReadonlyMap<string, (signal: AbortSignal) => Promise<ComponentHealth>>

export function defineComponentStatus(probes: ComponentProbes): VirtualResource {
  return defineObserved<ComponentStatus>({
    kind: ComponentStatuses,
    missing: 'componentstatus',
    deprecation: 'v1 ComponentStatus is deprecated in v1.19+',
    observe({ name }, signal) {
      const selected = [...probes].filter(([each]) => name === undefined || each === name)
      return Promise.all(selected.map(async ([each, probe]) => describe(each, await probe(signal))))
    },
    columns: [
      nameColumn,
      { name: 'Status', value: ({ conditions = [] }) => (conditions[0]?.status === 'True' ? 'Healthy' : 'Unhealthy') },
      { name: 'Message', value: ({ conditions = [] }) => conditions[0]?.message ?? '' },
      { name: 'Error', value: ({ conditions = [] }) => conditions[0]?.error ?? '' },
    ],
  })
}

function describe(name: string, { status, message = '', error = '' }: ComponentHealth): ComponentStatus {
  const condition = {
    type: 'Healthy',
    status,
    ...(message !== '' && { message }),
    ...(error !== '' && { error }),
  }
  return { kind: 'ComponentStatus', apiVersion: 'v1', metadata: { name }, conditions: [condition] }
}
