/** The dependencies of connectors: backends, authorization and admission. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Call } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError, notFoundError } from '#meta/status-errors.ts'

import { writeRequestOf } from '../handlers/body.ts'
import type { View } from '../handlers/view.ts'
import { admit } from '../registry/admitting.ts'
import type { ObjectReader } from '../registry/resource.ts'
import type { Backends, KubeletSettings } from './backends.ts'
import type { ConnectMetrics } from './metrics.ts'

/** The dependencies of connectors. */
export interface ConnectContext {
  readonly clock: Clock
  readonly random: Random
  readonly kubelet: KubeletSettings
  readonly backends: Backends
  readonly isEnabled: (gate: string) => boolean
  readonly count: ConnectMetrics
}

/** The pod of a name. Throws StatusError 404. */
export async function podOf(objects: ObjectReader, namespace: string, name: string): Promise<Pod> {
  const pod = await objects.get<Pod>(Pods, namespace, name)
  if (pod === undefined) throw notFoundError({ group: '', resource: 'pods' }, name)
  return pod
}

/** Runs admission for CONNECT; `options` are the request's options. Throws StatusError if a plugin refuses. */
export async function admitConnect(
  call: Call,
  { resource, services }: View,
  kind: string,
  options: object,
): Promise<void> {
  if (call.query.has('dryRun')) throw badRequestError('dryRun is not supported')
  const object = { kind, apiVersion: 'v1', ...options } as unknown as KubeObject
  const request = writeRequestOf(call, { group: '', version: 'v1', kind, namespaced: resource.kind.namespaced }, {})
  const subject = { kind: resource.kind, name: call.info.name, object, oldObject: undefined }
  const validate = await admit(services, request, { operation: 'CONNECT', ...subject })
  await validate()
}
