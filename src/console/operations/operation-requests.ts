/** The requests of built clusters: Operations, the cluster file, snapshots. */
import { clusterPath } from '../api/cluster-paths.ts'
import { send, sendForJson } from '../api/request.ts'
import type { Operation } from './operations.ts'

export function buildRoute(cluster: string, rest: string): string {
  return `${clusterPath(cluster)}/${rest}`
}

/** Of the list of the Operations of a cluster, without plans and steps. It can be watched. */
export function operationsPath(cluster: string): string {
  return buildRoute(cluster, 'operations')
}

export function operationPath(cluster: string, operation: string): string {
  return `${operationsPath(cluster)}/${encodeURIComponent(operation)}`
}

export type OperationAction = 'approve' | 'cancel' | 'retry'

/** `plan`: only this plan is approved. */
export async function actOn({ metadata, spec }: Operation, action: OperationAction, plan?: string): Promise<void> {
  const path = `${operationPath(spec.cluster, metadata.name ?? '')}/${action}`
  await send(path, { method: 'POST', body: plan === undefined ? {} : { plan } })
}
/** Returns the name of the new Operation. */
export async function requestOperation(cluster: string, body: object): Promise<string> {
  const { metadata } = await sendForJson<Operation>(operationsPath(cluster), { method: 'POST', body })
  return metadata.name ?? ''
}
